"""The table of the slides on short messages, from campaigns of `moskvitin-*`, and its claims.

D. Moskvitin, E. Onegin et al.: "Forward Erasure Correction for Short-Message Delay-Sensitive QUIC
Connection", slides.
"""

from __future__ import annotations

from functools import partial

from fecbench.results.papers.claim import PaperFigure
from fecbench.results.papers.moskvitin.claims import claims
from fecbench.results.papers.moskvitin.differences import differences
from fecbench.results.papers.moskvitin.figures import table
from fecbench.results.papers.moskvitin.slides import TABLE, Direction, Ways, means, ratios

__all__ = ["FIGURES", "TABLE", "means", "ratios", "table"]

_CAPTION = (
    "Mean time with FEC divided by that of the same stack and controller without, for the same losses, by"
    " size and loss rate, with 95 % intervals; bars are the slides' ratios. Below 1, FEC is faster."
)


def _figure(direction: Direction, ways: Ways) -> PaperFigure:
    return PaperFigure(
        name=f"moskvitin-{direction}s-{ways.replace(' ', '-')}",
        number=f"Moskvitin et al., {direction}s, losses {ways}",
        caption=_CAPTION,
        draw=partial(table, direction=direction, ways=ways),
        claims=partial(claims, direction=direction, ways=ways),
        differences=partial(differences, direction=direction, ways=ways),
    )


# The figures by the name of the design: `results.papers`.
FIGURES: dict[str, list[PaperFigure]] = {
    "moskvitin": [
        _figure("upload", "one way"),
        _figure("upload", "both ways"),
        _figure("download", "one way"),
        _figure("download", "both ways"),
    ]
}
