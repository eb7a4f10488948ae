"""The laws of the emulated link, on its C core, with the clock in the hands of the test."""

import ctypes
import itertools
import math
from collections import Counter
from collections.abc import Callable
from dataclasses import astuple, dataclass, fields, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.lane_sources import LINK_SOURCES
from tests.topologies.law_of_jitter import Jitter

HERE = Path(__file__).parent
WIRE = HERE.parent.parent / "topologies" / "wire"
DROPTAIL, CODEL, PIE, FQ_CODEL, DUALPI2 = range(5)
ACCEPTED, QUEUE_FULL, OVERSIZE, OUTAGE, POLICED = 1, 2, 3, 4, 5
MS = 10**6


COUNTERS = (
    *("frames_in", "frames_out", "queue_dropped", "oversize_dropped", "outage_dropped", "policer_dropped"),
    *("corrupted", "marked", "in_flight", "max_queue_bytes", "max_queue_packets"),
    *("cross_frames", "cross_dropped"),
)


class Outcome(ctypes.Structure):
    _fields_ = (*((name, ctypes.c_uint64) for name in COUNTERS), ("conserved", ctypes.c_uint32))


@dataclass
class Run:
    fates: list[int]
    exits: list[int]
    order: list[int]
    outcomes: Any
    """Outcome of each direction."""
    codepoints: list[int]
    """ECN codepoints with which frames left, or came if they did not."""

    @property
    def outcome(self) -> Any:
        """Outcome of the one direction that has traffic."""
        return self.outcomes[0]

    @property
    def accepted(self) -> list[int]:
        return [i for i, fate in enumerate(self.fates) if fate == ACCEPTED]


@pytest.fixture(scope="session")
def core(shared_library: Callable[..., ctypes.CDLL]) -> ctypes.CDLL:
    loaded = shared_library(HERE / "link_core.c", WIRE / "lateness.c", *LINK_SOURCES)
    loaded.pool_growth.restype = loaded.quantile_of.restype = loaded.overdue_of.restype = ctypes.c_uint64
    return loaded


@dataclass(frozen=True)
class Lane:
    """A direction of a link."""

    rate_bps: int
    delay_ns: int = 0
    queue_bytes: int = 0
    queue_packets: int = 0
    max_frame_size: int = 1514
    queue: int = DROPTAIL
    outage_from_ns: int = 0
    outage_to_ns: int = 0
    steps: int = 0
    """Address in memory."""
    count: int = 0
    repeat: int = 0
    offset_ns: int = 0
    queue_ns: int = 0
    jitter: tuple[int, int, int] = (0, 0, 0)
    reorder: bool = False
    duplicate_threshold: int = 0
    duplicate_seed: int = 0
    mtu_bytes: int = 0
    policer_bps: int = 0
    policer_burst_bytes: int = 0
    shaper_burst_bytes: int = 0
    corrupt_threshold: int = 0
    corrupt_seed: int = 0
    ecn: bool = False
    ecn_threshold_ns: int = 0
    pie_seed: int = 0
    overtake_threshold: int = 0
    overtake_seed: int = 0
    overtake_by: int = 1
    cross_bps: int = 0
    cross_on_ns: int = 0
    cross_off_ns: int = 0
    cross_seed: int = 0
    mtu_icmp: bool = False
    codel_target_ns: int = 0


TYPES = {
    **{"max_frame_size": ctypes.c_uint32, "queue": ctypes.c_int, "repeat": ctypes.c_int},
    **{"steps": ctypes.c_void_p, "jitter": Jitter},
}


class Settings(ctypes.Structure):
    """A lane, as C has it."""

    _fields_ = tuple(
        (field.name, TYPES.get(field.name, ctypes.c_bool if field.type is bool else ctypes.c_uint64))
        for field in fields(Lane)
    )


START_NS = 2 * MS
NEVER_LOOK = ()
FOREVER = 2**63


def run(
    core: ctypes.CDLL,
    path: Lane,
    arrivals: list[int],
    lengths: list[int],
    looks: tuple[int, ...] | list[int] = NEVER_LOOK,
    end_ns: int = FOREVER,
    codepoints: list[int] | None = None,
    flows: list[int] | None = None,
) -> Run:
    """Frames in one direction of a symmetric link."""
    ways = [0] * len(arrivals)
    return run_link(core, (path, path), ways, arrivals, lengths, looks, end_ns, codepoints, flows)


def run_link(
    core: ctypes.CDLL,
    link: tuple[Lane, Lane],
    ways: list[int],
    arrivals: list[int],
    lengths: list[int],
    looks: tuple[int, ...] | list[int] = NEVER_LOOK,
    end_ns: int = FOREVER,
    codepoints: list[int] | None = None,
    flows: list[int] | None = None,
) -> Run:
    """Frames in both directions of a link: ways[i] says which one frame i takes. Without codepoints, none has
    one; without flows, all are of one."""
    count = len(arrivals)
    fates = (ctypes.c_uint32 * count)()
    exits, order = (ctypes.c_uint64 * count)(), (ctypes.c_uint64 * count)()
    outcomes, ecn = (Outcome * 2)(), (ctypes.c_uint8 * count)(*(codepoints or [0] * count))
    core.run_link(
        (Settings * 2)(*(Settings(*astuple(lane)) for lane in link)),
        ctypes.c_uint64(START_NS),
        ctypes.c_size_t(count),
        (ctypes.c_uint8 * count)(*ways),
        (ctypes.c_uint64 * count)(*arrivals),
        (ctypes.c_uint32 * count)(*lengths),
        ctypes.c_size_t(len(looks)),
        (ctypes.c_uint64 * len(looks))(*looks),
        ctypes.c_uint64(end_ns),
        fates,
        exits,
        order,
        outcomes,
        ecn,
        (ctypes.c_uint32 * count)(*(flows or [0] * count)),
    )
    return Run(list(fates), list(exits), list(order), outcomes, list(ecn))


# Frames of a few hundred µs at these rates, arriving both faster and slower than they can leave.
frames = st.lists(st.tuples(st.integers(0, 3 * MS), st.integers(14, 1600)), min_size=1, max_size=80)
delays = st.sampled_from([0, 1, MS]) | st.integers(0, 50 * MS)
limits = st.builds(
    Lane, rate_bps=st.integers(300_000, 1_000_000_000), delay_ns=delays, queue_bytes=st.integers(1514, 30_000)
) | st.builds(
    Lane, rate_bps=st.integers(300_000, 1_000_000_000), delay_ns=delays, queue_packets=st.integers(1, 20)
)
outages = st.just((0, 0)) | st.tuples(st.integers(0, 20 * MS), st.integers(1, 30 * MS))
paths = st.builds(
    lambda lane, outage: replace(lane, outage_from_ns=outage[0], outage_to_ns=sum(outage)), limits, outages
)


def timed(gaps_and_lengths: list[tuple[int, int]]) -> tuple[list[int], list[int]]:
    gaps, lengths = zip(*gaps_and_lengths, strict=True)
    return list(itertools.accumulate(gaps)), list(lengths)


@given(paths, frames)
@settings(max_examples=150, deadline=None)
def test_a_link_that_is_not_out_is_a_droptail_queue_before_a_serializer_before_a_constant_delay(
    core: ctypes.CDLL, path: Lane, sent: list[tuple[int, int]]
) -> None:
    """Against the same law in exact fractions: a frame is queued until its last bit has left."""
    arrivals, lengths = timed(sent)
    result = run(core, path, arrivals, lengths)
    free = Fraction(0)
    waiting: list[tuple[Fraction, int]] = []
    for i, (now, length) in enumerate(zip(arrivals, lengths, strict=True)):
        # Within the nanosecond that integers can't tell, either fate is right.
        edge = any(abs(departure - now) < 1 for departure, _ in waiting)
        queued = [entry for entry in waiting if entry[0] > now]
        fits = (
            sum(size for _, size in queued) + length <= path.queue_bytes
            if path.queue_bytes
            else len(queued) < path.queue_packets
        )
        expected = ACCEPTED if fits else QUEUE_FULL
        if path.outage_from_ns <= now - START_NS < path.outage_to_ns:
            expected, edge = OUTAGE, False
        if length > path.max_frame_size:
            expected, edge = OVERSIZE, False
        if not edge:
            assert result.fates[i] == expected
        if result.fates[i] == ACCEPTED:
            free = max(free, Fraction(now)) + Fraction(length * 8 * 10**9, path.rate_bps)
            waiting.append((free, length))
            assert 0 <= free + path.delay_ns - result.exits[i] < 1


@given(paths, frames, st.integers(0, 200 * MS))
@settings(max_examples=100, deadline=None)
def test_every_frame_in_is_out_or_dropped_or_in_flight(
    core: ctypes.CDLL, path: Lane, sent: list[tuple[int, int]], stopped_ns: int
) -> None:
    arrivals, lengths = timed(sent)
    stopped_ns = max(stopped_ns, arrivals[-1])
    result = run(core, path, arrivals, lengths, end_ns=stopped_ns)
    fates, outcome = Counter(result.fates), result.outcome
    due = [i for i in result.accepted if result.order[i]]
    assert outcome.frames_in == len(sent)
    assert outcome.queue_dropped == fates[QUEUE_FULL]
    assert outcome.oversize_dropped == fates[OVERSIZE]
    assert outcome.outage_dropped == fates[OUTAGE]
    assert outcome.frames_out == len(due)
    assert outcome.in_flight == fates[ACCEPTED] - len(due)
    assert outcome.conserved
    exits = run(core, path, arrivals, lengths).exits
    assert due == [i for i in result.accepted if exits[i] <= stopped_ns]


@given(paths, paths, frames, st.data())
@settings(max_examples=100, deadline=None)
def test_each_direction_of_a_link_is_that_of_the_symmetric_link_with_its_settings(
    core: ctypes.CDLL, up: Lane, down: Lane, sent: list[tuple[int, int]], data: st.DataObject
) -> None:
    """Frame by frame: whatever happens in the other direction, and whatever it is like."""
    arrivals, lengths = timed(sent)
    ways = data.draw(st.lists(st.sampled_from([0, 1]), min_size=len(sent), max_size=len(sent)))
    looks = sorted(data.draw(st.lists(st.integers(0, 50 * MS), max_size=20)))
    both = run_link(core, (up, down), ways, arrivals, lengths, looks)
    for way, lane in enumerate((up, down)):
        own = [i for i, used_way in enumerate(ways) if used_way == way]
        alone = run(core, lane, [arrivals[i] for i in own], [lengths[i] for i in own], looks)
        assert [both.fates[i] for i in own] == alone.fates
        assert [both.exits[i] for i in own] == alone.exits
        assert [both.order[i] for i in own] == alone.order
        assert bytes(both.outcomes[way]) == bytes(alone.outcome)
        assert both.outcomes[way].conserved


@given(paths, frames)
@settings(max_examples=100, deadline=None)
def test_a_frame_leaves_when_it_is_due_and_not_a_nanosecond_before(
    core: ctypes.CDLL, path: Lane, sent: list[tuple[int, int]]
) -> None:
    arrivals, lengths = timed(sent)
    all_out = run(core, path, arrivals, lengths)
    last = max(all_out.exits)
    at_last = sum(all_out.exits[i] == last for i in all_out.accepted)
    if all_out.accepted and last > arrivals[-1]:
        assert run(core, path, arrivals, lengths, end_ns=last).outcome.in_flight == 0
        assert run(core, path, arrivals, lengths, end_ns=last - 1).outcome.in_flight == at_last


def test_a_saturated_link_sends_at_exactly_its_rate(core: ctypes.CDLL) -> None:
    count, length = 20_000, 1242
    for rate_bps in (300_000, 7_777_777, 10_000_000, 999_999_937, 10_000_000_000):
        path = Lane(rate_bps, queue_packets=count)
        result = run(core, path, [0] * count, [length] * count)
        assert result.exits[-1] == count * length * 8 * 10**9 // rate_bps
        gaps = np.diff(result.exits)
        assert set(gaps) <= {length * 8 * 10**9 // rate_bps, length * 8 * 10**9 // rate_bps + 1}


@given(paths, frames, st.lists(st.integers(0, 50 * MS), max_size=100))
@settings(max_examples=100, deadline=None)
def test_frames_leave_in_order_and_when_the_link_is_looked_at_changes_nothing(
    core: ctypes.CDLL, path: Lane, sent: list[tuple[int, int]], looks: list[int]
) -> None:
    """Time is logical: a process that wakes up late delays no later frame, and drops none."""
    arrivals, lengths = timed(sent)
    never, often = run(core, path, arrivals, lengths), run(core, path, arrivals, lengths, sorted(looks))
    assert never.fates == often.fates
    assert never.exits == often.exits
    assert never.order == often.order
    assert [never.order[i] for i in never.accepted] == list(range(1, len(never.accepted) + 1))


@given(st.integers(1, 60), st.integers(1, 80))
def test_a_queue_in_packets_holds_exactly_its_limit(core: ctypes.CDLL, limit: int, burst: int) -> None:
    result = run(core, Lane(1_000_000, queue_packets=limit), [0] * burst, [1000] * burst)
    assert result.outcome.queue_dropped == max(burst - limit, 0)
    assert result.outcome.max_queue_packets == min(burst, limit)


@given(st.integers(1514, 40_000), st.lists(st.integers(60, 1514), min_size=1, max_size=60))
def test_a_queue_in_bytes_takes_a_frame_exactly_if_it_fits(
    core: ctypes.CDLL, limit: int, lengths: list[int]
) -> None:
    result = run(core, Lane(1_000_000, queue_bytes=limit), [0] * len(lengths), lengths)
    filled = 0
    for length, fate in zip(lengths, result.fates, strict=True):
        assert (fate == ACCEPTED) == (filled + length <= limit)
        filled += length if fate == ACCEPTED else 0
    assert result.outcome.max_queue_bytes == filled


def test_the_delay_line_is_not_part_of_the_queue(core: ctypes.CDLL) -> None:
    """10 s of full frames at 100 Mbit/s are in the air, and a queue for one packet drops none of them."""
    spacing = 1514 * 8 * 10
    count = 10 * 10**9 // spacing
    path = Lane(100_000_000, delay_ns=10 * 10**9, queue_packets=1)
    result = run(core, path, [i * spacing for i in range(count)], [1514] * count, end_ns=10 * 10**9)
    assert result.outcome.queue_dropped == 0
    assert result.outcome.in_flight == count


@given(st.integers(1, 5000), st.integers(1, 5))
@settings(max_examples=30, deadline=None)
def test_frames_that_have_left_are_used_again(core: ctypes.CDLL, held: int, rounds: int) -> None:
    growth = core.pool_growth(ctypes.c_uint64(held), ctypes.c_uint64(rounds))
    assert growth == core.pool_growth(ctypes.c_uint64(held), ctypes.c_uint64(1))


durations = st.integers(0, 15) | st.integers(0, 10**6) | st.integers(0, 2**63)


@given(st.lists(durations, min_size=1, max_size=200), st.floats(0.001, 1))
@settings(max_examples=100, deadline=None)
def test_a_lateness_quantile_bounds_the_true_one_from_above_within_a_sixteenth(
    core: ctypes.CDLL, lateness: list[int], q: float
) -> None:
    values = (ctypes.c_uint64 * len(lateness))(*lateness)
    quantile = core.quantile_of(ctypes.c_size_t(len(lateness)), values, ctypes.c_double(q))
    true = sorted(lateness)[math.ceil(q * len(lateness)) - 1]
    assert true <= quantile <= max(lateness)
    assert quantile - true <= true / 16


@given(st.lists(st.tuples(st.integers(0, 20), st.integers(0, 50)), max_size=30))
def test_the_time_overdue_is_that_in_which_anything_was(
    core: ctypes.CDLL, intervals: list[tuple[int, int]]
) -> None:
    """The size of the union: every nanosecond that is in one of the intervals, or in several, counts once."""
    due = list(itertools.accumulate(step for step, _ in intervals))
    longest = (begin + length for begin, (_, length) in zip(due, intervals, strict=True))
    result = list(itertools.accumulate(longest, max))  # in the order in which they were due
    array = ctypes.c_uint64 * len(intervals)
    overdue = core.overdue_of(ctypes.c_size_t(len(intervals)), array(*due), array(*result))
    assert overdue == len(set().union(*map(range, due, result)))
