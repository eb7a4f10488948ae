"""The rule by which a segment is given up on its way, like in dash.js (AbandonRequestsRule, as of version 4).

A request is given up if, at the rate so far, it would take longer than 1.8 times its playing time, and if
more of it is missing than a whole segment of a level that this rate can carry. Each segment is given up at
most once, and none is given up while the buffer is large.
"""

from dataclasses import dataclass, field

from fecbench.runners.workloads.video.abr import SAFETY, highest_below

TELL_EVERY_S = 0.1
"""Interval of a client's progress reports; browsers report some ten times a second, too."""
GRACE_S = 0.5
"""Time after the first byte in which no segment is given up."""
FEWEST_SAMPLES = 5
"""Fewest measured rates before a segment is given up."""
PATIENCE = 1.8
"""Most time that a segment may take, in playing times."""
LARGE_BUFFER_S = 12.0
"""Buffer above which no segment is given up."""


@dataclass
class Download:
    """A segment on its way, as its player sees it."""

    level: int
    bytes: int
    first_s: float | None = None
    """Time of the first progress report."""
    rates_kbps: list[float] = field(default_factory=list)
    """Rates since then, one at each look."""

    def instead(
        self, kbps: tuple[float, ...], segment_s: float, buffer_s: float, received: int, now_s: float
    ) -> int | None:
        """Return the level to request in place of this download, of which so much has come; None: it
        continues.

        `kbps` is of each level, `buffer_s` what the player holds.
        """
        if self.first_s is None:
            self.first_s = now_s
        if buffer_s > LARGE_BUFFER_S:
            return None
        elapsed_s = now_s - self.first_s
        if elapsed_s > 0:
            self.rates_kbps.append(8e-3 * received / elapsed_s)
        if elapsed_s <= GRACE_S or len(self.rates_kbps) < FEWEST_SAMPLES or self.level == 0:
            return None
        rate_kbps = sum(self.rates_kbps) / len(self.rates_kbps)
        if 8e-3 * self.bytes / rate_kbps < PATIENCE * segment_s:
            return None
        level = highest_below(kbps, SAFETY * rate_kbps)
        of_other = self.bytes * kbps[level] / kbps[self.level]
        return level if self.bytes - received > of_other else None
