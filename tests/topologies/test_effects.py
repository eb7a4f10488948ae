"""Effects of a link besides its queue and its delay: each alone, and all of them together, against a law that
is written here apart from the link, in whole numbers."""

import ctypes
from collections import Counter
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from tests.topologies.law_of_jitter import UNIFORM, drawn, noise_ns
from tests.topologies.test_link_core import (
    ACCEPTED,
    CODEL,
    DROPTAIL,
    DUALPI2,
    FQ_CODEL,
    MS,
    OVERSIZE,
    PIE,
    POLICED,
    QUEUE_FULL,
    START_NS,
    Lane,
    Outcome,
    Settings,
    core,
    frames,
    run,
    timed,
)

__all__ = ["core"]

BYTE = 8 * 10**9
"""A byte, in bits a second for a nanosecond."""


@dataclass
class Bucket:
    """Bytes that may pass at once."""

    rate_bps: int
    capacity: int
    level: int

    @classmethod
    def of(cls, rate_bps: int, burst_bytes: int) -> "Bucket":
        return cls(rate_bps, burst_bytes * BYTE, burst_bytes * BYTE)

    def fill(self, passed_ns: int) -> None:
        self.level = min(self.capacity, self.level + passed_ns * self.rate_bps)


def predicted(
    lane: Lane, arrivals: list[int], lengths: list[int]
) -> tuple[list[int], list[int], list[int], int]:
    """Return the fates, exits and places in the order of leaving, and how many corrupted frames left."""
    policer, policed_ns = Bucket.of(lane.policer_bps, lane.policer_burst_bytes), 0
    credit = Bucket.of(lane.rate_bps, lane.shaper_burst_bytes)
    idle_since, began_ns, work = 0, 0, 0
    fates, exits, sent, corrupted = [], [0] * len(arrivals), [], 0
    last_ns = 0
    for index, (now_ns, length) in enumerate(zip(arrivals, lengths, strict=True)):
        if length > min(lane.max_frame_size, (lane.mtu_bytes or 10**6) + 14):
            fates.append(OVERSIZE)
            continue
        if lane.policer_bps:
            policer.fill(now_ns - policed_ns)
            policed_ns = now_ns
            if policer.level < length * BYTE:
                fates.append(POLICED)
                continue
            policer.level -= length * BYTE
        if sum(serialized > now_ns for _, serialized, _ in sent) >= lane.queue_packets:
            fates.append(QUEUE_FULL)
            continue
        fates.append(ACCEPTED)
        if idle_since < now_ns:
            credit.level = max(0, credit.level - work)
            credit.fill(now_ns - idle_since)
            began_ns, work = now_ns, 0
        work += length * BYTE
        idle_since = serialized_ns = began_ns + max(0, work - credit.level) // lane.rate_bps
        number = len(sent)
        own_ns = serialized_ns + lane.delay_ns
        if lane.jitter[0]:
            own_ns += noise_ns(*lane.jitter, number)
        before = [exit_ns for exit_ns, _, _ in sent[max(0, number - lane.overtake_by) :]]
        on_their_way = [exit_ns for exit_ns in before if exit_ns > serialized_ns]
        if on_their_way and drawn(lane.overtake_seed, number) < lane.overtake_threshold:
            exit_ns = min(on_their_way) - 1
        else:
            last_ns = exit_ns = own_ns if lane.reorder else max(last_ns, own_ns)
        exits[index] = exit_ns
        sent.append((exit_ns, serialized_ns, index))
        copies = 1 + (drawn(lane.duplicate_seed, number) < lane.duplicate_threshold)
        corrupted += copies * (drawn(lane.corrupt_seed, number) < lane.corrupt_threshold)
    places = [0] * len(arrivals)
    place = 0
    for number in sorted(range(len(sent)), key=lambda number: (sent[number][0], number)):
        place += 1 + (drawn(lane.duplicate_seed, number) < lane.duplicate_threshold)
        places[sent[number][2]] = place
    return fates, exits, places, corrupted


seeds = st.integers(0, 2**64 - 1)
thresholds = st.sampled_from([0, 2**29, 2**31, 2**32])
lanes = st.builds(
    Lane,
    rate_bps=st.integers(1_000_000, 1_000_000_000),
    delay_ns=st.sampled_from([0, MS]) | st.integers(0, 20 * MS),
    queue_packets=st.integers(1, 40),
    jitter=st.just((0, 0, 0)) | st.tuples(st.just(UNIFORM), st.integers(1, 5 * MS), seeds),
    reorder=st.booleans(),
    duplicate_threshold=thresholds,
    duplicate_seed=seeds,
    mtu_bytes=st.just(0) | st.integers(68, 1500),
    shaper_burst_bytes=st.just(0) | st.integers(1, 20_000),
    corrupt_threshold=thresholds,
    corrupt_seed=seeds,
    overtake_threshold=thresholds,
    overtake_seed=seeds,
    overtake_by=st.integers(1, 256),
)
policers = st.just((0, 0)) | st.tuples(st.integers(100_000, 10**8), st.integers(1, 20_000))


@settings(max_examples=250, deadline=None)
@given(lanes, policers, frames, st.lists(st.integers(0, 50 * MS), max_size=20))
def test_all_effects_at_once_follow_their_law_whenever_the_link_is_looked_at(
    core: ctypes.CDLL, lane: Lane, policer: tuple[int, int], sent: Any, looks: list[int]
) -> None:
    lane = replace(lane, policer_bps=policer[0], policer_burst_bytes=policer[1])
    arrivals, lengths = timed(sent)
    result = run(core, lane, arrivals, lengths, sorted(looks))
    fates, exits, places, corrupted = predicted(lane, arrivals, lengths)
    assert (result.fates, result.exits, result.order) == (fates, exits, places)
    counts, outcome = Counter(fates), result.outcome
    assert outcome.policer_dropped == counts[POLICED]
    assert outcome.oversize_dropped == counts[OVERSIZE]
    assert outcome.corrupted == corrupted
    assert outcome.conserved and outcome.in_flight == 0


def test_one_frame_of_ten_overtakes_the_three_before_it(core: ctypes.CDLL) -> None:
    """A frame a millisecond, and 100 ms of way."""
    lane = Lane(8_000_000, 100 * MS, queue_packets=10, overtake_threshold=2**32 // 10, overtake_by=3)
    count = 1000
    result = run(core, lane, [n * MS for n in range(count)], [1000] * count)
    picks = [n for n in range(3, count) if drawn(0, n) < lane.overtake_threshold]
    alone = [n for n in picks if not any(n - other in range(1, 4) for other in picks)]
    assert len(alone) > 50
    for n in alone:
        assert result.exits[n] == result.exits[n - 3] - 1
    assert sum(result.order[n] != n + 1 for n in range(count)) <= 4 * len(picks)


def test_a_frame_overtakes_none_that_is_at_the_other_end(core: ctypes.CDLL) -> None:
    lane = Lane(8_000_000, MS, queue_packets=10, overtake_threshold=2**32, overtake_by=256)
    result = run(core, lane, [n * 3 * MS for n in range(20)], [1000] * 20)
    assert result.exits == [n * 3 * MS + 2 * MS for n in range(20)]


@given(st.integers(1000, 10**7), st.integers(2 * 1514, 10**6), st.integers(60, 1514))
@settings(max_examples=50, deadline=None)
def test_a_policer_passes_its_burst_and_then_its_rate(
    core: ctypes.CDLL, rate_kbps: int, burst: int, length: int
) -> None:
    """RFC 2697's committed bucket: at most rate t + burst in any time t, and no less."""
    lane = Lane(10**11, queue_packets=10**6, policer_bps=1000 * rate_kbps, policer_burst_bytes=burst)
    gap_ns = length * 8 * 10**9 // (2000 * rate_kbps)  # twice the rate
    count = 2000
    result = run(core, lane, [n * gap_ns for n in range(count)], [length] * count)
    passed = np.cumsum([length * (fate == ACCEPTED) for fate in result.fates])
    most = burst + np.arange(count) * gap_ns * 1000 * rate_kbps / BYTE
    assert (passed <= most + 1e-6).all()
    offered = np.arange(1, count + 1) * length
    assert (passed >= np.minimum(offered, most - length) - 1e-6).all()


def test_a_shaper_sends_its_credit_at_once_and_earns_it_again_while_it_is_idle(core: ctypes.CDLL) -> None:
    lane = Lane(8_000_000, queue_packets=100, shaper_burst_bytes=3000)  # a byte a µs
    arrivals = [0] * 5 + [7 * MS] * 4
    result = run(core, lane, arrivals, [1000] * 9)
    # Idle from 2 ms on: the bucket is full at 5 ms.
    assert result.exits == [0, 0, 0, MS, 2 * MS, 7 * MS, 7 * MS, 7 * MS, 8 * MS]
    late = run(core, lane, [*[0] * 5, 3 * MS, 3 * MS], [1000] * 7)
    assert late.exits[5:] == [3 * MS, 4 * MS]


@pytest.mark.parametrize("mtu_bytes", [0, 576, 1280, 1400])
def test_packets_up_to_the_mtu_pass_and_no_longer_ones(core: ctypes.CDLL, mtu_bytes: int) -> None:
    lengths = [*range(14, 1600, 3), (mtu_bytes or 1500) + 14, (mtu_bytes or 1500) + 15]
    lane = Lane(10**9, queue_packets=10**4, mtu_bytes=mtu_bytes)
    result = run(core, lane, [0] * len(lengths), lengths)
    expected = [ACCEPTED if length <= (mtu_bytes or 1500) + 14 else OVERSIZE for length in lengths]
    assert result.fates == expected


def draws(seed: int, count: int) -> NDArray[np.uint64]:
    """Return SplitMix64's first outputs, in NumPy."""
    with np.errstate(over="ignore"):
        z = np.uint64(seed) + (np.arange(1, count + 1, dtype=np.uint64)) * np.uint64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return (z ^ (z >> np.uint64(31))) >> np.uint64(32)


def test_a_hundred_thousand_random_frames_are_conserved_by_all_effects_together(core: ctypes.CDLL) -> None:
    for queue in (DROPTAIL, CODEL, PIE, FQ_CODEL, DUALPI2):
        conserved(core, queue, 10**5)


@pytest.mark.slow
def test_a_million_random_frames_are_conserved_by_all_effects_together(core: ctypes.CDLL) -> None:
    for queue in (DROPTAIL, CODEL, PIE, FQ_CODEL, DUALPI2):
        conserved(core, queue, 10**6)


def conserved(core: ctypes.CDLL, queue: int, count: int) -> None:
    """Hold frames of random lengths, times, flows and codepoints to the laws of conservation."""
    random = np.random.default_rng(5)
    lane = Lane(
        100_000_000,
        20 * MS,
        queue_packets=300,
        queue=queue,
        ecn=True,
        pie_seed=11,
        outage_from_ns=10**9,
        outage_to_ns=2 * 10**9,
        jitter=(UNIFORM, 2 * MS, 3),
        duplicate_threshold=2**32 // 50,
        duplicate_seed=5,
        mtu_bytes=1400,
        policer_bps=110_000_000,
        policer_burst_bytes=100_000,
        shaper_burst_bytes=30_000,
        corrupt_threshold=2**32 // 20,
        corrupt_seed=7,
        overtake_threshold=2**32 // 10,
        overtake_seed=9,
        overtake_by=5,
    )
    arrivals = np.cumsum(random.integers(0, 80_000, count), dtype=np.uint64)
    lengths = random.integers(60, 1515, count, dtype=np.uint32)
    codepoints = random.integers(0, 4, count, dtype=np.uint8)
    flows = random.integers(0, 8, count, dtype=np.uint32)
    fates, exits = np.zeros(count, np.uint32), np.zeros(count, np.uint64)
    order, ways, outcomes = np.zeros(count, np.uint64), np.zeros(count, np.uint8), (Outcome * 2)()
    before = codepoints.copy()
    pointers = [
        array.ctypes.data_as(ctypes.c_void_p)
        for array in (ways, arrivals, lengths, fates, exits, order, codepoints, flows)
    ]
    fields = vars(lane).values()
    core.run_link(
        (Settings * 2)(Settings(*fields), Settings(*fields)),
        ctypes.c_uint64(START_NS),
        ctypes.c_size_t(count),
        *pointers[:3],
        ctypes.c_size_t(0),
        None,
        ctypes.c_uint64(2**63),
        *pointers[3:6],
        outcomes,
        *pointers[6:],
    )
    outcome = outcomes[0]
    assert outcome.conserved and outcome.in_flight == 0
    by_fate = Counter(fates.tolist())
    drops_at_turn = queue in (CODEL, FQ_CODEL, DUALPI2)
    of_queue = outcome.queue_dropped - by_fate[QUEUE_FULL]
    assert (of_queue > 0) == drops_at_turn
    expected_fates = (ACCEPTED, OVERSIZE, POLICED, *(() if drops_at_turn else (QUEUE_FULL,)))
    assert min(by_fate[fate] for fate in expected_fates) > count / 1000
    sent = by_fate[ACCEPTED] - of_queue
    copied = draws(5, sent) < lane.duplicate_threshold
    corrupted = draws(7, sent) < lane.corrupt_threshold
    assert outcome.frames_out == sent + copied.sum()
    assert outcome.corrupted == corrupted.sum() + (copied & corrupted).sum()
    assert outcome.frames_in == count + copied.sum()
    assert (order > 0).sum() == sent
    marked = (before != codepoints) & (order > 0)
    assert (codepoints[marked] == 3).all() and (before[marked] > 0).all()
    assert (outcome.marked > 0) == (queue != DROPTAIL)
    assert marked.sum() <= outcome.marked <= 2 * marked.sum()
