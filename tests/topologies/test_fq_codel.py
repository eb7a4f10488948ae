"""FQ-CoDel in the link's C core, against the procedure of RFC 8290, written anew in Python."""

import ctypes
import itertools
import random
from collections import deque
from dataclasses import dataclass, field

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.topologies.test_codel import Packet
from tests.topologies.test_link_core import ACCEPTED, FQ_CODEL, MS, Lane, core, run
from tests.topologies.test_marking import (
    BYTE_NS,
    CE,
    ECT_0,
    NOT_CAPABLE,
    RATE_BPS,
    TCP,
    UDP,
    MarkingQueue,
    ipv4,
    ipv6,
    shares,
)

__all__ = ["core"]

QUANTUM, FLOWS, MOST_EVICTED = 1514, 1024, 64


class Flow(MarkingQueue):
    """A CoDel queue, and the bytes that it may still send in this round."""

    def __init__(self, codepoints: list[int], target: int) -> None:
        super().__init__(codepoints, target)
        self.credit = 0


@dataclass
class Scheduler:
    """Section 4: new flows before old ones, deficit round robin, and dropping from the fattest."""

    codepoints: list[int]
    limit: int
    target: int
    new: deque[Flow] = field(default_factory=deque)
    old: deque[Flow] = field(default_factory=deque)
    flows: dict[int, Flow] = field(default_factory=dict)
    evicted: list[int] = field(default_factory=list)

    @property
    def waiting(self) -> int:
        return sum(len(flow.packets) for flow in self.flows.values())

    def enqueue(self, packet: Packet, of: int, in_transmission: int) -> None:
        flow = self.flows.setdefault(of, Flow(self.codepoints, self.target))
        flow.packets.append(packet)
        if flow not in self.new and flow not in self.old:
            flow.credit = QUANTUM
            self.new.append(flow)
        while self.waiting + in_transmission > self.limit and self.waiting:
            # Of equally fat ones, which is nobody's law: as in ours, the first.
            _, fattest = max(sorted(self.flows.items()), key=lambda flow: flow[1].bytes())
            for _ in range(min(MOST_EVICTED, (len(fattest.packets) + 1) // 2)):
                self.evicted.append(fattest.packets.popleft().index)

    def dequeue(self, now: int) -> Packet | None:
        while self.new or self.old:
            queues = self.new or self.old
            flow = queues[0]
            if flow.credit <= 0:
                flow.credit += QUANTUM
                self.old.append(queues.popleft())
                continue
            if packet := flow.deque(now):
                flow.credit -= packet.length
                return packet
            queues.popleft()
            if queues is self.new and self.old:
                self.old.append(flow)
        return None

    @property
    def lost(self) -> set[int]:
        return {*self.evicted, *(index for flow in self.flows.values() for index in flow.lost)}


def expected(
    path: Lane, arrivals: list[int], lengths: list[int], codepoints: list[int], flows: list[int]
) -> tuple[dict[int, int], Scheduler]:
    """Return when each packet that gets through leaves the transmitter, and what became of the others."""
    target = path.codel_target_ns or 5 * MS
    scheduler, sent, free = Scheduler(list(codepoints), path.queue_packets, target), {}, 0
    coming = deque(zip(map(Packet, itertools.count(), arrivals, lengths), flows, strict=True))
    while coming or scheduler.waiting:
        # A packet that comes when the transmitter becomes free comes behind that turn.
        if coming and (not scheduler.waiting or coming[0][0].arrived < free):
            packet, flow = coming.popleft()
            scheduler.enqueue(packet, flow, in_transmission=packet.arrived < free)
            if packet.arrived < free:
                continue
            free = packet.arrived
        if packet := scheduler.dequeue(free):
            free = sent[packet.index] = free + packet.length * BYTE_NS
    return sent, scheduler


bursts = st.lists(
    st.tuples(st.integers(1, 60), st.integers(0, 2 * MS), st.sampled_from([1, 2, 7])), min_size=1, max_size=8
)


@given(
    *(bursts, st.sampled_from([3, 40, 1000]), st.sampled_from([0, MS, 20 * MS]), shares, st.integers(0, 99)),
    st.lists(st.integers(0, 10**9), max_size=20),
)
@settings(max_examples=100, deadline=None)
def test_fq_codel_sends_marks_and_drops_what_the_rfc_does(
    core: ctypes.CDLL,
    load: list[tuple[int, int, int]],
    limit: int,
    target: int,
    capable: float,
    seed: int,
    looks: list[int],
) -> None:
    dice = random.Random(seed)
    gaps = [gap for count, gap, _ in load for _ in range(count)]
    flows = [dice.randrange(among) for count, _, among in load for _ in range(count)]
    arrivals, lengths = list(itertools.accumulate(gaps)), [dice.randrange(60, 1515) for _ in gaps]
    codepoints = [ECT_0 if dice.random() < capable else NOT_CAPABLE for _ in gaps]
    lane = Lane(RATE_BPS, MS, queue_packets=limit, queue=FQ_CODEL, ecn=True, codel_target_ns=target)
    result = run(core, lane, arrivals, lengths, sorted(looks), codepoints=codepoints, flows=flows)
    sent, scheduler = expected(lane, arrivals, lengths, codepoints, flows)
    assert {n: exit_ns - MS for n, exit_ns in enumerate(result.exits) if result.order[n]} == sent
    assert result.codepoints == scheduler.codepoints
    assert {n for n, place in enumerate(result.order) if not place} == scheduler.lost
    assert result.outcome.queue_dropped == len(scheduler.lost)
    assert set(result.fates) == {ACCEPTED} and result.outcome.conserved
    assert result.outcome.max_queue_packets <= limit


def test_fq_codel_marks_and_drops_in_long_overload_as_the_rfc_does(core: ctypes.CDLL) -> None:
    for seed in range(10):
        dice = random.Random(seed)
        flows = [dice.choice([0, 0, 0, 1, 2]) for _ in range(3000)]
        arrivals = list(itertools.accumulate(dice.randrange(0, int(1.4 * MS)) for _ in flows))
        lengths = [dice.randrange(600, 1515) for _ in flows]
        codepoints = [dice.choice([NOT_CAPABLE, ECT_0]) for _ in flows]
        lane = Lane(RATE_BPS, queue_packets=10**4, queue=FQ_CODEL, ecn=True)
        result = run(core, lane, arrivals, lengths, codepoints=codepoints, flows=flows)
        sent, scheduler = expected(lane, arrivals, lengths, codepoints, flows)
        assert {n: exit_ns for n, exit_ns in enumerate(result.exits) if result.order[n]} == sent
        assert result.codepoints == scheduler.codepoints
        assert result.outcome.marked > 20 and result.outcome.queue_dropped > 20


@pytest.mark.parametrize("flows", [2, 3, 10])
def test_flows_that_always_wait_have_the_same_share(core: ctypes.CDLL, flows: int) -> None:
    """One sends twice as much as the others, with packets of other lengths, and all send too much."""
    count, lengths_of = 20_000, [1400, 300, 700]
    of = [n % (flows + 1) % flows for n in range(count)]
    lengths = [lengths_of[flow % 3] for flow in of]
    gap_ns = sum(lengths_of) // 3 * BYTE_NS // 5
    arrivals = [n * gap_ns for n in range(count)]
    end_ns = arrivals[-1]
    lane = Lane(RATE_BPS, queue_packets=10**5, queue=FQ_CODEL)
    result = run(core, lane, arrivals, lengths, end_ns=end_ns, flows=of)
    carried = [
        sum(lengths[n] for n in range(count) if of[n] == flow and result.order[n]) for flow in range(flows)
    ]
    assert max(carried) - min(carried) <= 0.02 * max(carried)


def test_a_flow_that_sends_little_waits_for_one_packet_at_most(core: ctypes.CDLL) -> None:
    busy = [(n * MS, 0, 1500) for n in range(2000)]
    sparse = [(n * 40 * MS + 7, 1, 100) for n in range(2, 50)]
    sent = sorted(busy + sparse)
    arrivals, flows, lengths = ([packet[i] for packet in sent] for i in range(3))
    result = run(core, Lane(RATE_BPS, queue_packets=10**5, queue=FQ_CODEL), arrivals, lengths, flows=flows)
    waits = [result.exits[n] - arrivals[n] for n, flow in enumerate(flows) if flow == 1]
    assert max(waits) <= (1500 + 100) * BYTE_NS


def test_a_thousand_flows_with_any_hashes_hardly_ever_share_a_queue(core: ctypes.CDLL) -> None:
    """All come at once, a packet each and one flow with more: nobody waits behind those."""
    keys = random.Random(3).sample(range(2**32), 500)
    flows = [keys[0]] * 100 + keys
    lengths = [1000] * len(flows)
    result = run(
        core, Lane(RATE_BPS, queue_packets=10**5, queue=FQ_CODEL), [0] * len(flows), lengths, flows=flows
    )
    late = sum(result.order[100 + n] > len(keys) + 3 for n in range(1, len(keys)))
    assert late <= 1


def flow_of(core: ctypes.CDLL, frame: bytes) -> int:
    core.flow_of_bytes.restype = ctypes.c_uint32
    return core.flow_of_bytes(ctypes.create_string_buffer(frame, len(frame)), len(frame))


def test_a_flow_is_addresses_protocol_and_ports_whatever_else_the_packet_says(core: ctypes.CDLL) -> None:
    ports, others = bytes([1, 2, 3, 4]), (bytes([9, 2, 3, 4]), bytes([1, 2, 3, 9]))
    for options in (b"", b"\1" * 8):
        own = flow_of(core, ipv4(0, UDP, b"", ports + bytes(20)))
        assert flow_of(core, ipv4(3, UDP, options, ports + bytes(100), identification=9)) == own
        assert own not in [flow_of(core, ipv4(0, UDP, options, other + bytes(20))) for other in others]
        assert own != flow_of(core, ipv4(0, TCP, options, ports + bytes(20)))
    for frame, addresses in (
        (ipv4(0, UDP, b"", ports + bytes(20)), range(26, 34)),
        (ipv6(0, 0, UDP, ports + bytes(20)), range(22, 54)),
    ):
        others_of = {flow_of(core, frame[:n] + b"\xff" + frame[n + 1 :]) for n in addresses}
        assert len(others_of - {flow_of(core, frame)}) == len(addresses)
    own = flow_of(core, ipv6(0, 0, UDP, ports + bytes(20)))
    assert flow_of(core, ipv6(3, 77, UDP, ports + bytes(90))) == own
    assert own != flow_of(core, ipv6(0, 0, UDP, others[0] + bytes(20)))
    assert flow_of(core, bytes(12) + b"\x08\x06" + bytes(50)) == 0


def test_a_packet_without_ports_is_of_a_flow_without_them(core: ctypes.CDLL) -> None:
    first = ipv4(0, UDP, b"", bytes([1, 2, 3, 4]))
    fragment = first[:20] + b"\x20\x00" + first[22:]
    assert flow_of(core, fragment) == flow_of(core, fragment[:-4] + bytes(4)) != flow_of(core, first)
    assert flow_of(core, ipv4(0, UDP, b"", b"")) == flow_of(core, ipv4(3, UDP, b"", b"\1\2"))


def test_without_ecn_fq_codel_drops_what_it_would_have_marked(core: ctypes.CDLL) -> None:
    arrivals = [n * MS for n in range(3000)]
    for uses_ecn in (False, True):
        lane = Lane(RATE_BPS, queue_packets=10**6, queue=FQ_CODEL, ecn=uses_ecn)
        outcome = run(core, lane, arrivals, [1200] * 3000, codepoints=[ECT_0] * 3000).outcome
        assert (outcome.marked > 20, outcome.queue_dropped > 20) == (uses_ecn, not uses_ecn)
        assert CE == 3
