"""Times at which frames leave a link whose rate changes, written apart from the link: whole numbers, over the
steps laid out one behind the other."""

import ctypes
from bisect import bisect_left, bisect_right
from dataclasses import dataclass, field
from itertools import accumulate

NS = 10**9
LOOPS, HOLDS, ENDS = 0, 1, 2
NEVER = 2**64 - 1


@dataclass(frozen=True)
class Step:
    """A rate and delay for some time, and a burst of bytes at its end."""

    keep_ns: int
    rate_bps: int
    delay_ns: int = 0
    burst_bytes: int = 0


class CStep(ctypes.Structure):
    _fields_ = tuple((name, ctypes.c_uint64) for name in ("end_ns", "rate_bps", "delay_ns", "burst_bytes"))


def in_c(steps: list[Step]) -> "ctypes.Array[CStep]":
    ends = accumulate(step.keep_ns for step in steps)
    return (CStep * len(steps))(
        *(
            CStep(end, step.rate_bps, step.delay_ns, step.burst_bytes)
            for end, step in zip(ends, steps, strict=True)
        )
    )


@dataclass
class Timeline:
    """The steps until a time, and the work that is done at the end of each, in bits times 10⁹."""

    steps: list[Step]
    repeat: int
    until_ns: int
    after: Step
    """The step after its end."""
    ends: list[int] = field(default_factory=list)
    laid: list[Step] = field(default_factory=list)
    work: list[int] = field(default_factory=list)
    """Work at each end, without the burst, and then with it."""

    def __post_init__(self) -> None:
        end, result = 0, 0
        while not self.laid or (self.repeat == LOOPS and end <= self.until_ns):
            for step in self.steps:
                end += step.keep_ns
                result += step.rate_bps * step.keep_ns
                self.laid.append(step)
                self.ends.append(end)
                self.work.append(result)
                result += 8 * NS * step.burst_bytes
        if self.repeat != LOOPS:
            last = self.steps[-1] if self.repeat == HOLDS else self.after
            self.laid.append(Step(2**63 - end, last.rate_bps, last.delay_ns))
            self.ends.append(2**63)
            self.work.append(result + last.rate_bps * (2**63 - end))

    def done(self, at_ns: int) -> int:
        """The work until a time, with what bursts then."""
        number = bisect_right(self.ends, at_ns)
        begins = self.ends[number - 1] if number else 0
        base = self.work[number - 1] + 8 * NS * self.laid[number - 1].burst_bytes if number else 0
        return base + self.laid[number].rate_bps * (at_ns - begins)

    def when(self, work: int) -> int:
        """The first nanosecond in which so much has been done, rounded down; NEVER if it never has."""
        number = bisect_left(self.work, work)
        if number and self.work[number - 1] + 8 * NS * self.laid[number - 1].burst_bytes >= work:
            return self.ends[number - 1]
        if number == len(self.work):
            return NEVER
        step, begins = self.laid[number], self.ends[number] - self.laid[number].keep_ns
        return begins + (work - (self.work[number] - step.rate_bps * step.keep_ns)) // step.rate_bps

    def delay(self, at_ns: int) -> int:
        return self.laid[bisect_right(self.ends, at_ns)].delay_ns

    def rate(self, at_ns: int) -> int:
        return self.laid[bisect_right(self.ends, at_ns)].rate_bps


def departures(
    timeline: Timeline, arrivals: list[int], lengths: list[int], offset_ns: int = 0
) -> tuple[list[int], list[int]]:
    """Return when the last bit of each frame was sent, and when it left, with a queue that holds all.

    Times are those since the schedule began to count.
    """
    sent, leaves = [], []
    free, target, latest = -1, 0, 0
    for at, length in zip(arrivals, lengths, strict=True):
        if at > free:
            target = timeline.done(at + offset_ns)
        target += 8 * NS * length
        due = timeline.when(target)
        free = due if due == NEVER else due - offset_ns
        exits = NEVER if free == NEVER else free + timeline.delay(due)
        latest = max(latest, exits)
        sent.append(free)
        leaves.append(latest)
    return sent, leaves
