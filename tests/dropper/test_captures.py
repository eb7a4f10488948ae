"""Losses between two captures are the same in every form of file, over every link type, and whatever the
hosts and the network did to the packets between; what cannot be told is refused with its reason."""

import random
from collections.abc import Callable, Iterable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fecbench.dropper.recordings import Recording, drop_list, packets, recorded
from fecbench.errors import BadInput
from tests.support import captures
from tests.support.captures import (
    CLIENT,
    CLIENT_6,
    FILES,
    LINKS,
    OF_ONE_VERSION,
    SERVER,
    SERVER_6,
    Frame,
    fragments,
    framed,
    pcap,
    pcapng,
    tcp,
    udp,
)

LOST, COUNT = [7, 20, 21], 60
CAME = [number for number in range(COUNT) if number not in LOST]


def payload(number: int, size: int = 1200) -> bytes:
    """Return bytes as random as those of an encrypted packet."""
    return random.Random(number).randbytes(size)


def sent(
    numbers: Iterable[int], source: captures.End = SERVER, destination: captures.End = CLIENT
) -> list[bytes]:
    return [udp(payload(number), source, destination) for number in numbers]


def between(tmp_path: Path, sender: bytes, receiver: bytes) -> Recording:
    (tmp_path / "sender").write_bytes(sender)
    (tmp_path / "receiver").write_bytes(receiver)
    return recorded(tmp_path / "sender", tmp_path / "receiver")


def numbers_lost(recording: Recording) -> tuple[str, int]:
    return drop_list(recording.lost), recording.lost.size


RIGHT = ("7,20-21", COUNT)


@pytest.mark.parametrize("form", FILES)
@pytest.mark.parametrize("version", [4, 6])
def test_every_form_of_file_tells_the_same_losses(tmp_path: Path, form: str, version: int) -> None:
    ends = (SERVER, CLIENT) if version == 4 else (SERVER_6, CLIENT_6)
    write = FILES[form]
    recording = between(tmp_path, write(framed(sent(range(COUNT), *ends))), write(framed(sent(CAME, *ends))))
    assert numbers_lost(recording) == RIGHT
    assert (recording.direction, recording.notes) == ("down", ())


@pytest.mark.parametrize("link", LINKS)
@pytest.mark.parametrize("version", [4, 6])
def test_every_link_type_tells_the_same_losses(tmp_path: Path, link: str, version: int) -> None:
    ends = (SERVER, CLIENT) if version == 4 else (SERVER_6, CLIENT_6)
    sender = framed(sent(range(COUNT), *ends), LINKS[link])
    recording = between(tmp_path, pcap(sender), pcap(framed(sent(CAME, *ends))))
    assert numbers_lost(recording) == RIGHT


@pytest.mark.parametrize("version", OF_ONE_VERSION)
def test_a_link_type_of_one_version_of_ip_is_read(tmp_path: Path, version: int) -> None:
    ends = (SERVER, CLIENT) if version == 4 else (SERVER_6, CLIENT_6)
    link = OF_ONE_VERSION[version]
    recording = between(
        tmp_path, pcap(framed(sent(range(COUNT), *ends), link)), pcapng(framed(sent(CAME, *ends), link))
    )
    assert numbers_lost(recording) == RIGHT


def test_a_link_type_that_is_not_read_is_named(tmp_path: Path) -> None:
    usb = [Frame(bytes(64), 189)]
    with pytest.raises(
        BadInput, match=r"sender: its packets have link headers of type 189, which are not read"
    ):
        between(tmp_path, pcap(usb), pcap(framed(sent(CAME))))


def test_interfaces_with_other_link_types_are_read_and_others_passed_over(tmp_path: Path) -> None:
    """The second interface has the packets, as of a host with a tunnel; a third is of USB."""
    of_tunnel = framed(sent(range(COUNT)), LINKS["raw"])
    noise = framed([udp(b"name?", ("192.0.2.9", 53), ("192.0.2.1", 5353))])
    recording = between(
        tmp_path, pcapng([*noise, Frame(bytes(20), 189), *of_tunnel]), pcap(framed(sent(CAME)))
    )
    assert numbers_lost(recording) == RIGHT


def test_a_section_has_interfaces_of_its_own(tmp_path: Path) -> None:
    """The captures of this test are concatenated."""
    packets = sent(range(COUNT))
    sender = pcapng(framed(packets[:30], LINKS["raw"])) + pcapng(framed(packets[30:]), order=">")
    assert numbers_lost(between(tmp_path, sender, pcap(framed(sent(CAME))))) == RIGHT


def test_a_packet_that_several_interfaces_saw_was_sent_once(tmp_path: Path) -> None:
    """A capture on "any" of a host with a bridge."""
    link_type, _ = LINKS["cooked 2"]
    frames_seen = [
        Frame(
            b"\x08\0\0\0" + device.to_bytes(4, "big") + bytes([0, 1, way, 6]) + bytes(8) + packet, link_type
        )
        for packet in sent(range(COUNT))
        for device, way in ((3, 0), (4, 4))
    ]
    assert numbers_lost(between(tmp_path, pcap(frames_seen), pcap(framed(sent(CAME))))) == RIGHT


HOP = (0, bytes([0]) + bytes(6))
"""Options of IPv6 of 8 bytes."""
EXTENSIONS = {
    "options": [HOP],
    "options of the destination": [(60, bytes([1]) + bytes(14))],
    "routing": [HOP, (43, bytes([0]) + bytes(6))],
    "authentication": [(51, bytes([4]) + bytes(22))],
    "one fragment": [(44, bytes([0]) + bytes(6))],
}


@pytest.mark.parametrize("extensions", EXTENSIONS)
def test_extension_headers_of_ipv6_are_stepped_over(tmp_path: Path, extensions: str) -> None:
    sender = [
        captures.extended(packet, *EXTENSIONS[extensions])
        for packet in sent(range(COUNT), SERVER_6, CLIENT_6)
    ]
    recording = between(tmp_path, pcap(framed(sender)), pcap(framed(sent(CAME, SERVER_6, CLIENT_6))))
    assert numbers_lost(recording) == RIGHT


def test_options_of_ipv4_are_stepped_over(tmp_path: Path) -> None:
    def with_options(packet: bytes) -> bytes:
        return (
            bytes([0x46])
            + packet[1:2]
            + (len(packet) + 4).to_bytes(2, "big")
            + packet[4:20]
            + bytes(4)
            + packet[20:]
        )

    sender = pcap(framed([with_options(packet) for packet in sent(range(COUNT))]))
    assert numbers_lost(between(tmp_path, sender, pcap(framed(sent(CAME))))) == RIGHT


def test_a_datagram_in_fragments_is_lost_when_one_of_them_is(tmp_path: Path) -> None:
    """Whole at the sender, and cut by a router: all that came are there, in any order; of 7, a part came."""
    pieces = {number: fragments(packet, number) for number, packet in enumerate(sent(range(COUNT)))}
    arrived = [piece for number in CAME for piece in reversed(pieces[number])]
    arrived[14:14] = pieces[7][:2]
    recording = between(tmp_path, pcap(framed(sent(range(COUNT)))), pcap(framed(arrived)))
    assert numbers_lost(recording) == RIGHT
    assert recording.notes == (
        "57 datagrams of receiver are in fragments; a datagram is lost when a fragment is.",
    )


def test_addresses_may_be_translated_between(tmp_path: Path) -> None:
    recording = between(
        tmp_path, pcap(framed(sent(range(COUNT)))), pcap(framed(sent(CAME, ("203.0.113.9", 61000))))
    )
    assert numbers_lost(recording) == RIGHT
    assert recording.notes[0].startswith("receiver has them as 203.0.113.9:61000 to 198.51.100.2:50000")
    segments = [tcp(payload(number, 900), 900 * number) for number in range(COUNT)]
    translated = [tcp(payload(number, 900), 900 * number, ("203.0.113.9", 61000)) for number in CAME]
    assert numbers_lost(between(tmp_path, pcap(framed(segments)), pcap(framed(translated)))) == RIGHT


def test_a_keep_alive_that_is_alike_makes_no_flow_the_same(tmp_path: Path) -> None:
    """The sender's busiest flow goes elsewhere; both sides' other flows have the same byte now and then."""
    elsewhere = [
        *sent(range(1000, 1200), destination=("203.0.113.5", 50000)),
        udp(b"\0", ("192.0.2.1", 9), CLIENT),
    ]
    keeps = [udp(b"\0", SERVER, ("203.0.113.5", 50000)), udp(bytes(20), SERVER, ("203.0.113.5", 50000))]
    others = [udp(b"\0", ("192.0.2.8", 53), CLIENT), udp(bytes(20), ("192.0.2.8", 53), CLIENT)]
    sender = [*elsewhere, *keeps, *sent(range(COUNT))]
    assert (
        numbers_lost(between(tmp_path, pcap(framed(sender)), pcap(framed([*others, *sent(CAME)])))) == RIGHT
    )


def test_clocks_may_differ(tmp_path: Path) -> None:
    late = [Frame(frame.content, 1, frame.at_s + 86_400) for frame in framed(sent(CAME))]
    recording = between(tmp_path, pcap(framed(sent(range(COUNT)))), pcap(late))
    assert numbers_lost(recording) == RIGHT
    assert "are 86400 s apart" in recording.notes[0]


@given(
    st.lists(st.integers(1, 6), min_size=10, max_size=20),
    st.sets(st.integers(0, 60), max_size=8),
    st.booleans(),
)
@settings(deadline=None, max_examples=40)
def test_datagrams_that_an_offload_joined_are_split(
    tmp_path_factory: pytest.TempPathFactory, joins: list[int], missing: set[int], by_sender: bool
) -> None:
    """The offload is the sender's (GSO) or the receiver's (GRO). It joins any number of packets, the last
    shorter."""
    count = sum(joins)
    sizes = [700 if number % 6 == 5 else 1200 for number in range(count)]
    lost = sorted(number for number in missing if 0 < number < count - 1)
    arrived = [number for number in range(count) if number not in lost]

    def parts(numbers: list[int], joins: list[int]) -> list[bytes]:
        joined, at = [], 0
        for size in joins:
            group = numbers[at : at + size]
            at += size
            while group:
                # The kernel joins what follows without a gap, up to a packet that is shorter.
                end = next((n for n, number in enumerate(group) if sizes[number] < 1200), len(group)) + 1
                run = [n for n in range(min(end, len(group))) if group[n] == group[0] + n]
                joined.append(udp(b"".join(payload(group[n], sizes[group[n]]) for n in run)))
                group = group[len(run) :]
        return joined

    singly = [1] * count
    folder = tmp_path_factory.getbasetemp()
    recording = between(
        folder,
        pcap(framed(parts(list(range(count)), joins if by_sender else singly))),
        pcap(framed(parts(arrived, singly if by_sender else joins))),
    )
    assert np.flatnonzero(recording.lost).tolist() == lost


def test_datagrams_that_an_offload_joined_are_split_where_the_others_are_cut(tmp_path: Path) -> None:
    joined = [udp(payload(number) + payload(number + 1)) for number in range(0, COUNT, 2)]
    assert numbers_lost(between(tmp_path, pcap(framed(joined)), cut(sent(CAME), 96))) == RIGHT


def test_a_lost_datagram_is_none_of_tiny_parts(tmp_path: Path) -> None:
    """Payloads of zeros, and a keep-alive of a byte among them."""
    sender = [udp(number.to_bytes(2, "big") + bytes(1198)) for number in range(1, COUNT)] + [udp(b"\0")]
    assert numbers_lost(
        between(tmp_path, pcap(framed(sender)), pcap(framed([*sender[:7], *sender[8:]])))
    ) == ("7", COUNT)


def test_segments_that_an_offload_joined_on_one_side_alone_are_refused(tmp_path: Path) -> None:
    joined = [tcp(payload(number, 9000), 9000 * number) for number in range(10)]
    singly = [
        tcp(payload(number, 9000)[at : at + 1000], 9000 * number + at)
        for number in range(10)
        for at in range(0, 9000, 1000)
    ]
    for sender, receiver in ((joined, singly), (singly, joined)):
        with pytest.raises(BadInput, match="segmentation offload joined them; capture with it off"):
            between(tmp_path, pcap(framed(sender)), pcap(framed(receiver)))


def test_a_lost_probe_of_the_mtu_is_a_packet_of_its_own(tmp_path: Path) -> None:
    sender = sent(range(COUNT))
    sender[30] = udp(payload(30, 1452))
    arrived = [packet for number, packet in enumerate(sender) if number not in (*LOST, 30)]
    assert numbers_lost(between(tmp_path, pcap(framed(sender)), pcap(framed(arrived)))) == (
        "7,20-21,30",
        COUNT,
    )


def cut(packets: Iterable[bytes], snap_bytes: int) -> bytes:
    return pcap([frame.cut(snap_bytes) for frame in framed(packets)], snap_bytes=snap_bytes)


def test_frames_that_are_cut_are_compared_up_to_there(tmp_path: Path) -> None:
    whole = pcap(framed(sent(CAME)))
    for sender, receiver in (
        (cut(sent(range(COUNT)), 96), whole),
        (cut(sent(range(COUNT)), 96), cut(sent(CAME), 128)),
        (pcap(framed(sent(range(COUNT)))), cut(sent(CAME), 80)),
    ):
        recording = between(tmp_path, sender, receiver)
        assert numbers_lost(recording) == RIGHT
        assert recording.notes[0].startswith("Frames are cut (snaplen): payloads are compared by their first")


def test_frames_of_another_flow_may_be_cut_too_short(tmp_path: Path) -> None:
    """A header of IPv6 is longer."""
    other = udp(payload(7), SERVER_6, CLIENT_6)
    recording = between(tmp_path, cut([other, *sent(range(COUNT))], 66), cut([other, *sent(CAME)], 66))
    assert numbers_lost(recording) == RIGHT


def test_frames_that_are_cut_too_short_are_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"frames are cut \(snaplen\) to 4 bytes of a payload"):
        between(tmp_path, cut(sent(range(COUNT)), 46), pcap(framed(sent(CAME))))
    alike = [udp(bytes(100) + payload(number)) for number in range(COUNT)]
    with pytest.raises(BadInput, match=r"frames are cut \(snaplen\), and up to there, packets .* are alike"):
        between(tmp_path, cut(alike, 96), pcap(framed(alike)))


def test_the_flow_is_one_of_one_destination(tmp_path: Path) -> None:
    """The sender is a server with another client, whose packets do not come to the first one."""
    others = [udp(payload(1000 + number), SERVER, ("198.51.100.77", 50001)) for number in range(COUNT + 30)]
    assert (
        numbers_lost(
            between(tmp_path, pcap(framed([*others, *sent(range(COUNT))])), pcap(framed(sent(CAME))))
        )
        == RIGHT
    )


def test_packets_that_the_network_sent_twice_are_no_losses_of_the_other_direction(tmp_path: Path) -> None:
    arrived = sent([*range(10), 5, 6, *range(10, COUNT)])
    assert numbers_lost(between(tmp_path, pcap(framed(sent(range(COUNT)))), pcap(framed(arrived)))) == (
        "",
        COUNT,
    )


def test_packets_that_did_not_come_at_the_end_are_left_out_and_told(tmp_path: Path) -> None:
    recording = between(tmp_path, pcap(framed(sent(range(COUNT + 9)))), pcap(framed(sent(CAME))))
    assert numbers_lost(recording) == RIGHT
    (note,) = recording.notes
    assert note.startswith("The last 9 packets did not come, and are left out")


def test_packets_that_the_capture_of_the_sender_lacks_are_told(tmp_path: Path) -> None:
    of_sender = [number for number in range(COUNT) if number not in (30, 31)]
    recording = between(tmp_path, pcap(framed(sent(of_sender))), pcap(framed(sent(CAME))))
    assert numbers_lost(recording) == ("7,20-21", COUNT - 2)
    (note,) = recording.notes
    assert note.startswith("2 packets came that sender lacks: it is not complete")


def test_a_capture_that_ends_in_a_packet_is_read_up_to_there(tmp_path: Path) -> None:
    for write in (pcap, pcapng):
        sender = write(framed(sent(range(COUNT + 1))))[:-30]
        if write is pcapng:  # behind the packet are two blocks
            sender = write(framed(sent(range(COUNT + 1))))[: -30 - 12 - 16 - 20]
        recording = between(tmp_path, sender, pcap(framed(sent(CAME))))
        assert numbers_lost(recording) == RIGHT
        assert recording.notes == ("sender is cut off within its last packet, which is left out.",)


def of_other_times() -> bytes:
    return pcap([Frame(frame.content, 1, frame.at_s + 7200) for frame in framed(sent(range(100, 160)))])


NOTHING: dict[str, tuple[Callable[[], bytes], str]] = {
    "other times": (
        of_other_times,
        r"they are of other times \(2023-11-14 22:13:20 to 2023-11-14 22:13:20, and",
    ),
    "other contents": (lambda: pcap(framed(sent(range(100, 160)))), "has other packets of that flow"),
    "other addresses": (
        lambda: pcap(framed(sent(range(100, 160), ("203.0.113.9", 443), ("203.0.113.7", 40000)))),
        "neither addresses nor contents are the same",
    ),
    "nothing": (lambda: pcap([]), "it has no packet of TCP or UDP over IP"),
    "the files the other way round": (
        lambda: pcap(framed(sent(range(COUNT + 40)))),
        "is the sender's capture the first one",
    ),
}


@pytest.mark.parametrize("receiver", NOTHING)
def test_captures_with_nothing_in_common_are_refused_with_the_reason(tmp_path: Path, receiver: str) -> None:
    content, why = NOTHING[receiver]
    sender = sent(CAME) if "round" in receiver else sent(range(COUNT))
    with pytest.raises(BadInput, match=why):
        between(tmp_path, pcap(framed(sender)), content())


def test_a_packet_has_its_time_in_every_form_that_keeps_it(tmp_path: Path) -> None:
    for form, write in FILES.items():
        if "simple" not in form:
            (tmp_path / "file").write_bytes(write(framed(sent(range(3)))))
            times = [packet.at_s for packet in packets(tmp_path / "file")]
            assert times == pytest.approx([captures.BEGIN_S + 0.01 * number for number in range(3)]), form


def test_an_interface_may_have_times_of_its_own(tmp_path: Path) -> None:
    """Units of 2^-10 s, 1,000 s late."""
    options = (
        b"\x09\0\1\0\x8a\0\0\0" + b"\x0e\0\x08\0" + (-1000).to_bytes(8, "little", signed=True) + bytes(4)
    )
    frame = captures.ethernet(sent([0])[0])
    at = (5 << 10) + 512
    body = bytes(4) + b"".join(part.to_bytes(4, "little") for part in (0, at, len(frame), len(frame))) + frame
    (tmp_path / "file").write_bytes(
        captures.section() + captures.interface(1, options=options) + captures.block(6, body)
    )
    assert [packet.at_s for packet in packets(tmp_path / "file")] == [5.5 - 1000]
