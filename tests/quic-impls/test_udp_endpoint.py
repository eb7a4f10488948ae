"""udp against peers that say what is wrong: one line, or nothing at all."""

import signal
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from fecbench.runners.trial.content import content
from tests.waiting import wait_until

NAME = "udp"

HELLO, WELCOME, PART, SOURCE, REPAIR, END, DONE = (
    *(b"\x10", b"\x11", b"\x20"),
    *(b"\x21", b"\x22", b"\x30", b"\x31"),
)
WRONG = [
    (PART + (5).to_bytes(4, "big") + bytes(2 + 1000), "part 0 of message 5: there is none"),
    (PART + bytes(4) + (65_535).to_bytes(2, "big") + bytes(1000), "part 65535 of message 0: there is none"),
    (PART + bytes(6 + 999), "part 0 of message 0: 999 bytes, right are 1000"),
    (PART + bytes(6 + 1000), "message 0: byte 0 is not that of the content"),
    (PART, "0 bytes are too short for a part"),
    (SOURCE + bytes(4 + 6 + 1000), "message 0: byte 0 is not that of the content"),
    (SOURCE + bytes(3), "a datagram of 4 bytes is none of this protocol"),
    (b"\xff" * 1472, "a datagram of 1472 bytes is none of this protocol"),
    (b"", "a datagram of 0 bytes is none of this protocol"),
    (REPAIR + b"\x02" + bytes(3), "repair symbol: "),
    (DONE, "DONE is not what a sender sends"),
]


@pytest.fixture
def assignment(assignment: dict[str, Any]) -> dict[str, Any]:
    """Two messages of 2 kB, downwards, with a code."""
    workload = {
        "name": "messages",
        "direction": "down",
        "delivery": "datagram",
        "deadline_ms": 100.0,
        "part_bytes": 1000,
        "timetable": [[0, 2000], [10_000, 2000]],
    }
    return {**assignment, "workload": workload, "options": {"scheme": "rs"}}


@pytest.fixture
def peer() -> Iterator[socket.socket]:
    """A socket of the other end."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as peer:
        peer.settimeout(30)
        yield peer


def test_either_end_ends_with_one_line_that_names_what_is_wrong(
    endpoints: Any, assignment: dict[str, Any], peer: socket.socket
) -> None:
    place = (assignment["address"], assignment["port"])
    peer.bind(place)
    for wrong, line in WRONG:
        client = endpoints.start("client", assignment)
        hello, address = peer.recvfrom(2000)
        assert hello == HELLO
        peer.sendto(wrong, address)
        assert line in client.failure()
    peer.close()
    assignment["workload"]["direction"] = "up"
    for wrong, line in WRONG:
        with endpoints.serving(assignment) as server, socket.socket(type=socket.SOCK_DGRAM) as own:
            own.settimeout(30)
            own.connect(place)
            own.send(HELLO)
            assert own.recv(2000) == WELCOME
            own.send(wrong)
            assert line in server.failure()


def test_what_comes_from_elsewhere_is_ignored(
    endpoints: Any, assignment: dict[str, Any], peer: socket.socket
) -> None:
    peer.bind((assignment["address"], assignment["port"]))
    client = endpoints.start("client", {**assignment, "deadline_s": 1.0})
    _, address = peer.recvfrom(2000)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as stranger:
        for wrong, _ in WRONG:
            stranger.sendto(wrong, address)
    assert "not done within the deadline" in client.failure()


def test_a_server_serves_so_many_clients_and_no_more(endpoints: Any, assignment: dict[str, Any]) -> None:
    with endpoints.serving(assignment) as server:
        answers = []
        for number in range(18):
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
                client.settimeout(30 if number < 16 else 0.5)
                client.connect((assignment["address"], assignment["port"]))
                client.send(HELLO)
                try:
                    answers.append(client.recv(2000))
                except TimeoutError:
                    answers.append(b"")
        assert answers == [WELCOME] * 16 + [b""] * 2
        server.process.send_signal(signal.SIGTERM)
        assert server.metrics()["packets_received"] == 16


def test_a_part_that_comes_twice_and_numbers_that_go_back_are_taken_once(
    endpoints: Any, assignment: dict[str, Any], peer: socket.socket, rows_of: Any
) -> None:
    workload = {**assignment["workload"], "timetable": [[0, 2000], [500_000, 2000]]}
    assignment |= {"workload": workload, "series": ["messages"]}
    with endpoints.serving(assignment) as server:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as own:
            own.settimeout(30)
            own.connect((assignment["address"], assignment["port"]))
            own.send(HELLO)
            sources = [datagram for datagram in (own.recv(2000) for _ in range(8)) if datagram[:1] == SOURCE]
        server.process.send_signal(signal.SIGTERM)
        server.metrics()
    peer.bind((assignment["address"], assignment["port"]))
    client = endpoints.start("client", assignment)
    _, address = peer.recvfrom(2000)
    for source in [*sources[::-1], *sources]:
        peer.sendto(source, address)
    metrics = client.metrics()
    assert len(rows_of("client", "messages")) == len(set(sources))
    assert metrics["packets_recovered"] == 0


def resident_bytes(process: int) -> int:
    (line,) = (
        line for line in Path(f"/proc/{process}/status").read_text().splitlines() if line.startswith("VmRSS:")
    )
    return 1024 * int(line.split()[1])


def queued_bytes(address: tuple[str, int]) -> int:
    """Return the bytes that wait at UDP sockets of IPv4 with that port."""
    sockets = [line.split() for line in Path("/proc/net/udp").read_text().splitlines()[1:]]
    waiting = [queues for _, local, _, _, queues, *_ in sockets if local.endswith(f":{address[1]:04X}")]
    return sum(int(queues.split(":")[1], 16) for queues in waiting)


def test_a_flood_of_symbols_under_ever_new_numbers_takes_no_memory(
    endpoints: Any, assignment: dict[str, Any], peer: socket.socket, rows_of: Any
) -> None:
    """Any may be the first of a block: copies of one part, and repair symbols over what never comes."""
    flood = 10_000
    peer.bind((assignment["address"], assignment["port"]))
    client = endpoints.start("client", {**assignment, "series": ["messages"]})
    _, address = peer.recvfrom(2000)
    before = resident_bytes(client.process.pid)
    part = bytes(6) + content(assignment["content_seed"], 1000)
    for number in range(flood):
        source = (1000 * number).to_bytes(4, "big")
        protected = (2**31 + 1000 * number + 1).to_bytes(4, "big")  # a variable-length integer
        peer.sendto(SOURCE + source + part, address)
        peer.sendto(REPAIR + b"\x02" + protected + bytes([2, 1, 0, 0, 0]) + part, address)
        if number % 20 == 0:  # the client's socket has room for no more
            wait_until(lambda: queued_bytes(address) == 0, "the client has read the flood")
    wait_until(lambda: queued_bytes(address) == 0, "the client has read the flood")
    grown = resident_bytes(client.process.pid) - before
    peer.sendto(END, address)
    metrics = client.metrics()
    # Had it kept them, these were 18 MB at least.
    assert metrics["source_received"] + metrics["repair_received"] == 2 * flood
    assert grown < 4 * 2**20
    assert [(row["message"], row["part"]) for row in rows_of("client", "messages")] == [(0, 0)]
