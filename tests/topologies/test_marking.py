"""Queues that mark: CoDel with ECN as Linux has it, PIE after RFC 8033, a threshold; and marks in headers."""

import ctypes
import itertools
import random
import struct

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from tests.topologies.law_of_jitter import drawn
from tests.topologies.test_codel import Packet, Queue, phases, steady
from tests.topologies.test_link_core import ACCEPTED, CODEL, MS, PIE, QUEUE_FULL, Lane, core, run

__all__ = ["core"]

NOT_CAPABLE, ECT_1, ECT_0, CE = range(4)
UDP, TCP, ICMP = 17, 6, 1
RATE_BPS, BYTE_NS = 8_000_000, 1000


# ---- Headers ----


def ones_sum(header: bytes) -> int:
    """Return the sum of RFC 791; 0xffff: the checksum is right."""
    total = sum(struct.unpack(f"!{len(header) // 2}H", header))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return total


def ipv4(tos: int, protocol: int, options: bytes, payload: bytes, identification: int = 7) -> bytes:
    header = struct.pack(
        "!BBHHHBBH8s",
        *(
            0x45 + len(options) // 4,
            tos,
            20 + len(options) + len(payload),
            identification,
            0x4000,
            64,
            protocol,
            0,
        ),
        bytes(range(8)),
    )
    header += options
    checksum = 0xFFFF - ones_sum(header)
    return bytes(12) + b"\x08\x00" + header[:10] + struct.pack("!H", checksum) + header[12:] + payload


def ipv6(traffic_class: int, flow: int, protocol: int, payload: bytes) -> bytes:
    first = 6 << 28 | traffic_class << 20 | flow
    return (
        bytes(12)
        + b"\x86\xdd"
        + struct.pack("!IHBB", first, len(payload), protocol, 64)
        + bytes(32)
        + payload
    )


def with_ce(core: ctypes.CDLL, frame: bytes) -> tuple[int, bytes]:
    buffer = ctypes.create_string_buffer(frame, len(frame))
    core.with_ce.restype = ctypes.c_uint32
    return core.with_ce(buffer, len(frame)), buffer.raw


tos = st.integers(0, 255)
payloads = st.binary(max_size=40)
options = st.integers(0, 10).map(lambda words: b"\1" * 4 * words)


@given(tos, st.sampled_from([UDP, TCP, ICMP]), options, payloads, st.integers(0, 65535))
@settings(max_examples=300, deadline=None)
def test_a_mark_in_ipv4_changes_two_bits_and_keeps_the_checksum_right(
    core: ctypes.CDLL, before: int, protocol: int, words: bytes, payload: bytes, identification: int
) -> None:
    frame = ipv4(before, protocol, words, payload, identification)
    codepoint, marked = with_ce(core, frame)
    assert codepoint == before & 3
    assert marked == ipv4(before | CE, protocol, words, payload, identification)
    assert with_ce(core, marked) == (CE, marked)


def test_a_checksum_stays_right_whatever_it_was(core: ctypes.CDLL) -> None:
    for identification in range(65536):
        _, marked = with_ce(core, ipv4(2, UDP, b"", b"", identification))
        assert ones_sum(marked[14:]) == 0xFFFF


@given(tos, st.integers(0, 2**20 - 1), payloads)
@settings(max_examples=100, deadline=None)
def test_a_mark_in_ipv6_changes_neither_dscp_nor_flow_label(
    core: ctypes.CDLL, before: int, flow: int, payload: bytes
) -> None:
    codepoint, marked = with_ce(core, ipv6(before, flow, UDP, payload))
    assert (codepoint, marked) == (before & 3, ipv6(before | CE, flow, UDP, payload))


@given(st.binary(max_size=60))
def test_a_frame_of_something_else_is_no_ip_and_stays_as_it_is(core: ctypes.CDLL, rest: bytes) -> None:
    for frame in (bytes(12) + b"\x08\x06" + rest, bytes(12) + b"\x08\x00" + rest[:19], rest[:14]):
        assert with_ce(core, frame) == (NOT_CAPABLE, frame)


@given(
    st.sampled_from([UDP, TCP]),
    st.booleans(),
    options,
    st.binary(min_size=32, max_size=60),
    st.integers(0, 2**32 - 1),
)
@settings(max_examples=300, deadline=None)
def test_the_bit_that_flips_is_one_that_the_checksum_of_the_transport_covers(
    core: ctypes.CDLL, protocol: int, is_ipv6: bool, words: bytes, payload: bytes, draw: int
) -> None:
    frame = ipv6(0, 0, protocol, payload) if is_ipv6 else ipv4(0, protocol, words, payload)
    buffer = ctypes.create_string_buffer(frame, len(frame))
    core.with_flip(buffer, len(frame), ctypes.c_uint64(draw))
    ((place, flipped),) = (
        (i, a ^ b) for i, (a, b) in enumerate(zip(frame, buffer.raw, strict=True)) if a != b
    )
    assert flipped.bit_count() == 1
    transport = 14 + (40 if is_ipv6 else 20 + len(words))
    assert place >= transport + (8 if protocol == UDP else 16)


# ---- Queues ----


class MarkingQueue(Queue):
    """Linux's `codel_dequeue`: RFC 8289, but that it marks a packet that can be marked, and sends it."""

    def __init__(self, codepoints: list[int], target: int = 5 * MS) -> None:
        super().__init__(target)
        self.codepoints = codepoints

    def mark(self, packet: Packet | None) -> bool:
        assert packet
        if self.codepoints[packet.index] == NOT_CAPABLE:
            return False
        self.codepoints[packet.index] = CE
        return True

    def deque(self, now: int) -> Packet | None:
        packet, ok_to_drop = self.dodeque(now)
        if self.dropping:
            self.dropping = ok_to_drop
            while self.dropping and now >= self.drop_next:
                self.count += 1
                if self.mark(packet):
                    self.drop_next = self.control_law(self.drop_next, self.count)
                    break
                self.drop(packet)
                packet, self.dropping = self.dodeque(now)
                if self.dropping:
                    self.drop_next = self.control_law(self.drop_next, self.count)
        elif ok_to_drop:
            if not self.mark(packet):
                self.drop(packet)
                packet, _ = self.dodeque(now)
            self.dropping = True
            delta = self.count - self.lastcount
            self.count = delta if delta > 1 and now - self.drop_next < 16 * 100 * MS else 1
            self.drop_next = self.control_law(now, self.count)
            self.lastcount = self.count
        return packet


def expected_of_codel(arrivals: list[int], length: int, codepoints: list[int]) -> tuple[list[int], list[int]]:
    """Return the codepoints with which packets leave, and which are dropped."""
    queue, free, waiting = MarkingQueue(list(codepoints)), 0, list(enumerate(arrivals))[::-1]
    while waiting or queue.packets:
        now = free if queue.packets else max(free, waiting[-1][1])
        while waiting and (waiting[-1][1] < now or (not queue.packets and waiting[-1][1] <= now)):
            queue.packets.append(Packet(*waiting.pop(), length))
        if packet := queue.deque(now):
            free = now + packet.length * BYTE_NS
    return queue.codepoints, queue.lost


shares = st.sampled_from([0.0, 0.5, 1.0])


@given(
    phases, st.integers(1000, 1514), shares, st.integers(0, 99), st.lists(st.integers(0, 10**10), max_size=20)
)
@settings(max_examples=60, deadline=None)
def test_codel_marks_what_linux_marks_and_drops_what_cannot_be_marked(
    core: ctypes.CDLL, load: list[tuple[int, int]], length: int, capable: float, seed: int, looks: list[int]
) -> None:
    arrivals, dice = [at_ns // 8 for at_ns in steady(load)], random.Random(seed)
    codepoints = [
        dice.choice([ECT_0, ECT_1, CE]) if dice.random() < capable else NOT_CAPABLE for _ in arrivals
    ]
    lane = Lane(RATE_BPS, MS, queue_packets=10**6, queue=CODEL, ecn=True)
    result = run(core, lane, arrivals, [length] * len(arrivals), sorted(looks), codepoints=codepoints)
    marked, lost = expected_of_codel(arrivals, length, codepoints)
    assert result.codepoints == marked
    assert [i for i, place in enumerate(result.order) if not place] == lost
    assert result.outcome.marked == sum(a != b for a, b in zip(codepoints, marked, strict=True))
    assert result.outcome.conserved


def test_codel_marks_in_overload_at_all_codepoints_and_nothing_without_ecn(core: ctypes.CDLL) -> None:
    arrivals = [n * MS for n in range(3000)]
    for codepoint, uses_ecn in itertools.product((NOT_CAPABLE, ECT_1, ECT_0), (False, True)):
        lane = Lane(RATE_BPS, queue_packets=10**6, queue=CODEL, ecn=uses_ecn)
        outcome = run(core, lane, arrivals, [1200] * 3000, codepoints=[codepoint] * 3000).outcome
        is_marked = uses_ecn and codepoint != NOT_CAPABLE
        assert (outcome.marked > 20, outcome.queue_dropped > 20) == (is_marked, not is_marked)


halves = st.integers(1, 40).map(lambda half: half * MS // 2)
"""Waits of frames that come at whole milliseconds are such times."""


@given(
    halves | st.integers(1, 20 * MS),
    st.lists(
        st.tuples(
            st.integers(0, 3).map(lambda ms: ms * MS) | st.integers(0, 3 * MS), st.sampled_from([0, 1, 2, 3])
        ),
        max_size=80,
    ),
)
@example(MS // 2, [(0, ECT_0), (MS, ECT_0)])
@settings(max_examples=80, deadline=None)
def test_a_threshold_marks_exactly_what_waited_as_long(
    core: ctypes.CDLL, threshold_ns: int, sent: list[tuple[int, int]]
) -> None:
    arrivals = list(itertools.accumulate(gap for gap, _ in sent))
    codepoints = [codepoint for _, codepoint in sent]
    lane = Lane(RATE_BPS, queue_packets=10**6, ecn=True, ecn_threshold_ns=threshold_ns)
    result, free, expected = run(core, lane, arrivals, [1500] * len(sent), codepoints=codepoints), 0, []
    for now, codepoint in zip(arrivals, codepoints, strict=True):
        begins = max(now, free)
        free = begins + 1500 * BYTE_NS
        expected.append(CE if codepoint and begins - now >= threshold_ns else codepoint)
    assert result.codepoints == expected


class Pie:
    """RFC 8033, sections 4.1 to 4.4 and 5.1, in seconds and floats."""

    REFERENCE, UPDATE, MAX_BURST = 0.015, 0.015, 0.150

    def __init__(self) -> None:
        self.probability = self.qdelay_old = 0.0
        self.burst_allowance = self.MAX_BURST

    def step(self, qdelay: float) -> float:
        p = 0.125 * (qdelay - self.REFERENCE) + 1.25 * (qdelay - self.qdelay_old)
        scales = ((1e-6, 2048), (1e-5, 512), (1e-4, 128), (1e-3, 32), (1e-2, 8), (1e-1, 2))
        for below, divisor in scales:
            if self.probability < below:
                return p / divisor
        return min(p, 0.02)

    def update(self, qdelay: float) -> None:
        self.probability += self.step(qdelay)
        if qdelay == 0 and self.qdelay_old == 0:
            self.probability *= 0.98
        self.probability = min(max(self.probability, 0.0), 1.0)
        self.burst_allowance = max(0.0, self.burst_allowance - self.UPDATE)
        half = self.REFERENCE / 2
        if self.probability == 0 and qdelay < half and self.qdelay_old < half:
            self.burst_allowance = self.MAX_BURST
        self.qdelay_old = qdelay

    def verdict(self, queued_bytes: int, draw: float, capable: bool) -> int:
        """0 passes, 1 is marked, 2 is dropped."""
        if self.burst_allowance > 1e-9:
            return 0
        if (self.qdelay_old < self.REFERENCE / 2 and self.probability < 0.2) or queued_bytes <= 2 * 1514:
            return 0
        if draw >= self.probability:
            return 0
        return 1 if capable and self.probability < 0.1 else 2


@given(st.floats(-8, 0).map(lambda exponent: 10**exponent), st.floats(0, 2), st.floats(0, 2))
def test_a_step_of_pie_is_that_of_the_rfc(
    core: ctypes.CDLL, probability: float, delay: float, last: float
) -> None:
    assume(all(abs(probability / edge - 1) > 1e-6 for edge in (1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1)))
    core.pie_step_of.restype = ctypes.c_int64
    own = Pie()
    own.probability, own.qdelay_old = int(probability * 2**48) / 2**48, int(last * 1e9) / 1e9
    arguments = (int(probability * 2**48), int(delay * 1e9), int(last * 1e9))
    step = core.pie_step_of(*map(ctypes.c_int64, arguments)) / 2**48
    assert step == pytest.approx(own.step(int(delay * 1e9) / 1e9), rel=1e-9, abs=1e-12)


@given(
    st.lists(st.tuples(st.integers(1, 400), st.integers(0, 14 * MS)), min_size=1, max_size=5),
    st.integers(0, 2**64 - 1),
    shares,
)
@settings(max_examples=60, deadline=None)
def test_pie_drops_and_marks_what_the_rfc_does_by_the_same_draws(
    core: ctypes.CDLL, load: list[tuple[int, int]], seed: int, capable: float
) -> None:
    arrivals, length = [at_ns // 10 for at_ns in steady(load)], 1000
    codepoints = [ECT_0 if drawn(1, n) < capable * 2**32 else NOT_CAPABLE for n in range(len(arrivals))]
    lane = Lane(RATE_BPS, queue_packets=10**6, queue=PIE, pie_seed=seed, ecn=True)
    result = run(core, lane, arrivals, [length] * len(arrivals), codepoints=codepoints)
    pie, free, update_ns, leaves = Pie(), 0, arrivals[0] + 15 * MS, []
    for n, now in enumerate(arrivals):
        while update_ns <= now:
            pie.update(max(0, free - update_ns) / 1e9)
            update_ns += 15 * MS
        queued = sum(length for leaves_ns in leaves if leaves_ns > now)
        verdict = pie.verdict(queued, drawn(seed, n) / 2**32, codepoints[n] != NOT_CAPABLE)
        assert result.fates[n] == (QUEUE_FULL if verdict == 2 else ACCEPTED)
        assert result.codepoints[n] == (CE if verdict == 1 else codepoints[n])
        if verdict != 2:
            free = max(free, now) + length * BYTE_NS
            leaves = [*(at for at in leaves if at > now), free]


@pytest.mark.parametrize("load", [1.1, 1.3, 1.6, 2.0])
def test_pie_drops_the_share_of_an_overload_that_does_not_fit(core: ctypes.CDLL, load: float) -> None:
    """Senders that do not slow down: in the long run the rest has to go, and the delay is near the target."""
    count, gap_ns = 60_000, 1000 * BYTE_NS / load
    arrivals = [int(n * gap_ns) for n in range(count)]
    lane = Lane(RATE_BPS, queue_packets=10**6, queue=PIE, pie_seed=3)
    result = run(core, lane, arrivals, [1000] * count)
    late = range(count // 3, count)
    dropped = sum(result.fates[n] == QUEUE_FULL for n in late) / len(late)
    assert dropped == pytest.approx(1 - 1 / load, rel=0.05)
    waits_ms = [(result.exits[n] - arrivals[n]) / MS - 1 for n in late if result.fates[n] == ACCEPTED]
    assert sum(waits_ms) / len(waits_ms) == pytest.approx(15, rel=0.2)


def test_pie_lets_a_burst_pass(core: ctypes.CDLL) -> None:
    """4.4: 150 ms of grace, also after a rest."""
    lane = Lane(RATE_BPS, queue_packets=10**6, queue=PIE)
    arrivals = [n * MS // 5 for n in range(700)] + [10**10 + n * MS // 5 for n in range(700)]
    result = run(core, lane, arrivals, [1000] * 1400)
    assert result.fates == [ACCEPTED] * 1400
