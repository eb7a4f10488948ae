"""Content that a campaign in the field sends over a path, in each direction, before it is sent.

Every transfer counts, and the one that warms the path up before each block. Repair, headers and what is sent
again come on top; probes and volleys are counted.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from fecbench.quantities import counted
from fecbench.results.store.records import Group, TrialKey
from fecbench.runners.campaign.experiment import Experiment
from fecbench.runners.tasks.task import FIELD
from fecbench.runners.workloads.video import session

PROBES = 150
"""Probes of a block, and of each rest, at most in usual cases."""
PROBE_BYTES = 64 + 28
VOLLEY_BYTES = 100 * (1200 + 28)
"""Full packets before each block, in each direction; up, they may be sent twice."""


@dataclass(frozen=True)
class Traffic:
    """Bytes that a campaign sends."""

    up_bytes: int
    down_bytes: int
    trials: int

    def words(self) -> str:
        """Return it for a person."""
        return (
            f"{counted(self.trials, 'transfer')}, and one more before each block, send about"
            f" {_size(self.up_bytes)} up"
            f" and {_size(self.down_bytes)} down, without headers, repair and what is sent again"
        )


def of_campaign(experiment: Experiment, keys: Sequence[TrialKey]) -> Traffic:
    """Return what these trials send at most."""
    up_bytes = down_bytes = 0
    blocks = set[Group]()
    for key in keys:
        pair = experiment.task(key, FIELD).pairs[0]
        up, down = pair.demand.up_bytes, pair.demand.down_bytes
        if pair.session is not None:
            ladder, _ = session.read(pair.session)
            down = round(ladder.duration_s * ladder.levels[-1].kbps * 1000 / 8)  # at most: the highest level
        transfers = 1 if key.group in blocks else 2
        probes = PROBE_BYTES * PROBES * transfers
        volley = 0 if key.group in blocks else VOLLEY_BYTES
        blocks.add(key.group)
        up_bytes += transfers * up + probes + 2 * volley
        down_bytes += transfers * down + probes + volley
    return Traffic(up_bytes, down_bytes, len(keys))


def _size(count: int) -> str:
    return f"{count / 1e9:.2g} GB" if count >= 1e9 else f"{count / 1e6:.2g} MB"
