"""The table of the slides on uploads over Starlink, from campaigns of `starlink2022-uploads`, and its claims.

F. Michel, O. Bonaventure: "Forward Erasure Correction for QUIC loss recovery", slides of 2022.
"""

from __future__ import annotations

from fecbench.results.papers.claim import PaperFigure
from fecbench.results.papers.starlink2022.claims import claims
from fecbench.results.papers.starlink2022.differences import differences
from fecbench.results.papers.starlink2022.figures import table
from fecbench.results.papers.starlink2022.slides import STRATA, TABLE
from fecbench.results.papers.starlink2022.strata import pairs, ratios

__all__ = ["FIGURES", "STRATA", "TABLE", "pairs", "ratios", "table"]

# The figures by the name of the design: `results.papers`.
FIGURES: dict[str, list[PaperFigure]] = {
    "starlink2022-uploads": [
        PaperFigure(
            name="starlink2022-uploads",
            number="Michel and Bonaventure 2022, uploads",
            caption=(
                "Completion time of uploads with FEC in the tail divided by that of the same controller"
                " without, for the same losses, by the mean length of bursts, with 95 % intervals; the"
                " columns are strata of pairs by what the variant without FEC"
                " lost; thick lines are the slides' ratios."
                " Below 1, FEC is faster."
            ),
            draw=table,
            claims=claims,
            differences=differences,
        )
    ]
}
