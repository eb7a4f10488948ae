"""Counters of the kernel for a process's network namespace."""

import errno
import os
import socket
from contextlib import ExitStack
from pathlib import Path

import pytest

from fecbench.topologies import counters
from fecbench.topologies.counters import RECEIVE_BUFFER, TCP_BUFFER, discarded, received_bytes

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


def test_a_connection_that_finds_the_queue_of_a_listener_full_is_counted() -> None:
    before = discarded(HERE)
    with socket.socket() as listener, ExitStack() as clients:
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        for _ in range(4):
            client = clients.enter_context(socket.socket())
            client.setblocking(False)
            assert client.connect_ex(listener.getsockname()) == errno.EINPROGRESS
    lost = discarded(HERE) - before
    assert lost[TCP_BUFFER] >= 1
    assert "TCP checksum" not in lost


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
