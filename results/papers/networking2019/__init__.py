"""Figures 5 to 10 of QUIC-FEC's evaluation, from campaigns of `networking2019-*`, and its claims.

F. Michel, Q. De Coninck, O. Bonaventure: "QUIC-FEC: Bringing the benefits of Forward Erasure Correction to
QUIC", IFIP Networking 2019, §IV.
"""

from __future__ import annotations

from collections.abc import Callable

import pandas as pd
from matplotlib.figure import Figure

from fecbench.results.papers.claims import Claim, PaperFigure, none_without_a_figure
from fecbench.results.papers.networking2019.claims import (
    claims_of_da2gc,
    claims_of_fig6,
    claims_of_fig7,
    claims_of_fig8,
    claims_of_fig9,
    claims_of_fig10,
    claims_of_mss,
)
from fecbench.results.papers.networking2019.comparisons import (
    OFF,
    REED_SOLOMON,
    RLC,
    RLC_4_5,
    ratios,
    variant_with,
)
from fecbench.results.papers.networking2019.differences import (
    differences,
    differences_in_fairness,
    differences_under_bursts,
)
from fecbench.results.papers.networking2019.figures import (
    fig5_aeroplanes,
    fig6_reed_solomon,
    fig7_codes,
    fig8_no_loss,
    fig9_fairness,
    fig10_bursts,
)
from fecbench.results.store.records import CampaignInfo

__all__ = [
    "FIGURES",
    "OFF",
    "REED_SOLOMON",
    "RLC",
    "RLC_4_5",
    "fig5_aeroplanes",
    "fig6_reed_solomon",
    "fig7_codes",
    "fig8_no_loss",
    "fig9_fairness",
    "fig10_bursts",
    "ratios",
    "variant_with",
]

_RATIO = (
    "ECDF of the download completion time divided by that of the other arm for the same losses. Left of 1,"
    " the arm in the title is faster."
)
_BOXES = (
    "Download completion time of 10 MB without FEC, begun when another transfer had filled the link. The line"
    " is the median, the box holds the middle half, the whiskers reach the last trial within 1.5 times the"
    " height of the box."
)


def _figure(
    number: int,
    draw: Callable[[pd.DataFrame, CampaignInfo], Figure],
    claims: Callable[[pd.DataFrame, CampaignInfo], list[Claim]],
    caption: str = _RATIO,
    differences: Callable[[pd.DataFrame, CampaignInfo], list[str]] = differences,
) -> PaperFigure:
    return PaperFigure(
        name=f"networking2019-fig{number}",
        number=f"Networking 2019, Fig. {number}",
        caption=caption,
        draw=draw,
        claims=none_without_a_figure(claims),
        differences=none_without_a_figure(differences),
    )


# By the name of the design: `results.papers`.
FIGURES: dict[str, list[PaperFigure]] = {
    "networking2019-da2gc": [_figure(5, fig5_aeroplanes, claims_of_da2gc)],
    "networking2019-mss": [_figure(5, fig5_aeroplanes, claims_of_mss)],
    "networking2019-uniform": [
        _figure(6, fig6_reed_solomon, claims_of_fig6),
        _figure(7, fig7_codes, claims_of_fig7),
    ],
    "networking2019-noloss": [_figure(8, fig8_no_loss, claims_of_fig8)],
    "networking2019-fairness": [_figure(9, fig9_fairness, claims_of_fig9, _BOXES, differences_in_fairness)],
    "networking2019-ge": [_figure(10, fig10_bursts, claims_of_fig10, differences=differences_under_bursts)],
}
