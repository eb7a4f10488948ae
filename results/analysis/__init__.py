"""Analyses of a campaign: frames, pairs of variants, their summary, intervals, rules, equality.

from fecbench.results import analysis

pairing = analysis.paired(analysis.trials(database, campaign), "rQUIC, FEC off", "rQUIC, XOR 4/5")
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fecbench.lazy import names_of

if TYPE_CHECKING:
    from fecbench.results.analysis.choosing import choices as choices
    from fecbench.results.analysis.choosing import log_ratios as log_ratios
    from fecbench.results.analysis.frames import metrics as metrics
    from fecbench.results.analysis.frames import points as points
    from fecbench.results.analysis.frames import trials as trials
    from fecbench.results.analysis.intervals import ratio_intervals as ratio_intervals
    from fecbench.results.analysis.intervals import shares as shares
    from fecbench.results.analysis.pairing import Pairing as Pairing
    from fecbench.results.analysis.pairing import baseline_of as baseline_of
    from fecbench.results.analysis.pairing import comparisons as comparisons
    from fecbench.results.analysis.pairing import left_out as left_out
    from fecbench.results.analysis.pairing import paired as paired

__all__, __getattr__ = names_of(__name__, __file__)


def __dir__() -> list[str]:
    """Return the names that a notebook offers behind the package's name."""
    return __all__
