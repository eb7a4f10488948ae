"""The next level of a ladder that a player requests: five rules, by their names in designs.

Levels are numbered from 0, the lowest. Each rule sees what a player knows when it asks for a segment
(`View`). A rule that goes by throughput takes the lowest level as long as it has measured none.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

OLD_SHARE = 0.8
"""Share of the old estimate in the new one: EWMA 0.8/0.2, as in goDASH's conventional rule."""
GAMMA_P = 5.0
"""gamma p of BOLA, the value of its paper's evaluation (Spiteri, Urgaonkar and Sitaraman 2016)."""
SWITCH_S = 10.0
"""DYNAMIC goes by BOLA from this buffer on (Spiteri, Sitaraman and Sparacio 2018)."""
SAFETY = 0.9
"""Share of the throughput that DYNAMIC's throughput rule uses (dash.js's bandwidth safety factor)."""
RESERVOIR, UPPER = 90 / 240, 216 / 240
"""Shares of the largest buffer: up to the first, BBA-0 takes the lowest level; from the second on, the
highest. The paper's buffer has 240 s, a reservoir of 90 s and a cushion of 126 s (Huang et al. 2014)."""


@dataclass
class View:
    """A player's knowledge when it requests a segment."""

    kbps: tuple[float, ...]
    """Rate of each level, ascending."""
    segment_s: float
    buffer_most_s: float
    """Largest buffer."""
    buffer_s: float = 0.0
    """Media that has arrived and was not played."""
    estimate_kbps: float | None = None
    """Estimate of the throughput; None: not measured yet."""
    level: int | None = None
    """Level of the previous segment; None: this is the first."""
    by_buffer: bool = False
    """Whether DYNAMIC goes by BOLA."""
    fixed: int = 0
    """The level that `fixed` takes."""


def estimated(before_kbps: float | None, sample_kbps: float) -> float:
    """The estimate of the throughput after a sample: the first one itself, then the EWMA."""
    if before_kbps is None:
        return sample_kbps
    return OLD_SHARE * before_kbps + (1 - OLD_SHARE) * sample_kbps


def highest_below(kbps: tuple[float, ...], most_kbps: float) -> int:
    """The highest level of at most this rate; the lowest where none is."""
    return max((level for level, rate in enumerate(kbps) if rate <= most_kbps), default=0)


def fixed(view: View) -> int:
    """Always the same level."""
    return min(view.fixed, len(view.kbps) - 1)


def throughput(view: View) -> int:
    """The highest level that the estimate carries (goDASH's `conventional`)."""
    return highest_below(view.kbps, view.estimate_kbps or 0.0)


def bola(view: View) -> int:
    """The level m that maximises (V · (u(m) + gp) − Q) / S(m) (BOLA-BASIC).

    Q is the buffer in segments, u(m) = ln(S(m) / S(0)), and
    V = (Qmax − 1) / (u(M) + gp): so the highest level is
    chosen when the buffer has room for one more segment. The higher of
    equal levels wins.
    """
    utilities = [math.log(rate / view.kbps[0]) for rate in view.kbps]
    most = max(2.0, view.buffer_most_s / view.segment_s)
    control = (most - 1) / (utilities[-1] + GAMMA_P)
    queue = view.buffer_s / view.segment_s
    values = [
        (control * (utility + GAMMA_P) - queue) / rate
        for utility, rate in zip(utilities, view.kbps, strict=True)
    ]
    return max(range(len(values)), key=lambda level: (values[level], level))


def dynamic(view: View) -> int:
    """Throughput while the buffer is small, BOLA from 10 s on, as dash.js switches (DYNAMIC).

    It goes over to BOLA when the buffer has 10 s and BOLA's level is at least that of throughput, and back
    when the buffer is below 10 s and BOLA's level is below it.
    """
    of_rate = highest_below(view.kbps, SAFETY * (view.estimate_kbps or 0.0))
    of_buffer = bola(view)
    if view.by_buffer:
        view.by_buffer = not (view.buffer_s < SWITCH_S and of_buffer < of_rate)
    else:
        view.by_buffer = view.buffer_s >= SWITCH_S and of_buffer >= of_rate
    return of_buffer if view.by_buffer else of_rate


def buffer(view: View) -> int:
    """BBA-0, algorithm 1: the rate is a straight line of the buffer between reservoir and upper bound.

    The level stays as long as that line is between the next lower level and the next higher one.
    """
    kbps, top = view.kbps, len(view.kbps) - 1
    share = view.buffer_s / view.buffer_most_s
    if view.level is None or share <= RESERVOIR:
        return 0
    if share >= UPPER:
        return top
    line_kbps = kbps[0] + (kbps[-1] - kbps[0]) * (share - RESERVOIR) / (UPPER - RESERVOIR)
    if line_kbps >= kbps[min(view.level + 1, top)]:
        return max(level for level, rate in enumerate(kbps) if rate < line_kbps or level == 0)
    if line_kbps <= kbps[max(view.level - 1, 0)]:
        return min(level for level, rate in enumerate(kbps) if rate > line_kbps or level == top)
    return view.level


RULES: dict[str, Callable[[View], int]] = {
    "throughput": throughput,
    "bola": bola,
    "dynamic": dynamic,
    "buffer": buffer,
    "fixed": fixed,
}
