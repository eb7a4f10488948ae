"""The packets that are judged, and the counters of the others. Frames go through BPF_PROG_TEST_RUN."""

import socket
import struct
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fecbench.dropper.command import Counters, Filter, attach, log, show
from fecbench.dropper.draws import unpack
from fecbench.dropper.model import GilbertElliott, Uniform, verdicts

IPV4, ARP, VLAN, SERVICE_VLAN, IPV6 = 0x0800, 0x0806, 0x8100, 0x88A8, 0x86DD
HOP_BY_HOP, ROUTING, FRAGMENT, AUTHENTICATION, DESTINATION = 0, 43, 44, 51, 60
MORE_FRAGMENTS = 0x2000
TCP, UDP = socket.IPPROTO_TCP, socket.IPPROTO_UDP
PAYLOAD = bytes(64)
NO_LOSS = Uniform(0)

TO_SERVER = struct.pack("!HHHH", 50000, 4433, 8 + len(PAYLOAD), 0) + PAYLOAD
FROM_SERVER = struct.pack("!HHHH", 4433, 50000, 8 + len(PAYLOAD), 0) + PAYLOAD
ELSEWHERE = struct.pack("!HHHH", 50000, 4434, 8 + len(PAYLOAD), 0) + PAYLOAD


def ethernet(ethertype: int, packet: bytes, tags: tuple[int, ...] = ()) -> bytes:
    types = (*tags, ethertype)
    tagged = b"".join(struct.pack("!HH", 100, inner) for inner in types[1:])
    return bytes(12) + struct.pack("!H", types[0]) + tagged + packet


def ipv4(
    transport: bytes, protocol: int = UDP, options: bytes = b"", fragment: int = 0, first: int = 0x40
) -> bytes:
    words = 5 + len(options) // 4
    length = 4 * words + len(transport)
    fixed = struct.pack("!BBHHHBBH", first | words, 0, length, 7, fragment, 64, protocol, 0)
    return fixed + bytes(8) + options + transport


def ipv6(transport: bytes, protocol: int = UDP, extensions: tuple[tuple[int, bytes], ...] = ()) -> bytes:
    """`extensions` are pairs of a header's kind and its content behind the field `next header`."""
    kinds = [kind for kind, _ in extensions] + [protocol]
    chain = b"".join(
        bytes([then]) + content for then, (_, content) in zip(kinds[1:], extensions, strict=True)
    )
    return (
        struct.pack("!IHBB", 6 << 28, len(chain) + len(transport), kinds[0], 64)
        + bytes(32)
        + chain
        + transport
    )


def extension(kind: int, words: int = 0) -> tuple[int, bytes]:
    """A header of 8 + 8 · words bytes."""
    return kind, bytes([words]) + bytes(6 + 8 * words)


def authentication(words: int) -> tuple[int, bytes]:
    """An authentication header of 8 + 4 · words bytes."""
    return AUTHENTICATION, bytes([words]) + bytes(6 + 4 * words)


def fragment_header(offset: int, more: bool) -> tuple[int, bytes]:
    return FRAGMENT, struct.pack("!BHI", 0, offset << 3 | more, 99)


@dataclass(frozen=True)
class Case:
    frame: bytes
    counts: dict[str, int]


JUDGED, OTHER = {"seen": 1}, {"other": 1}
FRAGMENT_JUDGED, FRAGMENT_OTHER = {"seen": 1, "fragments": 1}, {"other": 1, "fragments": 1}
ALL_KINDS = (extension(HOP_BY_HOP), extension(DESTINATION, 2), extension(ROUTING, 1), authentication(4))

QUIC_CASES = {
    "ipv4 to the port": Case(ethernet(IPV4, ipv4(TO_SERVER)), JUDGED),
    "ipv4 from the port": Case(ethernet(IPV4, ipv4(FROM_SERVER)), JUDGED),
    "ipv4 to another port": Case(ethernet(IPV4, ipv4(ELSEWHERE)), OTHER),
    "ipv4 of another protocol": Case(ethernet(IPV4, ipv4(TO_SERVER, TCP)), OTHER),
    "ipv4 with one option": Case(ethernet(IPV4, ipv4(TO_SERVER, options=bytes(4))), JUDGED),
    "ipv4 with all options": Case(ethernet(IPV4, ipv4(TO_SERVER, options=bytes(40))), JUDGED),
    "ipv4 with Ethernet padding": Case(ethernet(IPV4, ipv4(TO_SERVER)) + bytes(18), JUDGED),
    "ipv4 first fragment": Case(ethernet(IPV4, ipv4(TO_SERVER, fragment=MORE_FRAGMENTS)), FRAGMENT_JUDGED),
    "ipv4 later fragment": Case(ethernet(IPV4, ipv4(TO_SERVER, fragment=185)), FRAGMENT_OTHER),
    "ipv4 not to be fragmented": Case(ethernet(IPV4, ipv4(TO_SERVER, fragment=0x4000)), JUDGED),
    "ipv4 of a wrong version": Case(ethernet(IPV4, ipv4(TO_SERVER, first=0x50)), OTHER),
    "ipv4 of a header too short": Case(ethernet(IPV4, b"\x44" + ipv4(TO_SERVER)[1:]), OTHER),
    "ipv6 to the port": Case(ethernet(IPV6, ipv6(TO_SERVER)), JUDGED),
    "ipv6 to another port": Case(ethernet(IPV6, ipv6(ELSEWHERE)), OTHER),
    "ipv6 of another protocol": Case(ethernet(IPV6, ipv6(TO_SERVER, TCP)), OTHER),
    "ipv6 of a wrong version": Case(ethernet(IPV6, b"\x40" + ipv6(TO_SERVER)[1:]), OTHER),
    "ipv6 with extension headers": Case(ethernet(IPV6, ipv6(TO_SERVER, extensions=ALL_KINDS)), JUDGED),
    "ipv6 with eight of them": Case(
        ethernet(IPV6, ipv6(TO_SERVER, extensions=(extension(DESTINATION),) * 8)), JUDGED
    ),
    "ipv6 with nine of them": Case(
        ethernet(IPV6, ipv6(TO_SERVER, extensions=(extension(DESTINATION),) * 9)), OTHER
    ),
    "ipv6 first fragment": Case(
        ethernet(IPV6, ipv6(TO_SERVER, extensions=(fragment_header(0, more=True),))), FRAGMENT_JUDGED
    ),
    "ipv6 later fragment": Case(
        ethernet(IPV6, ipv6(TO_SERVER, extensions=(fragment_header(185, more=False),))), FRAGMENT_OTHER
    ),
    "ipv6 atomic fragment": Case(
        ethernet(IPV6, ipv6(TO_SERVER, extensions=(fragment_header(0, more=False),))), JUDGED
    ),
    "802.1Q": Case(ethernet(IPV4, ipv4(TO_SERVER), tags=(VLAN,)), JUDGED),
    "802.1Q and ipv6": Case(ethernet(IPV6, ipv6(TO_SERVER), tags=(VLAN,)), JUDGED),
    "802.1ad": Case(ethernet(IPV4, ipv4(TO_SERVER), tags=(SERVICE_VLAN, VLAN)), JUDGED),
    "three tags": Case(ethernet(IPV4, ipv4(TO_SERVER), tags=(VLAN, VLAN, VLAN)), OTHER),
    "arp": Case(ethernet(ARP, bytes(28)), OTHER),
    "arp behind a tag": Case(ethernet(ARP, bytes(28), tags=(VLAN,)), OTHER),
}


class Judge:
    """Attaches with a filter, then gives what each frame adds to the counters."""

    def __init__(self, namespace, run_program):
        self._attachment, self._namespace, self._run_program = (
            namespace.attachment("ingress"),
            namespace,
            run_program,
        )

    def attach(self, filter, model=NO_LOSS):
        attach(self._attachment, model, 0, filter)

    def __call__(self, frame, skb=None):
        before = show(self._attachment)
        with self._run_program(self._namespace) as program:
            program.run(frame, skb=skb)
        after = show(self._attachment)
        changes = {
            name: getattr(after, name) - getattr(before, name) for name in Counters.__dataclass_fields__
        }
        return {name: change for name, change in changes.items() if change}


@pytest.fixture
def judge(lone, run_program):
    return Judge(lone, run_program)


def test_of_all_packets_only_those_of_the_port_are_judged(judge):
    judge.attach(Filter("any", "udp", 4433))
    counted = {name: judge(case.frame) for name, case in QUIC_CASES.items()}
    assert counted == {name: case.counts for name, case in QUIC_CASES.items()}


FILTERS = [
    (Filter(), {"udp4", "udp6", "tcp4", "tcp6", "icmp4", "later"}),
    (Filter(family="ipv4"), {"udp4", "tcp4", "icmp4", "later"}),
    (Filter(family="ipv6"), {"udp6", "tcp6"}),
    (Filter(protocol="udp"), {"udp4", "udp6", "later"}),
    (Filter(protocol="tcp"), {"tcp4", "tcp6"}),
    (Filter(port=4433), {"udp4", "udp6", "tcp4", "tcp6"}),
    (Filter("ipv6", "tcp", 4433), {"tcp6"}),
    (Filter("ipv6", "tcp", 4434), set()),
]


def test_a_filter_matches_family_protocol_and_port_together(judge):
    frames = {
        "udp4": ethernet(IPV4, ipv4(TO_SERVER)),
        "udp6": ethernet(IPV6, ipv6(TO_SERVER)),
        "tcp4": ethernet(IPV4, ipv4(TO_SERVER, TCP)),
        "tcp6": ethernet(IPV6, ipv6(TO_SERVER, TCP)),
        "icmp4": ethernet(IPV4, ipv4(TO_SERVER, socket.IPPROTO_ICMP)),
        "later": ethernet(IPV4, ipv4(TO_SERVER, fragment=185)),
        "arp": ethernet(ARP, bytes(28)),
    }
    for filter, judged in FILTERS:
        judge.attach(filter)
        assert {name for name, frame in frames.items() if "seen" in judge(frame)} == judged, filter


# BPF_PROG_TEST_RUN refuses an untagged frame cut within its IP header: a real packet tests that.
CUT = [  # the frame, its shortest part, and where its ports end
    (ethernet(IPV4, ipv4(TO_SERVER)), 14 + 20, 14 + 20 + 4),
    (ethernet(IPV4, ipv4(TO_SERVER), tags=(VLAN,)), 14, 18 + 20 + 4),
    (ethernet(IPV6, ipv6(TO_SERVER, extensions=(extension(HOP_BY_HOP),))), 14 + 40, 14 + 40 + 8 + 4),
]


def test_a_cut_packet_is_counted_truncated_and_judged_if_its_ports_are_there(judge):
    judge.attach(Filter("any", "udp", 4433))
    for frame, shortest, ports_end in CUT:
        for length in range(shortest, len(frame)):
            fate = "seen" if length >= ports_end else "other"
            assert judge(frame[:length]) == {fate: 1, "truncated": 1}, (
                f"{frame[12:18]!r} cut at {length} bytes"
            )


def test_a_truncated_packet_that_is_not_ours_to_judge_is_not_counted_truncated(judge):
    judge.attach(Filter("ipv4", "udp", 4433))
    for whole in (ipv4(ELSEWHERE), ipv4(TO_SERVER, TCP)):
        assert judge(ethernet(IPV4, whole)[:-1]) == OTHER
    assert judge(ethernet(IPV6, ipv6(TO_SERVER))[:-1]) == OTHER
    assert judge(ethernet(IPV6, ipv6(TO_SERVER), tags=(VLAN,))[:20]) == OTHER


def test_a_packet_that_stands_for_several_is_counted_if_it_was_judged(judge):
    judge.attach(Filter("any", "udp", 4433))
    for segments, size, several in ((10, 1200, 1), (0, 1200, 1), (1, 1200, 0), (1, 0, 0)):
        skb = struct.pack("164xI8xI12x", segments, size)  # __sk_buff: gso_segs, gso_size
        expected = {"seen": 1, "gso": 1} if several else JUDGED
        assert judge(ethernet(IPV4, ipv4(TO_SERVER)), skb) == expected, (segments, size)
        assert judge(ethernet(IPV4, ipv4(ELSEWHERE)), skb) == OTHER


@settings(max_examples=150, deadline=None)
@given(
    case=st.sampled_from(list(QUIC_CASES.values())),
    flips=st.lists(st.tuples(st.integers(12, 90), st.integers(0, 255))),
)
def test_whatever_a_frame_holds_it_is_either_judged_or_other(lone, run_program, case, flips):
    frame = bytearray(case.frame)
    for place, value in flips:
        frame[place % len(frame)] = value
    judge = Judge(lone, run_program)
    judge.attach(Filter("any", "udp", 4433))
    changes = judge(bytes(frame))
    assert changes.get("seen", 0) + changes.get("other", 0) == 1


@pytest.mark.parametrize(
    ("packet", "ethertype", "tags"),
    [
        (ipv4(TO_SERVER), IPV4, ()),
        (ipv4(TO_SERVER, options=bytes(40)), IPV4, ()),
        (ipv4(TO_SERVER), IPV4, (VLAN,)),
        (ipv6(TO_SERVER), IPV6, ()),
        (ipv6(TO_SERVER, extensions=ALL_KINDS), IPV6, ()),
    ],
    ids=["ipv4", "options", "tagged", "ipv6", "extensions"],
)
def test_only_packets_with_more_bytes_of_ip_are_judged_and_lost(judge, packet, ethertype, tags):
    frame = ethernet(ethertype, packet, tags)
    for bound, counts in (
        (len(packet) - 1, {"seen": 1, "dropped": 1}),
        (len(packet), {"shorter": 1}),
        (65_535, {"shorter": 1}),
    ):
        judge.attach(Filter("any", "udp", 4433), Uniform(1, only_longer_than=bound))
        assert judge(frame) == counts, bound
        assert judge(frame + bytes(18)) == counts, "padding of Ethernet is no part of a packet"
    assert judge(ethernet(IPV4, ipv4(ELSEWHERE))) == OTHER


@pytest.mark.parametrize(
    "model", [Uniform(0.5, only_longer_than=200), GilbertElliott(0.3, 0.3, only_longer_than=200)]
)
def test_shorter_packets_take_no_number_from_the_longer_ones(lone, run_program, model):
    short, long = (
        ethernet(IPV4, ipv4(TO_SERVER + bytes(more))) for more in (0, 200 - 20 - len(TO_SERVER) + 1)
    )
    attach(lone.attachment("ingress"), model, 8)
    with run_program(lone) as program:
        for run in range(1, 20):
            program.run(long, repeat=run)
            program.run(short, repeat=20 - run)
    recorded = log(lone.attachment("ingress"))
    assert (recorded.packets, recorded.counters.shorter) == (190, 190)
    assert np.array_equal(unpack(recorded.bitmap, 190), verdicts(model, 8, 190))
