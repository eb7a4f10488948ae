"""A lane is the emulated link with the losses behind it: as the link's law and the oracle say, to the
nanosecond and to the packet.

The law of the link in fractions of a nanosecond, and what else holds of it, is tried in
tests/topologies/test_link_core.py.
"""

import ctypes
import random
import resource
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from fecbench.dropper.clocked import Slots, Timed, TimedGilbertElliott, verdicts_at
from fecbench.dropper.draws import SEEDS, pack
from fecbench.dropper.loss_model import LossModel
from fecbench.dropper.model import Beginning, Counted, GilbertElliott, Pattern, Uniform, markov, verdicts
from fecbench.runners.trial import competition
from fecbench.topologies.link import DirectionSettings, LinkSettings
from fecbench.topologies.trace import Trace
from fecbench.topologies.written import written_whole
from tests.support.lane_sources import LANE_SOURCES
from tests.topologies.law_of_jitter import UNIFORM, drawn, noise_ns
from tests.topologies.test_dualpi2 import expected as law_of_dualpi2
from tests.topologies.test_fq_codel import expected as law_of_fq_codel
from tests.topologies.test_link_core import Lane as LinkCore
from tests.topologies.test_marking import RATE_BPS

NEVER = 2**64 - 1
RECORDED = 2**20
MS = 10**6
ETHERNET_IPV4_UDP = 14 + 20 + 8
LONGEST_FRAME = 14 + 1500
NO_LOSS = Uniform(0.0)

u64 = ctypes.c_uint64


class Report(ctypes.Structure):
    _fields_ = (
        *((name, u64) for name in ("frames_in", "bytes_in", "frames_out", "bytes_out")),
        *((name, u64) for name in ("queue_dropped", "oversize_dropped", "in_flight", "outage_dropped")),
        *((name, u64) for name in ("max_queue_bytes", "max_queue_packets", "dropped")),
        ("conserved", ctypes.c_bool),
    )


class Exit(ctypes.Structure):
    _fields_ = (
        *(("at_ns", u64), ("tag", u64), ("length", ctypes.c_uint32), ("lost", ctypes.c_bool)),
        ("ecn", ctypes.c_uint8),
    )


@dataclass(frozen=True)
class Datagram:
    """A datagram that left a lane."""

    at_ns: int
    tag: int
    payload: bytes
    lost: bool
    ecn: int = 0


class Lane:
    """A lane through ctypes."""

    def __init__(self, core: ctypes.CDLL) -> None:
        self._core = core
        self._lane = ctypes.c_void_p(core.lane_new())
        self._payload = ctypes.create_string_buffer(LONGEST_FRAME - ETHERNET_IPV4_UDP)

    def begin(self, text: str) -> str | None:
        """Return why the text is refused, if it is."""
        refusal: bytes | None = self._core.lane_begin(self._lane, text.encode())
        return None if refusal is None else refusal.decode("ascii")

    def send(self, payload: bytes, tag: int, now_ns: int, ecn: int = 0) -> bool:
        own = payload, len(payload), u64(tag), ctypes.c_uint8(ecn)
        return bool(self._core.lane_send(self._lane, *own, u64(now_ns)))

    def start(self, now_ns: int) -> None:
        self._core.lane_start(self._lane, u64(now_ns))

    def begin_filling(self, full_share: float, window_ns: int) -> None:
        self._core.lane_begin_filling(self._lane, ctypes.c_double(full_share), u64(window_ns))

    def is_full(self, now_ns: int) -> bool:
        return bool(self._core.lane_is_full(self._lane, u64(now_ns)))

    def next_exit(self) -> int:
        return int(self._core.lane_next_exit(self._lane))

    def receive(self, now_ns: int) -> Datagram | None:
        exits = Exit()
        if not self._core.lane_receive(self._lane, u64(now_ns), self._payload, ctypes.byref(exits)):
            return None
        return Datagram(exits.at_ns, exits.tag, self._payload.raw[: exits.length], exits.lost, exits.ecn)

    def report(self) -> dict[str, int]:
        report = self._core.lane_report(self._lane)
        return {name: getattr(report, name) for name, _ in Report._fields_}

    def counted(self) -> dict[str, int]:
        text = ctypes.create_string_buffer(512)
        self._core.lane_counted(self._lane, text)
        return {
            name: int(count) for name, count in (line.split() for line in text.value.decode().splitlines())
        }

    def times(self) -> int:
        return int(self._core.lane_times(self._lane))

    def verdicts(self) -> tuple[int, bytes]:
        """Return how many verdicts are recorded, and their bitmap."""
        packets = u64()
        bits = self._core.lane_verdicts(self._lane, ctypes.byref(packets))
        return packets.value, ctypes.string_at(bits, (packets.value + 7) // 8)

    def arrivals_ns(self) -> list[int] | None:
        """Return when each packet left, since the first; None if losses do not depend on it."""
        packets = u64()
        self._core.lane_verdicts(self._lane, ctypes.byref(packets))
        times = self._core.lane_arrivals(self._lane)
        return times and list((u64 * packets.value).from_address(times))

    def free(self) -> None:
        self._core.lane_free(self._lane)


LaneMaker = Callable[[], Any]


@pytest.fixture(scope="session")
def new_lane(shared_library: Callable[..., ctypes.CDLL]) -> LaneMaker:
    """A context manager that makes a lane."""
    core = shared_library(*LANE_SOURCES)
    core.lane_new.restype = ctypes.c_void_p
    core.lane_begin.restype = ctypes.c_char_p
    core.lane_send.restype = core.lane_receive.restype = core.lane_is_full.restype = ctypes.c_bool
    core.lane_next_exit.restype = core.lane_times.restype = u64
    core.lane_report.restype = Report
    core.lane_verdicts.restype = core.lane_arrivals.restype = ctypes.c_void_p

    @contextmanager
    def new_lane() -> Iterator[Lane]:
        lane = Lane(core)
        try:
            yield lane
        finally:
            lane.free()

    return new_lane


@dataclass(frozen=True)
class Link:
    """The link of a lane."""

    rate_bps: int
    delay_ns: int = 0
    queue_bytes: int = 0
    queue_packets: int = 0


WIDE = Link(10**10, queue_packets=10**6)


def text_of(link: Link, model: LossModel = NO_LOSS, seed: int = 0) -> str:
    of_link = {name: value for name, value in asdict(link).items() if value or name.endswith("_ns")}
    return "".join(f"{name} {value}\n" for name, value in of_link.items()) + model.written(seed)


# ---- The law ----


@dataclass
class Law:
    """The link in whole nanoseconds: a frame's last bit leaves after all bits that the transmitter has sent
    since it was last idle, and a frame is queued until then."""

    link: Link
    idle_until_ns: int = 0
    bits: int = 0
    leaves: list[tuple[int, int]] = field(default_factory=list)
    """Time at which each frame's last bit leaves, and the frame's bytes."""
    queue_dropped: int = 0
    oversize_dropped: int = 0
    max_queue_bytes: int = 0
    max_queue_packets: int = 0

    def exit_of(self, payload: int, now_ns: int) -> int | None:
        """Return when a datagram leaves the link; None if it is dropped."""
        frame = payload + ETHERNET_IPV4_UDP
        if frame > LONGEST_FRAME:
            self.oversize_dropped += 1
            return None
        queue = [size for leaves_ns, size in self.leaves if leaves_ns > now_ns]
        if self._is_full(queue, frame):
            self.queue_dropped += 1
            return None
        self.max_queue_bytes = max(self.max_queue_bytes, sum(queue) + frame)
        self.max_queue_packets = max(self.max_queue_packets, len(queue) + 1)
        if not self.leaves or self.leaves[-1][0] < now_ns:
            self.idle_until_ns, self.bits = now_ns, 0
        self.bits += 8 * frame
        leaves_ns = self.idle_until_ns + self.bits * 10**9 // self.link.rate_bps
        self.leaves.append((leaves_ns, frame))
        return leaves_ns + self.link.delay_ns

    def _is_full(self, queue: list[int], frame: int) -> bool:
        if self.link.queue_bytes:
            return sum(queue) + frame > self.link.queue_bytes
        return len(queue) + 1 > self.link.queue_packets


Sent = list[tuple[int, int]]
"""Datagrams: how long after the one before, and bytes of payload."""


def payload_of(tag: int, length: int) -> bytes:
    return (tag.to_bytes(8, "little") * (length // 8 + 1))[:length]


def lost_of(model: LossModel, seed: int, due_ns: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return the oracle's verdicts of datagrams that leave at these times, in their order."""
    if isinstance(model, Timed):
        return verdicts_at(model, seed, due_ns - due_ns[:1])
    return verdicts(model, seed, len(due_ns))


def tag_of(number: int) -> int:
    return NEVER - number


def drain(lane: Lane, now_ns: int) -> Iterator[Datagram]:
    """Yield the datagrams that have left the lane at this time, each as soon as it can."""
    while (at_ns := lane.next_exit()) <= now_ns and at_ns != NEVER:
        assert lane.receive(at_ns - 1) is None
        datagram = lane.receive(at_ns)
        assert datagram is not None
        assert datagram.at_ns == at_ns
        yield datagram


def simulate(lane: Lane, sent: Sent, end_ns: int) -> tuple[list[bool], list[Datagram]]:
    """Whether each datagram was accepted, and what left until the end, before which all are sent."""
    accepted, exits = [], []
    now_ns = 0
    for number, (gap_ns, length) in enumerate(sent):
        now_ns += gap_ns
        exits += drain(lane, now_ns)
        accepted.append(lane.send(payload_of(tag_of(number), length), tag_of(number), now_ns))
    exits += drain(lane, end_ns)
    return accepted, exits


probabilities = st.sampled_from([0.0, 1.0, 2.0**-32, 1 - 2.0**-32]) | st.floats(0, 1)
seeds = st.sampled_from([0, 1, SEEDS - 1]) | st.integers(0, SEEDS - 1)
stays = st.floats(1e-5, 0.02)
drop_lists = st.lists(st.integers(0, 300), max_size=20, unique=True).map(tuple)
counted_models = (
    st.builds(Uniform, probabilities, st.none() | st.integers(1, 4))
    | st.builds(GilbertElliott, *[probabilities] * 4, st.none() | st.integers(1, 4))
    | st.builds(markov, probabilities, probabilities)
    | st.builds(Pattern, drop_lists, st.none() | st.integers(301, 400), st.booleans())
    | st.builds(Beginning, probabilities, st.integers(1, 50))
)
models = (
    counted_models
    | st.builds(TimedGilbertElliott, stays, stays, probabilities, probabilities)
    | st.builds(Slots, drop_lists, st.floats(1, 20), st.none() | st.integers(301, 400), st.booleans())
)
# Datagrams that arrive both faster and slower than they can leave, and some that are too long.
sendings = st.lists(st.tuples(st.integers(0, 3 * MS), st.integers(0, 1500)), max_size=80)
rates = st.sampled_from([8 * 10**6]) | st.integers(300_000, 10**9)
delays = st.sampled_from([0, 1, MS]) | st.integers(0, 50 * MS)
links = st.builds(Link, rates, delays, queue_bytes=st.integers(1514, 30_000)) | st.builds(
    Link, rates, delays, queue_packets=st.integers(1, 20)
)
FULL = LONGEST_FRAME - ETHERNET_IPV4_UDP


@settings(max_examples=150)
@given(links, models, seeds, sendings, st.integers(0, 100 * MS))
@example(Link(8 * 10**6, 7, queue_packets=1), NO_LOSS, 0, [(0, FULL), (1514 * 10**3, FULL)], 10 * MS)
@example(Link(8 * 10**6, 7, queue_packets=1), NO_LOSS, 0, [(0, FULL), (1514 * 10**3 - 1, FULL)], 10 * MS)
@example(Link(8 * 10**6, 7, queue_bytes=2 * 1514), NO_LOSS, 0, [(0, FULL)] * 3, 10 * MS)
def test_a_datagram_leaves_when_the_links_law_says_and_is_lost_when_the_oracle_says(
    new_lane: LaneMaker, link: Link, model: LossModel, seed: int, sent: Sent, longer_ns: int
) -> None:
    """A trial may end while some are in flight. Frames that the queue drops have no verdict."""
    law, now_ns, exits = Law(link), 0, []
    for gap_ns, length in sent:
        now_ns += gap_ns
        exits.append(law.exit_of(length, now_ns))
    end_ns = now_ns + longer_ns
    due = [number for number, at_ns in enumerate(exits) if at_ns is not None and at_ns <= end_ns]
    due_ns = np.array([exits[number] for number in due], dtype=np.int64)
    lost = lost_of(model, seed, due_ns)
    with new_lane() as lane:
        assert not lane.begin(text_of(link, model, seed))
        accepted, leaving = simulate(lane, sent, end_ns)
        assert accepted == [at_ns is not None for at_ns in exits]
        assert leaving == [
            Datagram(exits[number], tag_of(number), payload_of(tag_of(number), sent[number][1]), is_lost)
            for number, is_lost in zip(due, lost, strict=True)
        ]
        assert lane.verdicts() == (len(due), pack(lost))
        assert lane.arrivals_ns() == ((due_ns - due_ns[:1]).tolist() if isinstance(model, Timed) else None)
        assert lane.report() == {
            "frames_in": len(sent),
            "bytes_in": sum(length + ETHERNET_IPV4_UDP for _, length in sent),
            "frames_out": len(due),
            "bytes_out": sum(sent[number][1] + ETHERNET_IPV4_UDP for number in due),
            "queue_dropped": law.queue_dropped,
            "oversize_dropped": law.oversize_dropped,
            "outage_dropped": 0,
            "in_flight": len(law.leaves) - len(due),
            "max_queue_bytes": law.max_queue_bytes,
            "max_queue_packets": law.max_queue_packets,
            "dropped": lost.sum(),
            "conserved": True,
        }


@settings(max_examples=50)
@given(links, sendings, st.data())
def test_the_hash_of_times_is_that_of_the_instants_and_lengths_of_datagrams(
    new_lane: LaneMaker, link: Link, sent: Sent, data: st.DataObject
) -> None:
    """A used lane has the same hash. A datagram that comes a nanosecond later changes it, and so does a
    longer one, and one that was never sent."""
    end_ns = sum(gap_ns for gap_ns, _ in sent) + 1000 * MS

    def of(lane: Lane, sent: Sent, end_ns: int) -> int:
        assert not lane.begin(text_of(link))
        simulate(lane, sent, end_ns)
        return lane.times()

    with new_lane() as lane, new_lane() as another:
        usual = of(lane, sent, end_ns)
        assert [of(lane, sent, end_ns), of(another, sent, end_ns)] == [usual, usual]
        if sent:
            place = data.draw(st.integers(0, len(sent) - 1))
            gap_ns, length = sent[place]
            for other in ((gap_ns + 1, length), (gap_ns, length + 1)):
                assert of(lane, [*sent[:place], other, *sent[place + 1 :]], end_ns + 1) != usual
            assert of(lane, sent[:-1], end_ns) != usual


def test_the_hash_of_times_has_exits_as_well_as_entries(new_lane: LaneMaker) -> None:
    with new_lane() as lane:
        hashes = set()
        for delay_ns in (100, 101):
            lane.begin(text_of(Link(8 * 10**9, delay_ns=delay_ns, queue_packets=1)))
            lane.send(b"", 1, 5)
            hashes.add(lane.times())
            assert list(drain(lane, 10**6))
            hashes.add(lane.times())
    assert len(hashes) == 3


def test_what_is_sent_while_a_lane_is_out_is_dropped_and_counted_until_the_next_trial(
    new_lane: LaneMaker,
) -> None:
    """A datagram takes 42 ns of the link, 100 ns on its way: the one that was inside comes out."""
    link = text_of(Link(8 * 10**9, delay_ns=100, queue_packets=1))
    with new_lane() as lane:
        lane.begin(f"{link}outage_ns 100 200\n")
        lane.start(50)
        sent = [lane.send(b"", now_ns, now_ns) for now_ns in (149, 150, 200, 249, 250)]
        assert sent == [True, False, False, False, True]
        assert lane.report()["outage_dropped"] == 3
        exits = [datagram.tag for datagram in drain(lane, 10**6)]
        assert exits == [149, 250]
        report = lane.report()
        assert (report["frames_in"], report["frames_out"], report["queue_dropped"]) == (5, 2, 0)
        assert report["conserved"]
        lane.begin(link)
        assert lane.send(b"", 1, 150)
        assert (lane.report()["outage_dropped"], lane.report()["conserved"]) == (0, True)


def test_the_longest_datagram_is_a_full_ethernet_frame_and_a_longer_one_is_dropped(
    new_lane: LaneMaker,
) -> None:
    with new_lane() as lane:
        lane.begin(text_of(Link(8 * 10**9, queue_packets=1)))  # a byte takes a nanosecond
        assert lane.send(bytes(1472), 0, 0)
        assert lane.next_exit() == 1514
        assert not lane.send(bytes(1473), 1, 10_000)
        assert not lane.send(bytes(65507), 2, 20_000)
        report = lane.report()
        assert (report["oversize_dropped"], report["queue_dropped"], report["in_flight"]) == (2, 0, 1)
        assert report["bytes_in"] == 1514 + 1515 + 65549
        assert report["conserved"]


def test_a_datagram_that_is_asked_for_late_says_when_it_was_due(new_lane: LaneMaker) -> None:
    with new_lane() as lane:
        lane.begin(text_of(Link(8 * 10**9, delay_ns=100, queue_packets=2)))
        for tag in (1, 2):
            lane.send(b"", tag, 0)
        due = ETHERNET_IPV4_UDP + 100
        exits = [lane.receive(10**6), lane.receive(10**6), lane.receive(10**6)]
        assert exits == [Datagram(due, 1, b"", False), Datagram(due + ETHERNET_IPV4_UDP, 2, b"", False), None]


# ---- Verdicts ----


def judge(lane: Lane, packets: int) -> int:
    """Sends so many through the lane, one after another; how many were lost."""
    lost = 0
    for now_ns in range(0, packets * 1000, 1000):
        lane.send(b"", 0, now_ns)
        datagram = lane.receive(NEVER - 1)
        assert datagram is not None
        lost += datagram.lost
    return lost


def assert_judges_as_the_oracle(lane: Lane, model: Counted, seed: int, packets: int) -> None:
    assert not lane.begin(text_of(WIDE, model, seed))
    lost = judge(lane, packets)
    expected = verdicts(model, seed, packets)
    assert lane.report()["dropped"] == lost == np.count_nonzero(expected)
    recorded = min(packets, RECORDED)
    assert lane.verdicts() == (recorded, pack(expected[:recorded]))


@settings(max_examples=50)
@given(counted_models, seeds, st.integers(0, 3000))
@example(Uniform(1.0), 0, 100)
@example(GilbertElliott(1.0, 1.0, 1.0, 0.0), SEEDS - 1, 100)  # reverses its state at each packet
@example(GilbertElliott(1.0, 0.0, 1.0, 0.0), 0, 100)  # stays in the bad state
@example(Pattern((), 0, True), 0, 10)
@example(Pattern((0, 8), 9, True), 0, 100)
@example(Pattern(tuple(range(3, 260)), 300, True), 0, 700)
@example(Pattern((7,), 8, False), 0, 100)
def test_verdicts_are_the_oracles(new_lane: LaneMaker, model: Counted, seed: int, packets: int) -> None:
    with new_lane() as lane:
        assert_judges_as_the_oracle(lane, model, seed, packets)


@settings(max_examples=50)
@given(
    links, sendings, models, seeds, st.sampled_from([0, 2**31, 2**32]) | st.integers(0, 2**32), st.booleans()
)
@example(Link(8 * 10**6, 7, queue_packets=5), [(0, 100)] * 3, NO_LOSS, 1, 2**32, False)
def test_a_datagram_whose_draw_is_below_the_threshold_leaves_twice_at_its_time(
    new_lane: LaneMaker, link: Link, sent: Sent, model: LossModel, seed: int, threshold: int, reorder: bool
) -> None:
    """A copy is a packet for the losses, and a frame more for the link; also where datagrams may overtake."""
    law, now_ns, transmitted, due = Law(link), 0, 0, []
    for number, (gap_ns, length) in enumerate(sent):
        now_ns += gap_ns
        at_ns = law.exit_of(length, now_ns)
        if at_ns is not None:
            due += [(at_ns, tag_of(number))] * (1 + (drawn(seed, transmitted) < threshold))
            transmitted += 1
    end_ns = now_ns + 10**12
    lost = lost_of(model, 3, np.array([at_ns for at_ns, _ in due], dtype=np.int64))
    noise = f"reorder {str(reorder).lower()}\nduplicate {threshold} {seed}\n"
    with new_lane() as lane:
        assert not lane.begin(text_of(link, model, 3) + noise)
        accepted, exits = simulate(lane, sent, end_ns)
        assert [(datagram.at_ns, datagram.tag) for datagram in exits] == due
        assert [datagram.lost for datagram in exits] == lost.tolist()
        report = lane.report()
        assert report["conserved"] and report["in_flight"] == 0
        assert report["frames_out"] == len(due)
        assert report["frames_in"] == len(sent) + len(due) - sum(accepted)


def test_a_lane_has_the_cross_traffic_of_its_text_and_the_next_trial_has_none(new_lane: LaneMaker) -> None:
    """A full frame of others takes the transmitter of 8 Mbit/s for 1.514 ms."""
    link = "rate_bps 8000000\ndelay_ns 0\nqueue_packets 100\n"
    own_ns, other_ns = 1_042_000, 1_514_000
    with new_lane() as lane:
        for cross, due_ns in (("cross 4000000 1000000000000 0 1\n", other_ns + own_ns), ("", 1 + own_ns)):
            assert lane.begin(link + cross) is None
            lane.start(0)
            assert lane.send(payload_of(5, 1000), 5, 1)  # the first of the others has come
            datagrams = [datagram for at_ns in (due_ns - 1, due_ns) for datagram in drain(lane, at_ns)]
            assert [(datagram.tag, datagram.at_ns) for datagram in datagrams] == [(5, due_ns)]
            assert (lane.report()["frames_in"], lane.report()["in_flight"]) == (1, 0)


@pytest.mark.parametrize(
    "model",
    [
        Uniform(0.5, only_longer_than=528),
        Uniform(0.9, burst_max=2, only_longer_than=528),
        GilbertElliott(0.3, 0.3, only_longer_than=528),
        Pattern((0, 2, 3), 5, True, only_longer_than=528),
        Slots((0, 2), 5, repeat=True, only_longer_than=528),
        TimedGilbertElliott(0.005, 0.005, only_longer_than=528),
    ],
    ids=lambda model: type(model).__name__,
)
def test_only_longer_packets_are_judged_and_lost_and_the_others_take_no_number(
    new_lane: LaneMaker, model: LossModel
) -> None:
    """Packets with 500 bytes of payload have 528 of IP."""
    chance = random.Random(4)
    sent = [(MS, chance.choice([0, 499, 500, 501, 1472])) for _ in range(400)]
    with new_lane() as lane:
        lane.begin(text_of(WIDE, model, 9))
        _, exits = simulate(lane, sent, 401 * MS)
        longer = [exit for exit in exits if len(exit.payload) > 500]
        due_ns = np.array([exit.at_ns for exit in longer])
        lost = lost_of(model, 9, due_ns)
        assert not any(exit.lost for exit in exits if len(exit.payload) <= 500)
        assert [exit.lost for exit in longer] == lost.tolist() and 20 < lost.sum() < len(lost)
        assert lane.verdicts() == (len(longer), pack(lost))
        assert lane.counted() == {"shorter": len(exits) - len(longer)}
        assert lane.report()["dropped"] == lost.sum()
        if isinstance(model, Timed):
            assert lane.arrivals_ns() == (due_ns - due_ns[0]).tolist()
        lane.begin(text_of(WIDE))
        assert lane.counted() == {}


def test_stays_that_have_all_been_drawn_come_again_in_a_lane(new_lane: LaneMaker) -> None:
    model = TimedGilbertElliott(1e-5, 1e-5)
    due_ns = np.arange(150_000) * 10**4  # some 1.3 s are all stays
    with new_lane() as lane:
        assert not lane.begin(text_of(WIDE, model, 9))
        lost = []
        for now_ns in due_ns.tolist():
            lane.send(b"", 0, now_ns)
            datagram = lane.receive(NEVER - 1)
            assert datagram is not None
            lost.append(datagram.lost)
    assert lost == verdicts_at(model, 9, due_ns).tolist()


def test_more_packets_than_are_recorded_are_judged_and_counted(new_lane: LaneMaker) -> None:
    with new_lane() as lane:
        assert_judges_as_the_oracle(lane, GilbertElliott(0.01, 0.25, 0.98, 0.05), 42, RECORDED + 1000)
        assert_judges_as_the_oracle(lane, Uniform(0.02), 7, 100)


@settings(max_examples=50)
@given(links, sendings, models, seeds, st.integers(1, 30 * MS), seeds)
def test_where_datagrams_overtake_the_nth_that_leaves_has_the_nth_verdict(
    new_lane: LaneMaker, link: Link, sent: Sent, model: LossModel, seed: int, mean_ns: int, jitter_seed: int
) -> None:
    """The dropper does the same: it meets the packets in the order in which they leave the link."""
    choice = text_of(link, model, seed) + f"jitter uniform {mean_ns} {jitter_seed}\nreorder true\n"
    law, due = Law(link), []
    with new_lane() as lane:
        assert not lane.begin(choice)
        accepted, exits = simulate(lane, sent, NEVER - 1)
        now_ns = 0
        for number, (gap_ns, length) in enumerate(sent):
            now_ns += gap_ns
            if (leaves_ns := law.exit_of(length, now_ns)) is not None:
                noise = noise_ns(UNIFORM, mean_ns, jitter_seed, len(due))
                due.append((leaves_ns + noise, len(due), tag_of(number)))
        assert accepted.count(True) == len(due)
        due.sort()
        expected = lost_of(model, seed, np.array([at for at, _, _ in due], dtype=np.int64))
        leaving = [(datagram.at_ns, datagram.tag, datagram.lost) for datagram in exits]
        assert leaving == [(at, tag, lost) for (at, _, tag), lost in zip(due, expected, strict=True)]
        assert lane.verdicts() == (len(due), pack(expected))
        assert lane.report()["conserved"]


def next_of(lane: Lane) -> Datagram:
    """Return the next datagram. With CoDel where datagrams overtake, there may be an instant at which none
    leaves."""
    for _ in range(100):
        at_ns = lane.next_exit()
        if (datagram := lane.receive(at_ns)) is not None:
            assert datagram.at_ns == at_ns
            return datagram
    pytest.fail("nothing leaves")


def test_a_datagram_that_waits_for_its_turn_overtakes_the_one_before_it(new_lane: LaneMaker) -> None:
    """0.1 ms each, and by the law noise of 0.78 and 0.03 ms. Nothing else that is sent wakes the lane."""
    noise = [noise_ns(UNIFORM, MS, 7, number) for number in range(2)]
    assert noise[0] > noise[1] + MS // 2
    noisy = f"jitter uniform {MS} 7\nreorder true\nqueue codel\n"
    choice = text_of(Link(8 * MS, queue_packets=9)) + noisy
    with new_lane() as lane:
        lane.begin(choice)
        for tag in range(2):
            assert lane.send(bytes(100 - ETHERNET_IPV4_UDP), tag, 0)
        exits = [next_of(lane), next_of(lane)]
        assert [(datagram.tag, datagram.at_ns) for datagram in exits] == [
            (1, 2 * MS // 10 + noise[1]),
            (0, MS // 10 + noise[0]),
        ]


@pytest.mark.parametrize("reorder", [False, True])
def test_codel_drops_the_same_though_the_emulator_looks_before_it_has_read_all(
    new_lane: LaneMaker, reorder: bool
) -> None:
    """Datagrams from now on leave a delay later at the soonest, so it writes until then before it reads."""
    delay_ns, outcomes = 5 * MS, []
    noisy = f"jitter uniform {MS} 7\nreorder {str(reorder).lower()}\nqueue codel\n"
    choice = text_of(Link(8 * MS, delay_ns, queue_packets=1000)) + noisy
    for looks_ahead in (False, True):
        with new_lane() as lane:
            lane.begin(choice)
            exits = []
            for number in range(900):
                now_ns = number * MS // 2
                until_ns = now_ns + delay_ns - 1 if looks_ahead else 0
                while (datagram := lane.receive(until_ns)) is not None:
                    exits.append(datagram)
                lane.send(bytes(1000 - ETHERNET_IPV4_UDP), number, now_ns)
            while (datagram := lane.receive(NEVER - 1)) is not None:
                exits.append(datagram)
            outcomes.append((exits, lane.report()))
    assert outcomes[0] == outcomes[1]
    assert outcomes[0][1]["queue_dropped"] > 0


@pytest.mark.parametrize("queue", ["fq_codel", "dualpi2"])
def test_tags_are_flows_and_codepoints_choose_queues_as_on_the_wire(new_lane: LaneMaker, queue: str) -> None:
    """The oracles of both queues, which share no line with the lane."""
    dice, count = random.Random(3), 2000
    arrivals = list(accumulate(dice.randrange(MS // 2, int(1.2 * MS)) for _ in range(count)))
    flows, codepoints = ([dice.randrange(4) for _ in range(count)] for _ in range(2))
    lengths = [dice.randrange(600, 1400) for _ in range(count)]
    if queue == "fq_codel":
        link = LinkCore(RATE_BPS, queue_packets=10**4)
        leaving, own = law_of_fq_codel(link, arrivals, lengths, codepoints, flows)
    else:
        leaving, own = law_of_dualpi2(arrivals, lengths, codepoints)
    with new_lane() as lane:
        lane.begin(text_of(Link(RATE_BPS, queue_packets=10**4)) + f"queue {queue}\necn true\n")
        exits = {}
        for number, now_ns in enumerate(arrivals):
            payload = number.to_bytes(4, "little") + bytes(lengths[number] - ETHERNET_IPV4_UDP - 4)
            lane.send(payload, flows[number], now_ns, codepoints[number])
        while (datagram := lane.receive(NEVER - 1)) is not None:
            exits[int.from_bytes(datagram.payload[:4], "little")] = datagram
    assert {number: datagram.at_ns for number, datagram in exits.items()} == leaving
    assert all(datagram.ecn == own.codepoints[number] for number, datagram in exits.items())
    assert own.lost and sum(own.codepoints[n] != codepoints[n] for n in exits) > 50


# ---- Trials one after another ----


def trace(lane: Lane, choice: str, sent: Sent, end_ns: int) -> object:
    """Return everything visible of a trial."""
    assert not lane.begin(choice)
    return simulate(lane, sent, end_ns), lane.report(), lane.verdicts()


end_times = st.sampled_from([NEVER - 1]) | st.integers(240 * MS, 300 * MS)


@settings(max_examples=80)
@given(links, links, models, models, seeds, sendings, sendings, end_times)
def test_a_lane_that_was_used_is_as_good_as_a_new_one(
    new_lane: LaneMaker,
    before: Link,
    link: Link,
    models_before: LossModel,
    model: LossModel,
    seed: int,
    sent_before: Sent,
    sent: Sent,
    end_ns: int,
) -> None:
    again = partial(trace, choice=text_of(link, model, seed), sent=sent, end_ns=NEVER - 1)
    with new_lane() as used, new_lane() as new:
        trace(used, text_of(before, models_before, SEEDS - 1), sent_before, end_ns)
        assert again(used) == again(new)


@pytest.mark.parametrize(
    "of_others", ["", "cross 1000000000 1000000000 0 1\n", "queue codel\ncross 1000000000 1000000000 0 1\n"]
)
def test_a_lane_takes_no_more_memory_trial_after_trial(new_lane: LaneMaker, of_others: str) -> None:
    """Trials may end with datagrams in flight, and frames of others: here some 150 MB of them."""

    def pages() -> int:
        return int(Path("/proc/self/statm").read_text().split()[1])

    with new_lane() as lane:
        for trial in range(1000):
            link = replace(WIDE, rate_bps=10**6) if of_others else WIDE
            assert lane.begin(text_of(link) + of_others) is None
            lane.start(0)
            for number in range(100):
                lane.send(b"", 0, 12_000 * number if of_others else 0)  # one of others at a time
            if trial == 0:
                before = pages()
        assert (pages() - before) * resource.getpagesize() < 10 * 2**20


@settings(max_examples=50)
@given(
    st.sampled_from([Link(0, queue_packets=1), Link(10**6), Link(10**6, 0, 1514, 1), Link(0)]), links, models
)
def test_settings_that_are_refused_change_nothing(
    new_lane: LaneMaker, refused: Link, link: Link, model: LossModel
) -> None:
    first: Sent = [(MS, 1000)] * 5
    second: Sent = [(5 * MS, 500)] * 5

    def halves(lane: Lane, between: Callable[[], object]) -> object:
        lane.begin(text_of(link, model, 3))
        traces = [simulate(lane, first, 5 * MS)]
        between()
        return [*traces, simulate(lane, second, NEVER - 1), lane.report(), lane.verdicts()]

    with new_lane() as disturbed, new_lane() as lane:
        other = text_of(refused, Pattern((0, 1, 2)), 4)
        traces = halves(disturbed, lambda: disturbed.begin(other) or pytest.fail("not refused"))
        assert traces == halves(lane, lambda: None)


def test_a_text_is_refused_by_the_link_by_the_losses_or_by_its_names(new_lane: LaneMaker) -> None:
    link = "".join(text_of(WIDE).splitlines(keepends=True)[:3])
    with new_lane() as lane:
        for text, why in (
            ("rate_bps 5\n", "rate_bps 5: must be a whole number from 1000 to 100000000000"),
            (link.replace("rate", "p 2\nrate"), "p 2: must be a probability, from 0 to 1"),
            (
                link + "p 0.5\n",
                "model is missing: none, uniform, ge, markov, pattern, beginning, ge-time or slots",
            ),
            (link + "model ge\np 0.5\n", "r is missing: model ge needs it"),
            (
                link + "model pattern\ndrop 9\nlength 3\n",
                "length 3: packet 9 is dropped, so the pattern is at",
            ),
        ):
            refusal = lane.begin(text)
            assert refusal and refusal.startswith(why), refusal
        refusal = lane.begin(link + "speed 1\n")
        assert refusal and refusal.startswith("speed is no name: must be one of rate_bps, delay_ns, ")
        assert refusal.endswith(
            ", duplicate, corrupt, overtake, mtu_bytes, mtu_icmp, policer, shaper_burst_bytes"
            ", cross, ecn, ecn_threshold_ns, pie_seed, codel_target_ns"
            ", model, seed, p, r, k, h, good_s, bad_s, slot_ms, drop, length, repeat, burst_max"
            ", only_longer_than, family"
        )
        assert lane.begin(link) is None


@settings(max_examples=100)
@given(
    st.sampled_from([8 * 10**6, 10**6, 33_333_333]),
    st.floats(0, 200),
    st.lists(st.tuples(st.integers(1, 60), st.integers(0, 40)), min_size=1, max_size=120),
)
@example(8 * 10**6, 0.0, [(1, 0), (60, 0), *[(50, 40)] * 4])  # a reading just when the window begins
def test_a_link_is_full_when_the_harness_says_so_of_the_same_readings(
    new_lane: LaneMaker, rate_bps: int, owd_ms: float, steps: list[tuple[int, int]]
) -> None:
    """Readings some ms apart, with full datagrams before each; also over a trace, which has not begun."""
    trace = Trace.of([10**6], [10**9])
    plain = DirectionSettings(rate_bps / 1e6, owd_ms, queue_packets=10**5)
    for direction in (plain, replace(plain, trace=trace)):
        link = LinkSettings(up=plain, down=direction)
        filling, now_ns, carried = competition.Filling(link), 0, 0
        window_ns = round(1e9 * competition.window_s(link))
        with new_lane() as lane:
            assert lane.begin(written_whole(link, "down")) is None
            lane.begin_filling(competition.FULL_SHARE, window_ns)
            for apart_ms, datagrams in steps:
                for _ in range(datagrams):
                    lane.send(bytes(FULL), 0, now_ns)
                now_ns += apart_ms * MS
                while lane.receive(now_ns):
                    carried += LONGEST_FRAME
                assert lane.is_full(now_ns) == filling.is_full(now_ns / 1e9, carried)


def test_an_empty_lane_has_nothing_to_receive(new_lane: LaneMaker) -> None:
    with new_lane() as lane:
        lane.begin(text_of(WIDE))
        assert lane.next_exit() == NEVER
        assert lane.receive(NEVER) is None
        assert lane.verdicts() == (0, b"")
