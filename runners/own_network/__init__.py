"""The network of a user, run in virtual time: what FEC and the congestion control do there.

`design` makes a design of the intervals of a path, `effects` says what its trials show, and `decision` what
to do, by these and by the record.
"""

from fecbench.runners.own_network.decision import Decision, decided
from fecbench.runners.own_network.effects import METRICS, Effect, Run, effects
from fecbench.runners.own_network.own_design import LONGEST_BYTES, PAIRS, design_of

__all__ = [
    "LONGEST_BYTES",
    "METRICS",
    "PAIRS",
    "Decision",
    "Effect",
    "Run",
    "decided",
    "design_of",
    "effects",
]
