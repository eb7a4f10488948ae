"""Recorded losses are read from lists, qlog files and packet captures; what is none of these is refused."""

import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import dpkt
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from fecbench.dropper.parameters import parse_drop_list
from fecbench.dropper.recordings import Sequence, drop_list, read
from fecbench.errors import BadInput
from fecbench.runners.commands.losses import losses

SENDER, RECEIVER = b"\x0a\0\2\2", b"\x0a\0\1\2"
LOST = [2, 3, 7]


def frame(payload: bytes, source: bytes = SENDER, destination: bytes = RECEIVER) -> bytes:
    udp = dpkt.udp.UDP(sport=4433, dport=40000, data=payload, ulen=8 + len(payload))
    ip = dpkt.ip.IP(src=source, dst=destination, p=17, data=udp, len=28 + len(payload))
    return bytes(dpkt.ethernet.Ethernet(type=0x0800, data=ip))


def capture(path: Path, frames: Iterable[bytes], writer: Callable[..., Any] = dpkt.pcap.Writer) -> Path:
    with path.open("wb") as file:
        written = writer(file)
        for number, each in enumerate(frames):
            written.writepkt(each, ts=float(number))
    return path


def frames(numbers: Iterable[int]) -> list[bytes]:
    """As of RTP, whose sequence numbers begin again after 65535."""
    return [frame(b"\x80\0" + (number % 65536).to_bytes(2, "big") + bytes(20)) for number in numbers]


@given(st.lists(st.booleans(), max_size=200))
def test_a_drop_list_of_losses_is_read_back_as_the_same_losses(lost: list[bool]) -> None:
    assert parse_drop_list(drop_list(np.array(lost, dtype=np.bool_))) == tuple(np.flatnonzero(lost))


def test_what_the_receivers_capture_lacks_is_lost(tmp_path: Path) -> None:
    """Not what was sent last, which may be under way, and not what the receiver sends."""
    replies = [frame(bytes([number]), RECEIVER, SENDER) for number in range(40)]
    came = [number for number in range(10) if number not in LOST]
    for writer in (dpkt.pcap.Writer, dpkt.pcapng.Writer):
        sent = capture(tmp_path / "sent", [*frames(range(12)), *replies[:3]], writer)
        received = capture(tmp_path / "received", [*frames(came), *replies], writer)
        lost = read(sent, received)
        assert (np.flatnonzero(lost).tolist(), lost.size) == (LOST, 10), writer


def test_packets_with_the_same_content_are_counted(tmp_path: Path) -> None:
    sent = capture(tmp_path / "sent", [frame(b"same")] * 4 + [frame(b"last")])
    received = capture(tmp_path / "received", [frame(b"same")] * 3 + [frame(b"last")])
    assert read(sent, received).sum() == 1


def test_a_missing_sequence_number_is_lost_also_where_they_begin_again(tmp_path: Path) -> None:
    for first in (0, 65_530):
        came = [first + number for number in (0, 1, 5, 4, 6, 8, 9)]
        path = capture(tmp_path / "received", frames(came))
        assert np.flatnonzero(read(path, sequence=Sequence.of("2:2"))).tolist() == LOST, first


EVENTS = [
    *(("packet_sent", number) for number in range(10)),
    *(("packet_lost", number) for number in LOST),
]


def test_a_qlog_tells_what_its_endpoint_declared_lost(tmp_path: Path) -> None:
    path = tmp_path / "trace.qlog"
    of_handshake = {"header": {"packet_type": "initial", "packet_number": 0}}
    told = [{"name": "quic:packet_lost", "data": of_handshake}] + [
        {"name": f"transport:{name}", "data": {"header": {"packet_type": "1RTT", "packet_number": number}}}
        for name, number in EVENTS
    ]
    records = "".join(f"\x1e{json.dumps(record)}\n" for record in [{"qlog_format": "JSON-SEQ"}, *told])
    for text in (records, json.dumps({"traces": [{"events": told}]})):
        path.write_text(text)
        assert np.flatnonzero(read(path)).tolist() == LOST, text[:20]


def test_the_command_prints_what_a_design_takes(tmp_path: Path) -> None:
    path = tmp_path / "list"
    path.write_text("0011000100\n")
    done = CliRunner().invoke(losses, ["import", str(path)])
    assert done.exit_code == 0
    assert 'loss.model = "pattern"\nloss.drop = "2-3,7"\nloss.length = 10\n' in done.stdout
    told = json.loads(CliRunner().invoke(losses, ["import", str(path), "--json"]).stdout)
    assert told == {"model": "pattern", "drop": "2-3,7", "length": 10, "losses": 3}


BAD = [
    (b"", None, "FILE: is empty"),
    (b"\xd4\xc3\xb2\xa1", "same", "FILE: is no whole packet capture"),
    (b"\xd4\xc3\xb2\xa1" + bytes(20), None, "FILE: a capture needs either --received"),
    (b"01", "same", "FILE: is no packet capture"),
    (b"{", None, "FILE: is no whole qlog"),
    (b"\x1e{}\x1e{", None, "FILE: is no whole qlog"),
    (b"{}", None, "FILE: is no qlog: it has no traces with events"),
    (b'{"traces": [{"events": [1]}]}', None, "FILE: has no packet that was sent after"),
    (b'\x1e{"name": "packet_sent", "data": 7}', None, "FILE: has no packet that was sent after"),
]


def test_a_bad_recording_is_named_in_one_line(tmp_path: Path) -> None:
    path = tmp_path / "recording"
    for content, received, why in BAD:
        path.write_bytes(content)
        with pytest.raises(BadInput) as refused:
            read(path, path if received else None)
        assert str(refused.value).startswith(why.replace("FILE", str(path)))
        assert "\n" not in str(refused.value)


def test_captures_that_have_nothing_in_common_are_refused(tmp_path: Path) -> None:
    sent, other = (
        capture(tmp_path / "sent", frames(range(5))),
        capture(tmp_path / "other", frames(range(9, 12))),
    )
    with pytest.raises(BadInput, match="other: has none of the packets of"):
        read(sent, other)
    with pytest.raises(BadInput, match="empty: has none of the packets"):
        read(sent, capture(tmp_path / "empty", []))


def test_a_frame_that_the_library_cannot_read_is_left_out(tmp_path: Path) -> None:
    """An IPv6 fragment with options behind its header: dpkt looks for the fragment's offset in them."""
    fragment, options = bytes([60, 0, 0, 0, 0, 0, 0, 1]), bytes([17, 0, 1, 4, 0, 0, 0, 0])
    ipv6 = b"\x60\0\0\0" + (16).to_bytes(2, "big") + bytes([44, 64]) + bytes(32) + fragment + options
    odd = bytes(12) + b"\x86\xdd" + ipv6
    sent = capture(tmp_path / "sent", [odd, *frames(range(5))])
    received = capture(tmp_path / "received", [*frames([0, 1, 4]), odd])
    assert drop_list(read(sent, received)) == "2-3"


def test_a_place_of_sequence_numbers_that_is_none_is_refused() -> None:
    for text in ("2", "2:", "2:9", "x:2", "-1:2", "2:0"):
        with pytest.raises(BadInput, match="must be OFFSET:BYTES"):
            Sequence.of(text)


@given(
    st.binary(max_size=300), st.sampled_from([b"", b"\xd4\xc3\xb2\xa1", b"\x0a\x0d\x0d\x0a", b"\x1e{", b"{"])
)
def test_any_bytes_are_read_or_refused(tmp_path_factory: Any, content: bytes, start: bytes) -> None:
    path = tmp_path_factory.getbasetemp() / "any"
    path.write_bytes(start + content)
    for received, sequence in ((None, None), (path, None), (None, Sequence(0, 2))):
        try:
            read(path, received, sequence)
        except BadInput as refused:
            assert "\n" not in str(refused)
