"""Figures 5 to 10 of QUIC-FEC's evaluation, from campaigns of `networking2019-*`, and its claims.

F. Michel, Q. De Coninck, O. Bonaventure: "QUIC-FEC: Bringing the benefits of Forward Erasure Correction to
QUIC", IFIP Networking 2019, §IV.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pandas as pd
from matplotlib.figure import Figure

from fecbench.results.papers.claim import Claim, PaperFigure
from fecbench.results.papers.networking2019 import aeroplanes, claims, differences, lossless
from fecbench.results.papers.networking2019.comparisons import (
    OFF,
    REED_SOLOMON,
    RLC,
    RLC_4_5,
    ratios,
    variant_with,
)
from fecbench.results.papers.networking2019.figures import ecdfs, fig9_fairness
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
    "ECDF of the download completion time divided by that of the other variant for the same losses. Left of"
    " 1, the variant in the title is faster."
)
_BOXES = (
    "Download completion time of 10 MB without FEC, begun when another transfer had filled the link. The line"
    " is the median, the box holds the middle half, the whiskers reach the last trial within 1.5 times the"
    " height of the box."
)


Draw = Callable[[pd.DataFrame, CampaignInfo], Figure]
Claims = Callable[[pd.DataFrame, CampaignInfo], list[Claim]]
Differences = Callable[[pd.DataFrame, CampaignInfo], list[str]]


def _figure(
    number: int,
    draw: Draw,
    claims: Claims,
    caption: str = _RATIO,
    differences: Differences = differences.differences,
) -> PaperFigure:
    return PaperFigure(
        name=f"networking2019-fig{number}",
        number=f"Networking 2019, Fig. {number}",
        caption=caption,
        draw=draw,
        claims=claims,
        differences=differences,
    )


fig5_aeroplanes = partial(
    ecdfs,
    panels=[(RLC, OFF)],
    question="In how many loss patterns does FEC shorten downloads from aeroplanes?",
    unit="repetition",
)
fig6_reed_solomon = partial(
    ecdfs, panels=[(REED_SOLOMON, OFF)], question="At how many points does Reed-Solomon help?"
)
fig7_codes = partial(ecdfs, panels=[(RLC, REED_SOLOMON)], question="Is RLC faster than Reed-Solomon?")
fig8_no_loss = partial(
    ecdfs, panels=[(RLC, OFF), (RLC_4_5, OFF)], question="What does FEC cost where nothing is lost?"
)
fig10_bursts = partial(
    ecdfs, panels=[(RLC, OFF)], question="At how many points does RLC help under bursty losses?"
)

# The figures by the name of the design: `results.papers`.
FIGURES: dict[str, list[PaperFigure]] = {
    "networking2019-da2gc": [_figure(5, fig5_aeroplanes, aeroplanes.claims_of_da2gc)],
    "networking2019-mss": [_figure(5, fig5_aeroplanes, aeroplanes.claims_of_mss)],
    "networking2019-uniform": [
        _figure(6, fig6_reed_solomon, claims.claims_of_fig6),
        _figure(7, fig7_codes, claims.claims_of_fig7),
    ],
    "networking2019-noloss": [_figure(8, fig8_no_loss, lossless.claims_of_fig8)],
    "networking2019-fairness": [
        _figure(9, fig9_fairness, claims.claims_of_fig9, _BOXES, differences.differences_in_fairness)
    ],
    "networking2019-ge": [
        _figure(10, fig10_bursts, claims.claims_of_fig10, differences=differences.differences_under_bursts)
    ],
}
