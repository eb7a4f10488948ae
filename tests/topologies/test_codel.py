"""CoDel in the link's C core, against the procedure of RFC 8289, written anew in Python."""

import ctypes
import itertools
import random
from collections import deque
from dataclasses import dataclass, replace
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.topologies.test_link_core import ACCEPTED, CODEL, DROPTAIL, MS, Lane, core, run  # noqa: F401 - a fixture

INTERVAL, MAX_PACKET = 100 * MS, 1514
FAST, SLOW = 100_000_000, 1_000_000


@dataclass
class Packet:
    index: int
    arrived: int
    length: int


class Queue:
    """`deque` of RFC 8289, whose times are whole nanoseconds."""

    def __init__(self, target: int = 5 * MS) -> None:
        self.target = target
        self.packets: deque[Packet] = deque()
        self.lost: list[int] = []
        self.first_above_time = self.drop_next = 0
        self.count = self.lastcount = 0
        self.dropping = False

    def bytes(self) -> int:
        return sum(packet.length for packet in self.packets)

    @staticmethod
    def control_law(time: int, count: int) -> int:
        return time + int(INTERVAL / count**0.5)

    def dodeque(self, now: int) -> tuple[Packet | None, bool]:
        packet, ok_to_drop = self.packets.popleft() if self.packets else None, False
        if packet is None or now - packet.arrived < self.target or self.bytes() <= MAX_PACKET:
            self.first_above_time = 0
        elif self.first_above_time == 0:
            self.first_above_time = now + INTERVAL
        else:
            ok_to_drop = now >= self.first_above_time
        return packet, ok_to_drop

    def deque(self, now: int) -> Packet | None:
        packet, ok_to_drop = self.dodeque(now)
        if self.dropping:
            self.dropping = ok_to_drop
            while self.dropping and now >= self.drop_next:
                self.drop(packet)
                self.count += 1
                packet, ok_to_drop = self.dodeque(now)
                if ok_to_drop:
                    self.drop_next = self.control_law(self.drop_next, self.count)
                self.dropping = ok_to_drop
        elif ok_to_drop:
            self.drop(packet)
            packet, _ = self.dodeque(now)
            self.dropping = True
            delta = self.count - self.lastcount
            self.count = delta if delta > 1 and now - self.drop_next < 16 * INTERVAL else 1
            self.drop_next = self.control_law(now, self.count)
            self.lastcount = self.count
        return packet

    def drop(self, packet: Packet | None) -> None:
        assert packet
        self.lost.append(packet.index)


def oracle(path: Lane, arrivals: list[int], lengths: list[int]) -> tuple[dict[int, int], list[int]]:
    """Return when each packet that gets through leaves the transmitter, and which ones CoDel drops, without
    limits.

    A rate at which a byte takes whole nanoseconds.
    """
    queue, serialized, free = Queue(path.codel_target_ns or 5 * MS), {}, 0
    byte_ns = 8 * 10**9 // path.rate_bps
    waiting = deque(map(Packet, itertools.count(), arrivals, lengths))
    while waiting or queue.packets:
        now = free if queue.packets else max(free, waiting[0].arrived)
        while waiting and (waiting[0].arrived < now or (not queue.packets and waiting[0].arrived <= now)):
            queue.packets.append(waiting.popleft())
        if packet := queue.deque(now):
            free = serialized[packet.index] = now + packet.length * byte_ns
    return serialized, queue.lost


def compare(core: ctypes.CDLL, path: Lane, arrivals: list[int], lengths: list[int], looks: Any = ()) -> int:  # noqa: F811
    """Return how many packets CoDel dropped, the same ones in both."""
    result = run(core, path, arrivals, lengths, looks)
    serialized, lost = oracle(path, arrivals, lengths)
    through = {i: exit_ns - path.delay_ns for i, exit_ns in enumerate(result.exits) if result.order[i]}
    assert through == serialized
    assert result.fates == [ACCEPTED] * len(arrivals)
    assert result.outcome.queue_dropped == len(lost)
    assert result.outcome.conserved
    return len(lost)


codel_paths = st.builds(
    Lane,
    rate_bps=st.sampled_from([SLOW, 2 * SLOW, 8 * SLOW]),
    delay_ns=st.sampled_from([0, 1, MS, 50 * MS]),
    queue_packets=st.just(10**6),
    queue=st.just(CODEL),
    codel_target_ns=st.sampled_from([0, MS, 5 * MS, 17 * MS, 150 * MS]),
)
# Phases of a few hundred frames that come at a steady pace, faster or slower than they can leave.
phases = st.lists(st.tuples(st.integers(1, 300), st.integers(0, 14 * MS)), min_size=1, max_size=6)


def steady(phases: list[tuple[int, int]]) -> list[int]:
    gaps = itertools.chain.from_iterable([gap] * count for count, gap in phases)
    return list(itertools.accumulate(gaps))


@given(codel_paths, phases, st.integers(60, 1514), st.lists(st.integers(0, 10**10), max_size=30))
@settings(max_examples=60, deadline=None)
def test_the_frames_that_the_pseudo_code_drops_are_dropped(
    core: ctypes.CDLL,  # noqa: F811
    path: Lane,
    phases: list[tuple[int, int]],
    length: int,
    looks: list[int],
) -> None:
    """The result is independent of when the link is looked at."""
    arrivals = steady(phases)
    compare(core, path, arrivals, [length] * len(arrivals), sorted(looks))


def test_the_pseudo_code_s_frames_are_dropped_in_long_overload(core: ctypes.CDLL) -> None:  # noqa: F811
    """Frames of any length at 0.5 to 3 times the rate in turn, so that dropping states begin anew."""
    for seed in range(20):
        chance = random.Random(seed)
        arrivals, lengths, now = [], [], 0
        for _ in range(12):
            load = chance.choice([0.5, 0.9, 1.1, 1.5, 3])
            for _ in range(chance.randrange(20, 250)):
                lengths.append(chance.randrange(60, 1515))
                now += round(787 * 8000 / load)
                arrivals.append(now)
        path = Lane(SLOW, delay_ns=chance.choice([0, 20 * MS]), queue_packets=10**6, queue=CODEL)
        assert compare(core, path, arrivals, lengths) > 0


def test_a_frame_waits_too_long_from_the_target_on_and_the_first_is_dropped_after_an_interval(
    core: ctypes.CDLL,  # noqa: F811
) -> None:
    """A turn every 5 ms: the second frame has waited for 5 ms exactly, and 100 ms later there is a turn."""
    result = run(core, Lane(SLOW, queue_packets=100, queue=CODEL), [0] * 60, [625] * 60)
    assert result.order.index(0) == 1 + 20


def test_with_a_full_frame_or_less_behind_it_no_frame_is_dropped(core: ctypes.CDLL) -> None:  # noqa: F811
    """A packet comes just before each turn, so two are always behind the head, however long it waited."""
    turn = 757 * 8000
    arrivals = [0, 0, 0, 0, *(i * turn - 1 for i in range(2, 500))]
    path = Lane(SLOW, queue_packets=100, queue=CODEL)
    assert run(core, path, arrivals, [757] * len(arrivals)).outcome.queue_dropped == 0
    assert run(core, path, arrivals, [758] * len(arrivals)).outcome.queue_dropped > 0


def test_a_queue_that_codel_does_not_touch_is_the_droptail_queue(core: ctypes.CDLL) -> None:  # noqa: F811
    """The same frames leave at the same times within the target, whatever the limit is."""
    arrivals, lengths = [i // 5 * MS for i in range(500)], [1000] * 500
    path = Lane(FAST, delay_ns=3 * MS, queue_packets=3)
    plain, managed = (run(core, replace(path, queue=queue), arrivals, lengths) for queue in (DROPTAIL, CODEL))
    assert plain.outcome.queue_dropped > 0
    assert bytes(plain.outcome) == bytes(managed.outcome)
    assert (plain.fates, plain.exits) == (managed.fates, managed.exits)
