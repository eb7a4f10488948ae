"""Analyses of a campaign: frames, pairs of variants, their summary, intervals, rules, equality.

from fecbench.results import analysis

pairing = analysis.paired(analysis.trials(database, campaign), "rQUIC, FEC off", "rQUIC, XOR 4/5")
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fecbench.results.lazy import names_of

if TYPE_CHECKING:
    from fecbench.results.analysis.choosing import choices, log_ratios
    from fecbench.results.analysis.frames import metrics, points, trials
    from fecbench.results.analysis.intervals import ratio_intervals, shares
    from fecbench.results.analysis.pairing import Pairing, baseline_of, comparisons, left_out, paired

__all__ = [
    "Pairing",
    "baseline_of",
    "choices",
    "comparisons",
    "left_out",
    "log_ratios",
    "metrics",
    "paired",
    "points",
    "ratio_intervals",
    "shares",
    "trials",
]

__getattr__ = names_of(
    __name__,
    {
        "choosing": ("choices", "log_ratios"),
        "frames": ("metrics", "points", "trials"),
        "intervals": ("ratio_intervals", "shares"),
        "pairing": ("Pairing", "baseline_of", "comparisons", "left_out", "paired"),
    },
)


def __dir__() -> list[str]:
    """Return the names that a notebook offers behind the package's name."""
    return sorted(__all__)
