"""Noise of the delay: its law to the nanosecond, and the order in which frames leave a link that has it."""

import ctypes
from dataclasses import replace
from math import erf

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.topologies import law_of_schedules as schedules
from tests.topologies.law_of_jitter import LAWS, MOST, NORMAL, PARETO, UNIFORM, Jitter, noise_ns
from tests.topologies.law_of_schedules import LOOPS, NEVER, Step, Timeline
from tests.topologies.test_link_core import ACCEPTED, CODEL, MS, START_NS, Lane, Run, core, run
from tests.topologies.test_schedule import AFTER, FULL, scheduled, some_frames, some_steps

__all__ = ["core"]
WORDS = st.integers(0, 2**64 - 1)
MEANS = st.integers(1, 10**10)


def of_core(core: ctypes.CDLL, law: int, mean_ns: int, seed: int, number: int) -> int:
    core.jitter_ns.restype = ctypes.c_uint64
    return int(core.jitter_ns(ctypes.byref(Jitter(law, mean_ns, seed)), ctypes.c_uint64(number)))


@given(st.sampled_from(LAWS), MEANS, WORDS, WORDS)
@settings(max_examples=200, deadline=None)
@example(PARETO, 10**10, 0, 2**64 - 1)
def test_noise_is_that_of_the_law_to_the_nanosecond(
    core: ctypes.CDLL, law: int, mean_ns: int, seed: int, number: int
) -> None:
    assert of_core(core, law, mean_ns, seed, number) == noise_ns(law, mean_ns, seed, number)


# In means: the distribution functions of the laws, from their definitions.
NORMAL_CUT = 0.9544997361036416
"""Share of a normal distribution within two standard deviations."""


def share_below(law: int, values: np.ndarray) -> np.ndarray:
    if law == UNIFORM:
        return np.asarray(values / 2)
    if law == NORMAL:
        return np.array([0.5 + erf((value - 1) * 2 / 2**0.5) / 2 / NORMAL_CUT for value in values])
    return np.asarray((1 - (1 + values * 18 / 37) ** -3) / 0.999)


def test_many_draws_have_the_mean_the_bounds_and_the_distribution_of_the_law() -> None:
    mean_ns, count = 10 * MS, 40_000
    for law in LAWS:
        noise = np.sort([noise_ns(law, mean_ns, 7, number) for number in range(count)]) / mean_ns
        assert noise.min() >= 0 and noise.max() <= MOST[law]
        assert noise.max() > 0.7 * MOST[law]
        # Five standard deviations of the mean; the widest law has 1.45 of its mean.
        assert noise.mean() == pytest.approx(1, abs=5 * 1.45 / count**0.5)
        distance = np.abs(share_below(law, noise) - (np.arange(count) + 0.5) / count).max()
        assert distance < 1.95 / count**0.5  # Kolmogorov and Smirnov, one in a thousand
        drawing = {noise_ns(law, 10**9, seed, number) for seed in range(30) for number in range(30)}
        assert len(drawing) > 890, "another seed or number has other noise"


some_jitter = st.builds(
    Jitter, st.sampled_from(LAWS), st.integers(1, 1000) | st.integers(1, 30 * MS), st.integers(0, 2**64 - 1)
)


def due(
    lane_delay_ns: int | None, steps: list[Step], arrivals: list[int], lengths: list[int], jitter: Jitter
) -> list[int]:
    """Return when each frame would leave if none delayed another."""
    if lane_delay_ns is None:
        carried = sum(step.keep_ns * step.rate_bps + 8 * 10**9 * step.burst_bytes for step in steps)
        period = sum(step.keep_ns for step in steps)
        until = arrivals[-1] + period * (8 * 10**9 * sum(lengths) // carried + 4)
        timeline = Timeline(steps, LOOPS, until, AFTER)
        sent, _ = schedules.departures(timeline, arrivals, lengths)
        delays = [timeline.delay(at) for at in sent]
    else:
        timeline = Timeline([Step(10**9, AFTER.rate_bps)], LOOPS, arrivals[-1] + 10**9, AFTER)
        sent, _ = schedules.departures(timeline, arrivals, lengths)
        delays = [lane_delay_ns] * len(sent)
    noise = [noise_ns(jitter.law, jitter.mean_ns, jitter.seed, number) for number in range(len(sent))]
    return [at + delay + more for at, delay, more in zip(sent, delays, noise, strict=True)]


def places(exits: list[int]) -> list[int]:
    """Return the place of each frame in the order in which they leave; frames of one instant keep the order
    of sending."""
    order = sorted(range(len(exits)), key=lambda number: (exits[number], number))
    return [order.index(number) + 1 for number in range(len(exits))]


@given(some_steps, some_frames, some_jitter, st.booleans(), st.booleans(), st.data())
@settings(max_examples=120, deadline=None)
def test_with_noise_frames_leave_in_order_unless_they_may_overtake(
    core: ctypes.CDLL,
    steps: list[Step],
    frames: list[tuple[int, int]],
    jitter: Jitter,
    reorder: bool,
    changes: bool,
    data: st.DataObject,
) -> None:
    arrivals = np.cumsum([gap for gap, _ in frames]).tolist()
    lengths = [length for _, length in frames]
    lane = scheduled(steps) if changes else Lane(AFTER.rate_bps, AFTER.delay_ns, queue_packets=10**6)
    lane = replace(lane, jitter=(jitter.law, jitter.mean_ns, jitter.seed), reorder=reorder)
    expected = due(None if changes else AFTER.delay_ns, steps, arrivals, lengths, jitter)
    if not reorder:
        expected = np.maximum.accumulate(expected).tolist()
    looks = sorted(data.draw(st.lists(st.integers(0, max(arrivals) + 1), max_size=8)))
    result = run(
        core,
        lane,
        [START_NS + at for at in arrivals],
        lengths,
        [START_NS + at for at in looks],
        end_ns=NEVER - 1,
    )
    assert set(result.fates) == {ACCEPTED} and result.outcome.conserved and not result.outcome.in_flight
    assert [at - START_NS for at in result.exits] == expected
    assert result.order == places(expected)


def test_a_delay_that_falls_lets_frames_overtake_where_they_may(core: ctypes.CDLL) -> None:
    """A frame a millisecond, and the delay falls from 100 to 10 ms after 50 of them."""
    steps = [Step(50 * MS, 10**9, 100 * MS), Step(10**12, 10**9, 10 * MS)]
    arrivals = [START_NS + n * MS for n in range(100)]
    result = run(core, scheduled(steps), arrivals, [FULL] * 100)
    assert result.order == list(range(1, 101))
    let = run(core, replace(scheduled(steps), reorder=True), arrivals, [FULL] * 100)
    # Frame 50 leaves at 60 ms, frame 0 at 100 ms.
    assert let.order == places(let.exits)
    assert let.order[50] == 1 and let.order[0] == 41
    assert let.outcome.conserved


def test_frames_that_overtake_are_counted_while_they_are_on_their_way(core: ctypes.CDLL) -> None:
    arrivals = [START_NS + n * MS // 10 for n in range(300)]
    lane = Lane(10**9, 0, queue_packets=10**6, jitter=(UNIFORM, 30 * MS, 5), reorder=True)
    for end_ms in range(0, 100, 7):
        result = run(core, lane, arrivals, [FULL] * 300, end_ns=max(arrivals) + end_ms * MS)
        out = sum(place > 0 for place in result.order)
        assert (result.outcome.frames_out, result.outcome.in_flight) == (out, 300 - out), end_ms
        assert result.outcome.conserved


def with_codel(core: ctypes.CDLL, looks: list[int], reorder: bool) -> Run:
    lane = Lane(
        8 * 10**6, 2 * MS, queue_packets=1000, queue=CODEL, jitter=(PARETO, 20 * MS, 3), reorder=reorder
    )
    arrivals = [START_NS + n * MS // 2 for n in range(600)]
    return run(core, lane, arrivals, [1000] * 600, looks)


def test_with_codel_noise_is_the_same_whenever_the_link_is_looked_at(core: ctypes.CDLL) -> None:
    for reorder in (False, True):
        once = with_codel(core, [], reorder)
        assert once.outcome.queue_dropped and (sorted(once.order) != once.order) >= reorder
        often = with_codel(core, [START_NS + n * MS // 7 for n in range(6000)], reorder)
        assert (once.exits, once.order, once.fates) == (often.exits, often.order, often.fates)
        assert often.outcome.conserved


def test_without_noise_a_link_that_may_reorder_does_not(core: ctypes.CDLL) -> None:
    arrivals, lengths = [START_NS + n * MS for n in range(100)], [FULL, 60] * 50
    lane = Lane(10**7, 5 * MS, queue_packets=100)
    plain = run(core, lane, arrivals, lengths)
    free = run(core, replace(lane, reorder=True), arrivals, lengths)
    assert (plain.exits, plain.order) == (free.exits, free.order)


def test_ten_thousands_of_frames_in_flight_leave_in_the_order_of_their_exits(core: ctypes.CDLL) -> None:
    count = 100_000
    arrivals = [START_NS + n * 1000 for n in range(count)]
    lane = Lane(10**11, 0, queue_packets=10**6, jitter=(UNIFORM, 50 * MS, 9), reorder=True)
    result = run(core, lane, arrivals, [60] * count)
    assert result.outcome.frames_out == count and result.outcome.conserved
    order = np.argsort(result.order)
    assert (np.diff(np.array(result.exits)[order]) >= 0).all()
