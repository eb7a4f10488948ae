"""Losses by sequence numbers of one capture: of one flow, of RTP one source, and none that is guessed."""

import struct
from collections.abc import Iterable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fecbench.dropper.recordings import Recording, Sequence, drop_list, recorded
from fecbench.errors import BadInput
from tests.support import captures
from tests.support.captures import CLIENT, SERVER, framed, pcap, udp

COUNT, LOST = 100, {10, 50, 51}
RTP = Sequence(2, 2)


def rtp(number: int, ssrc: int = 0x1111, kind: int = 96) -> bytes:
    return struct.pack(">BBHII", 0x80, kind, number % 65536, 90 * number, ssrc) + bytes(80)


def of_packets(tmp_path: Path, packets: Iterable[bytes], sequence: Sequence = RTP) -> Recording:
    (tmp_path / "received").write_bytes(pcap(framed(packets)))
    return recorded(tmp_path / "received", sequence=sequence)


CAME = [udp(rtp(1000 + number)) for number in range(COUNT) if number not in LOST]
STUN = udp(b"\0\1\0\x4c\x21\x12\xa4\x42" + bytes(88))
DTLS = udp(b"\x17\xfe\xfd" + bytes(60))
RTCP = udp(b"\x81\xc9\0\7" + bytes(28))


def test_packets_of_other_protocols_on_the_port_have_no_numbers(tmp_path: Path) -> None:
    """RFC 7983: STUN, DTLS and RTCP share it."""
    recording = of_packets(tmp_path, [STUN, *CAME[:40], RTCP, DTLS, *CAME[40:], STUN, RTCP])
    assert (drop_list(recording.lost), recording.lost.size) == ("10,50-51", COUNT)
    assert recording.source == "192.0.2.1:4433 to 198.51.100.2:50000, SSRC 0x00001111"


def test_the_source_with_most_packets_is_read(tmp_path: Path) -> None:
    """A second one, of sound; and a third one from elsewhere."""
    sound = [udp(rtp(7 * number, 0x2222)) for number in range(30)]
    other = [udp(rtp(5 * number, 0x1111), ("192.0.2.9", 5004)) for number in range(40)]
    recording = of_packets(tmp_path, [*sound, *other, *CAME])
    assert drop_list(recording.lost) == "10,50-51"
    assert recording.notes == ("2 other RTP sources with 70 packets are left out.",)


def test_a_flow_is_of_one_destination(tmp_path: Path) -> None:
    """The same source sends to two, each with numbers of its own."""
    numbers = [number.to_bytes(4, "big") + bytes(30) for number in range(COUNT) if number not in LOST]
    here = [udp(payload) for payload in numbers]
    there = [
        udp((5000 + 3 * number).to_bytes(4, "big"), SERVER, ("203.0.113.5", 50000)) for number in range(90)
    ]
    recording = of_packets(tmp_path, [*there, *here], Sequence(0, 4))
    assert drop_list(recording.lost) == "10,50-51"
    assert recording.notes == ("1 other flows with 90 packets are left out.",)


@given(st.integers(1, 8), st.integers(0, 20), st.sampled_from(["big", "little"]), st.integers(0, 1 << 16))
@settings(deadline=None)
def test_numbers_may_stand_anywhere_in_either_order(
    tmp_path_factory: pytest.TempPathFactory, size: int, offset: int, order: str, first: int
) -> None:
    """RTP alone has them at 2:2, big-endian."""
    if (offset, size, order) == (2, 2, "big"):
        return
    packets = [
        udp(b"\x80" * offset + ((first + number) % 256**size).to_bytes(size, order) + bytes(9))
        for number in range(COUNT)
        if number not in LOST
    ]
    recording = of_packets(tmp_path_factory.getbasetemp(), packets, Sequence(offset, size, order))
    assert (drop_list(recording.lost), recording.lost.size) == ("10,50-51", COUNT)


def test_more_missing_than_came_is_refused(tmp_path: Path) -> None:
    """Exactly as many is not."""
    numbers = [udp(number.to_bytes(4, "big")) for number in range(0, 21, 2)]
    assert of_packets(tmp_path, numbers, Sequence(0, 4)).lost.sum() == 10
    with pytest.raises(
        BadInput, match="11 came and 12 are missing, more than came; are the place and the byte"
    ):
        of_packets(tmp_path, [*numbers[:-1], udp((22).to_bytes(4, "big"))], Sequence(0, 4))
    with pytest.raises(BadInput, match="more than came"):
        of_packets(tmp_path, CAME, Sequence(2, 2, "little"))


def test_a_place_at_which_many_packets_have_the_same_number_is_refused(tmp_path: Path) -> None:
    """A packet may have been captured at four interfaces."""
    numbers = [udp((number // 4).to_bytes(4, "big")) for number in range(40)]
    assert of_packets(tmp_path, numbers, Sequence(0, 4)).lost.size == 10
    with pytest.raises(BadInput, match="41 packets have 10 different numbers there: is the place right"):
        of_packets(tmp_path, [*numbers, numbers[-1]], Sequence(0, 4))


def test_packets_that_an_offload_joined_have_the_numbers_of_their_parts(tmp_path: Path) -> None:
    payloads = [rtp(1000 + number) for number in range(COUNT) if number not in LOST]
    joined = [udp(b"".join(payloads[at : at + 3])) for at in (0, 3)] + [
        udp(payload) for payload in payloads[6:]
    ]
    assert drop_list(of_packets(tmp_path, joined).lost) == "10,50-51"


@pytest.mark.parametrize("form", captures.FILES)
def test_every_form_of_file_tells_the_same(tmp_path: Path, form: str) -> None:
    (tmp_path / "received").write_bytes(captures.FILES[form](framed(CAME)))
    assert drop_list(recorded(tmp_path / "received", sequence=Sequence(2, 2)).lost) == "10,50-51"


NONE = {
    "none of its 2 packets of UDP is RTP": [STUN, RTCP],
    "has no packet of UDP over IP": [captures.tcp(b"abc", 1, CLIENT, SERVER)],
}


@pytest.mark.parametrize("why", NONE)
def test_a_capture_without_numbers_is_refused_with_the_reason(tmp_path: Path, why: str) -> None:
    with pytest.raises(BadInput, match=why):
        of_packets(tmp_path, NONE[why])


def test_packets_that_are_too_short_are_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="none of its 3 packets of UDP has 9 bytes"):
        of_packets(tmp_path, 3 * [udp(bytes(8))], Sequence(1, 8))
