"""What the kernel counted of a process's network namespace."""

import os
import socket
from pathlib import Path

import pytest

from topologies import counters
from topologies.counters import RECEIVE_BUFFER, discarded, received_bytes

HERE = os.getpid()


def test_a_datagram_that_finds_a_full_buffer_is_counted_there_and_nowhere_else() -> None:
    before = discarded(HERE)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as receiver:
        receiver.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2000)
        receiver.bind(("127.0.0.1", 0))
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
            for _ in range(50):
                sender.sendto(bytes(1000), receiver.getsockname())
    lost = discarded(HERE) - before
    assert 40 <= lost.pop(RECEIVE_BUFFER) < 60, "of this test, and perhaps a few of others on this machine"
    assert "UDP input" not in lost


def test_bytes_are_counted_by_interface() -> None:
    before = received_bytes(HERE, ["lo"])
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        sender.sendto(bytes(10_000), ("127.0.0.1", 9))
    assert received_bytes(HERE, ["lo"]) >= before + 10_000
    with pytest.raises(ValueError, match="no interface none-such; it has lo"):
        received_bytes(HERE, ["none-such"])


def test_drops_of_all_cpus_are_added_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stat = tmp_path / "softnet_stat"
    stat.write_text("001c4ec2 0000000a 00000000 00\n001b1ffe 00000001 00000001 00\n")
    monkeypatch.setattr(counters, "SOFTNET", stat)
    assert counters.backlog_drops() == 11
