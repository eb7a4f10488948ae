"""A link whose rate and delay change: every frame leaves when the law says, to the nanosecond."""

import ctypes

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.topologies import law_of_schedules as law
from tests.topologies.law_of_schedules import ENDS, HOLDS, LOOPS, NEVER, Step, Timeline
from tests.topologies.test_link_core import ACCEPTED, MS, QUEUE_FULL, START_NS, Lane, core, run

__all__ = ["core"]
FULL = 1514
SECOND = 10**9
AFTER = Step(1, 5_000_000, 3 * MS)


def scheduled(steps: list[Step], repeat: int = LOOPS, offset_ns: int = 0, **queue: int) -> Lane:
    """A lane with these steps, and a queue for all."""
    in_memory = law.in_c(steps)
    KEPT.append(in_memory)
    limit = queue or {"queue_packets": 10**7}
    return Lane(
        rate_bps=AFTER.rate_bps,
        delay_ns=AFTER.delay_ns,
        steps=ctypes.addressof(in_memory),
        count=len(steps),
        repeat=repeat,
        offset_ns=offset_ns,
        **limit,
    )


KEPT: list[object] = []


def compare(
    core: ctypes.CDLL, steps: list[Step], repeat: int, offset_ns: int, arrivals: list[int], lengths: list[int]
) -> list[int]:
    """Frames over a schedule, each of which leaves when the law says; when that is."""
    until_ns = arrivals[-1] + offset_ns + 2 * sum(step.keep_ns for step in steps)
    carries = sum(step.keep_ns * step.rate_bps + 8 * SECOND * step.burst_bytes for step in steps)
    if repeat == LOOPS:  # long enough for all of them
        until_ns += sum(step.keep_ns for step in steps) * (8 * SECOND * sum(lengths) // carries + 2)
    timeline = Timeline(steps, repeat, until_ns, AFTER)
    _, exits = law.departures(timeline, arrivals, lengths, offset_ns)
    lane = scheduled(steps, repeat, offset_ns)
    result = run(core, lane, [START_NS + at for at in arrivals], lengths, end_ns=NEVER - 1)
    assert set(result.fates) == {ACCEPTED}
    leaving = [number for number, at in enumerate(exits) if at != NEVER]
    assert [result.exits[number] - START_NS for number in leaving] == [exits[number] for number in leaving]
    order = [result.order[number] for number in leaving]
    assert order == list(range(1, len(leaving) + 1))
    outcome = result.outcome
    assert outcome.conserved and outcome.in_flight == len(arrivals) - len(leaving)
    return exits


some_steps = st.lists(
    st.builds(
        Step,
        keep_ns=st.integers(1, 50) | st.integers(1, 5 * MS),
        rate_bps=st.just(0) | st.integers(1, 10**6) | st.integers(10**6, 10**10),
        delay_ns=st.integers(0, 20 * MS),
        burst_bytes=st.just(0) | st.integers(1, 4 * FULL),
    ),
    min_size=1,
    max_size=6,
).filter(
    lambda steps: sum(step.keep_ns * step.rate_bps // (8 * SECOND) + step.burst_bytes for step in steps) > 50
)
some_frames = st.lists(
    st.tuples(st.integers(0, 3) | st.integers(0, 4 * MS), st.integers(60, FULL)), min_size=1, max_size=20
)


@given(some_steps, st.sampled_from([LOOPS, HOLDS, ENDS]), st.integers(0, 20 * MS), some_frames)
@settings(max_examples=150, deadline=None)
@example([Step(1000, 8 * 10**9, 5), Step(1000, 8 * 10**9, 900)], LOOPS, 0, [(0, 1000)])
@example([Step(10, 0, 0, 100), Step(10, 10**10, 0, 0)], LOOPS, 5, [(0, 60), (0, 60), (0, 60)])
def test_every_frame_leaves_when_the_law_says(
    core: ctypes.CDLL, steps: list[Step], repeat: int, offset_ns: int, frames: list[tuple[int, int]]
) -> None:
    arrivals = list(np.cumsum([gap for gap, _ in frames]).tolist())
    compare(core, steps, repeat, offset_ns, arrivals, [length for _, length in frames])


def many(count: int, seed: int, mean_gap_ns: float) -> tuple[list[int], list[int]]:
    rng = np.random.default_rng(seed)
    gaps = np.where(rng.random(count) < 0.5, 0, rng.exponential(2 * mean_gap_ns, count))
    return np.cumsum(gaps).astype(int).tolist(), rng.integers(60, FULL + 1, count).tolist()


def of_kind(kind: str) -> list[Step]:
    rng = np.random.default_rng(7)
    match kind:
        case "opportunities":
            return [Step(int(keep) * MS, 0, 20 * MS, FULL) for keep in rng.integers(1, 6, 400)]
        case "piecewise":
            return [Step(100 * MS, int(rate), 20 * MS) for rate in rng.uniform(1e5, 2e7, 300)]
        case "outages":
            return [
                Step(50 * MS, int(rate) * (n % 3 > 0), int(delay) * MS)
                for n, (rate, delay) in enumerate(
                    zip(rng.uniform(1e5, 2e7, 300), rng.integers(0, 200, 300), strict=True)
                )
            ]
        case _:
            return [
                Step(int(keep), int(rate), int(delay), int(burst))
                for keep, rate, delay, burst in zip(
                    rng.integers(1, 30 * MS, 500),
                    rng.integers(0, 10**7, 500),
                    rng.integers(0, 50 * MS, 500),
                    rng.integers(0, 3000, 500) * (rng.random(500) < 0.3),
                    strict=True,
                )
            ]


KINDS = ("opportunities", "piecewise", "outages", "anything")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "count", [10_000, pytest.param(1_000_000, marks=pytest.mark.slow)], ids=["some", "a million"]
)
def test_frames_over_a_long_schedule_leave_when_the_law_says(
    core: ctypes.CDLL, kind: str, count: int
) -> None:
    steps = of_kind(kind)
    carried = sum(step.keep_ns * step.rate_bps / (8 * SECOND) + step.burst_bytes for step in steps)
    mean_gap_ns = FULL / 2 * sum(step.keep_ns for step in steps) / carried
    arrivals, lengths = many(count, 3, mean_gap_ns * 1.05)
    compare(core, steps, LOOPS, 123_456_789, arrivals, lengths)


def test_one_opportunity_a_millisecond_is_12_mbps_within_a_millisecond(core: ctypes.CDLL) -> None:
    arrivals, lengths = [n * MS // 2 for n in range(3000)], [FULL] * 3000
    of_steps = compare(core, [Step(MS, 0, 0, FULL)], LOOPS, 0, arrivals, lengths)
    constant = Lane(rate_bps=8 * FULL * 1000, queue_packets=10**6)
    of_rate = run(core, constant, [START_NS + at for at in arrivals], lengths).exits
    assert max(abs(a - (b - START_NS)) for a, b in zip(of_steps, of_rate, strict=True)) <= MS


def test_an_outage_drops_by_the_queues_rule_alone(core: ctypes.CDLL) -> None:
    steps = [Step(SECOND, 8 * 10**6), Step(5 * SECOND, 0), Step(60 * SECOND, 8 * 10**6)]
    arrivals = [n * 10 * MS for n in range(800)]
    result = run(core, scheduled(steps, queue_packets=50), [START_NS + at for at in arrivals], [1000] * 800)
    dropped = [number for number, fate in enumerate(result.fates) if fate == QUEUE_FULL]
    # It fills with 50 after half a second, and has room again a millisecond after the end.
    assert dropped == list(range(150, 600 + 1))
    assert result.outcome.conserved


def test_a_queue_in_time_holds_what_the_present_rate_sends_meanwhile(core: ctypes.CDLL) -> None:
    steps = [Step(SECOND, 80 * 10**6), Step(SECOND, 8 * 10**6), Step(SECOND, 0)]
    for at, hits in ((0, 1000), (SECOND, 100), (2 * SECOND, 15)):
        lane = scheduled(steps, queue_ns=100 * MS)
        result = run(core, lane, [START_NS + at] * 2000, [1000] * 2000)
        assert result.fates.count(ACCEPTED) == hits


def test_what_arrives_before_the_start_has_the_constant_rate(core: ctypes.CDLL) -> None:
    lane = scheduled([Step(SECOND, 10**9, 7 * MS)])
    result = run(core, lane, [0, START_NS], [1000, 1000])
    assert result.exits == [8000 * SECOND // AFTER.rate_bps + AFTER.delay_ns, START_NS + 8000 + 7 * MS]


def test_a_loop_of_ages_does_not_overflow(core: ctypes.CDLL) -> None:
    lane = scheduled([Step(SECOND, 0), Step(SECOND, 8 * 10**9)], offset_ns=2**62)
    result = run(core, lane, [START_NS + 2**62], [1000], end_ns=NEVER - 1)
    assert result.fates == [ACCEPTED]
    assert 0 < result.exits[0] - START_NS - 2**62 <= SECOND + 1000
