"""Recorded losses are read from lists, qlog files and packet captures; what is none of these is refused."""

import gzip
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from fecbench.dropper.model import parse_drop_list
from fecbench.dropper.recordings import Sequence, drop_list, read, recorded
from fecbench.errors import BadInput
from fecbench.runners.commands.losses import losses
from tests.support import captures
from tests.support.captures import CLIENT, SERVER, udp

LOST = [2, 3, 7]


def capture(path: Path, packets: Iterable[bytes], form: str = "pcap") -> Path:
    path.write_bytes(captures.FILES[form](captures.framed(packets)))
    return path


def frames(numbers: Iterable[int]) -> list[bytes]:
    """Return frames of RTP, whose sequence numbers begin again after 65535."""
    return [udp(b"\x80\0" + (number % 65536).to_bytes(2, "big") + bytes(20)) for number in numbers]


@given(st.lists(st.booleans(), max_size=200))
def test_a_drop_list_of_losses_is_read_back_as_the_same_losses(lost: list[bool]) -> None:
    assert parse_drop_list(drop_list(np.array(lost, dtype=np.bool_))) == tuple(np.flatnonzero(lost))


def test_what_the_receivers_capture_lacks_is_lost(tmp_path: Path) -> None:
    """The last packets may be under way, and the receiver's own packets do not count."""
    replies = [udp(bytes([number]), CLIENT, SERVER) for number in range(40)]
    arrived = [number for number in range(10) if number not in LOST]
    sent = capture(tmp_path / "sent", [*frames(range(12)), *replies[:3]])
    received = capture(tmp_path / "received", [*frames(arrived), *replies])
    lost = read(sent, received)
    assert (np.flatnonzero(lost).tolist(), lost.size) == (LOST, 10)


def test_packets_with_the_same_content_are_counted(tmp_path: Path) -> None:
    sent = capture(tmp_path / "sent", [udp(b"same")] * 4 + [udp(b"last")])
    received = capture(tmp_path / "received", [udp(b"same")] * 3 + [udp(b"last")])
    assert read(sent, received).sum() == 1


def test_a_missing_sequence_number_is_lost_also_where_they_begin_again(tmp_path: Path) -> None:
    for first in (0, 65_530):
        arrived = [first + number for number in (0, 1, 5, 4, 6, 8, 9)]
        path = capture(tmp_path / "received", frames(arrived))
        assert np.flatnonzero(read(path, sequence=Sequence.of("2:2"))).tolist() == LOST, first


def test_the_command_prints_what_a_design_takes(tmp_path: Path) -> None:
    path = tmp_path / "list"
    path.write_text("0011000100\n")
    result = CliRunner().invoke(losses, ["import", str(path)])
    assert result.exit_code == 0
    lines = 'loss.down.model = "pattern"\nloss.down.drop = "2-3,7"\nloss.down.length = 10\n'
    assert lines in result.stdout and "down is assumed" in result.stdout
    result = CliRunner().invoke(losses, ["import", str(path), "--direction", "up"])
    assert lines.replace("down", "up") in result.stdout and "assumed" not in result.stdout
    document = json.loads(CliRunner().invoke(losses, ["import", str(path), "--json"]).stdout)
    assert document == {
        **{"model": "pattern", "drop": "2-3,7", "length": 10, "losses": 3},
        **{"direction": None, "source": "", "notes": []},
    }


def test_an_option_that_a_recording_has_no_use_for_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "list"
    path.write_text("0011")
    for options, why in (
        (["--trace", "1"], "--trace 1: it is no qlog"),
        (["--byte-order", "big"], "no --sequence"),
    ):
        result = CliRunner().invoke(losses, ["import", str(path), *options])
        assert isinstance(result.exception, BadInput) and why in str(result.exception)


def test_a_list_may_be_packed(tmp_path: Path) -> None:
    path = tmp_path / "list.gz"
    path.write_bytes(gzip.compress(b"0 0 1 1 0\n"))
    assert drop_list(read(path)) == "2-3"


def test_a_list_with_more_losses_than_arrivals_asks_what_a_1_means(tmp_path: Path) -> None:
    path = tmp_path / "list"
    for text, notes in (("0 1 0 1", 0), ("1 1 0 1", 1)):
        path.write_text(text)
        assert len(recorded(path).notes) == notes
    assert recorded(path).notes[0].startswith("3 of 4 packets were lost, more than came: does a 1 mean")


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
    (b"\x1f\x8bnonsense", None, "FILE: its gzip is cut off or broken"),
    (gzip.compress(b"0101")[:-9], None, "FILE: its gzip is cut off or broken"),
    (b"\x28\xb5\x2f\xfd....", None, "FILE: is packed by zstd: unpack it first"),
    (b"\x01\x02\xff", None, "FILE: is no text"),
]


def test_a_bad_recording_is_named_in_one_line(tmp_path: Path) -> None:
    path = tmp_path / "recording"
    for content, received, why in BAD:
        path.write_bytes(content)
        with pytest.raises(BadInput) as refusal:
            read(path, path if received else None)
        assert str(refusal.value).startswith(why.replace("FILE", str(path)))
        assert "\n" not in str(refusal.value)


def test_captures_that_have_nothing_in_common_are_refused(tmp_path: Path) -> None:
    sent, other = (
        capture(tmp_path / "sent", frames(range(5))),
        capture(tmp_path / "other", frames(range(9, 12))),
    )
    with pytest.raises(BadInput, match="other: has none of the packets of"):
        read(sent, other)
    with pytest.raises(BadInput, match="empty: has none of the packets"):
        read(sent, capture(tmp_path / "empty", []))


def test_a_place_of_sequence_numbers_that_is_none_is_refused() -> None:
    for text in ("2", "2:", "2:9", "x:2", "-1:2", "2:0"):
        with pytest.raises(BadInput, match="must be OFFSET:BYTES"):
            Sequence.of(text)


@given(
    st.binary(max_size=300),
    st.sampled_from([b"", b"\xd4\xc3\xb2\xa1", captures.section(), b"\x1e{", b"{", b"\x1f\x8b"]),
)
def test_any_bytes_are_read_or_refused(tmp_path_factory: Any, content: bytes, start: bytes) -> None:
    path = tmp_path_factory.getbasetemp() / "any"
    path.write_bytes(start + content)
    for received, sequence in ((None, None), (path, None), (None, Sequence(0, 2))):
        try:
            read(path, received, sequence)
        except BadInput as refused:
            assert "\n" not in str(refused)
