"""The greatest distance of virtual time from emulation: every tolerance of the cross-check, with its reason.

Conclusions in virtual time can be no finer than that, so margins of practical equivalence begin here, too
(`results.analysis.margins`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fecbench.results.store.records import EngineWord

SHORT_BYTES = 10_000
"""A transfer of so many bytes, or fewer, is a short one."""
FAR = 0.1
"""A trial is far off that is beyond its tolerance by more than that. Of the recorded trials of up to 50 kB
few are; of 1 MB under bursts of losses a quarter is, but as many of them are shorter as longer."""
FAR_SHARE = 0.25
"""The trials that are far too long less those that are far too short, and the other way round, may be this
share of all. Where chance alone puts trials far off, they are as many on both sides. A simulator that is far
off in more is wrong in what it does; one that is in fewer moves the mean."""
FAR_EITHER_SHARE = 0.25
"""This share of trials may be far off on either side, of short transfers. Of recorded ones of up to 10 kB, at
most 3 % are, of those that met a loss 6 %; with less, a sample of sixteen could not agree."""
FAR_EITHER_SHARE_OF_OTHERS = 0.35
"""The same of everything else. Of 70 recorded downloads of 1 MB under bursts of losses 34 % are, of others
at most 9 %. Emulated again beside other work, 5 of 14 of the former took 10 % more or less than at first:
what moves them is no error of virtual time."""
TAIL_BY = 0.03
"""The 95th percentile of times may be beyond what their mean may be by that much more. Of 24 recorded arms of
120 and 195 trials, its interval reached from -4 to +5 %."""

MEAN_BY = 0.02
"""A mean may be beyond the tolerance of relative differences by that much. Under losses, a moment decides
what a timer or an acknowledgement finds: of 240 trials of `demo`, 5 took 10 to 30 % less than emulated, and
those of them that were emulated again took the same as before. With time of a processor, two take it in
virtual time, too."""
_BEYOND_MEDIAN = {"median": 0.0, "mean": MEAN_BY, "p95": MEAN_BY + TAIL_BY}
OVERALL = 0.01
"""The tolerance of the mean ratio of two variants over all networks of a design. A byte more or less moves
it by chance in each of them, and averages out. The rest is the processor's share, as with
`SHORT_RATIO`."""

EMULATED = 0.05
"""The share of its time for which the endpoints of a valid emulated trial may have been kept from a
processor (`runners.tasks.validity`). So one arm's trial may be that much longer than the other's
without another reason."""

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Tolerance:
    """The allowed distance of virtual below and above emulated: a share of the value, and an amount in the
    unit of what it is held beside."""

    below: float
    above: float
    below_by: float
    above_by: float
    reason: str
    stalled_below: bool = False
    stalled_above: bool = False
    """Whether it is wider by the share of the time in which the emulated endpoints were kept from a
    processor, as the harness measured it."""

    def ends(self, beside: Floats, stalled: Floats | float = 0.0) -> tuple[Floats, Floats]:
        """The least and the greatest relative difference, virtual / emulated - 1, of each trial. For shares,
        which are held beside nothing, it is the difference itself. `stalled`: for which share of the time
        its endpoints were kept from a processor."""
        low = self.below + self.below_by / beside + self.stalled_below * stalled
        high = self.above + self.above_by / beside + self.stalled_above * stalled
        return np.maximum(-low, _LEAST), high


_LEAST = -0.99  # nothing takes less than no time

HANDSHAKE = Tolerance(
    below=0.0,
    above=0.0,
    below_by=0.006,
    above_by=0.0005,
    reason="TLS takes both endpoints 0.5 to 6 ms of a processor, and none in virtual time by default",
)
"""The tolerance beside the emulated handshake, in s."""
TIME = Tolerance(
    below=0.007,
    above=0.01,
    below_by=0.0024,
    above_by=0.0,
    reason="endpoints take time of a processor in each round trip: 3 % of an RTT of 100 ms, 10 % of 25 ms;"
    " and as long as they were kept from one",
    stalled_below=True,
)
"""The tolerance beside the round-trip time, in s."""
SHORT_RATIO = Tolerance(
    below=0.01,
    above=0.01,
    below_by=0.0,
    above_by=0.0,
    reason="what a processor takes is about the same with FEC and without: of up to 10 kB, within 1 %",
)
OTHER = Tolerance(
    below=0.04,
    above=0.04,
    below_by=0.0,
    above_by=0.0,
    reason="a long transfer under losses moves by some percent with any byte of its handshake",
)
"""The tolerance of ratios of longer transfers, and of metrics that are neither a time nor a share."""
SHARE = Tolerance(
    below=0.005,
    above=0.005,
    below_by=0.0,
    above_by=0.0,
    reason="designs decide at 1 % of late messages: half of that, in percentage points, is seen; emulated"
    " messages are late, too, while endpoints are kept from a processor",
    stalled_below=True,
)
"""The tolerance of metrics that are shares, the late share or the share itself: the difference, not
divided by anything."""
BYTES = Tolerance(
    below=0.01,
    above=0.01,
    below_by=1500.0,
    above_by=1500.0,
    reason="an acknowledgement or a probe more or less goes with any change in time: 1 % and 1,500 bytes",
    stalled_below=True,
    stalled_above=True,
)
"""The tolerance beside the emulated number of bytes."""
PACKETS = Tolerance(
    below=0.01,
    above=0.01,
    below_by=1.0,
    above_by=1.0,
    reason="an acknowledgement or a probe more or less goes with any change in time: 1 % and a packet",
    stalled_below=True,
    stalled_above=True,
)
"""The tolerance beside the emulated number of packets."""


def vouched(*, is_share: bool, short: bool, statistic: str) -> float:
    """Return the difference from 1 below which a ratio of two variants in virtual time says nothing, by the
    statistic of a point: `median`, `mean` or `p95`. For shares it is their difference, and so that of the
    ratio where they are nearly 1, as those are that designs decide at."""
    tolerance = of_ratio(is_share=is_share, short=short)
    return max(tolerance.below, tolerance.above) + (0.0 if is_share else _BEYOND_MEDIAN[statistic])


def vouched_by(engine: EngineWord, *, short: bool, statistic: str) -> float:
    """Return the difference from 1 below which a ratio of two variants says nothing where this engine
    carried the trials out. It is no ratio of shares."""
    return vouched(is_share=False, short=short, statistic=statistic) if engine == "virtual" else EMULATED


def is_short(parameters: Mapping[str, Any]) -> bool:
    """Whether a workload with these parameters is a short transfer."""
    size_bytes = parameters.get("size_bytes")
    return isinstance(size_bytes, int) and size_bytes <= SHORT_BYTES


def far_either(*, short: bool) -> float:
    """Return the share of trials that may be far off on either side."""
    return FAR_EITHER_SHARE if short else FAR_EITHER_SHARE_OF_OTHERS


def of_ratio(*, is_share: bool, short: bool) -> Tolerance:
    """Return the tolerance of a variant compared with its baseline by a metric."""
    if is_share:
        return SHARE
    return SHORT_RATIO if short else OTHER
