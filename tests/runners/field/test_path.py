"""The near and the far host of a path: what they tell each other, and what strangers get."""

import os
import secrets
import socket
import ssl
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from fecbench.runners import authority
from fecbench.runners.field import probe_trains
from fecbench.runners.field.connection import Connection, ConnectionLost, Place, context
from fecbench.runners.field.strangers import shut_out
from fecbench.runners.refusal import Refusal

HOME = "127.0.0.1"


@pytest.fixture(scope="module")
def papers(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("field") / "papers"
    authority.write(folder)
    return folder


def free_port() -> int:
    with socket.socket() as opened:
        opened.bind((HOME, 0))
        port: int = opened.getsockname()[1]
        return port


@pytest.mark.parametrize("text", ["nowhere", "host:", "host:0", "host:70000", ":1", "a b:3", "host:port"])
def test_what_is_no_place_is_refused_in_one_line(text: str) -> None:
    with pytest.raises(Refusal, match=r"--server .*must be HOST:PORT"):
        Place.of("--server", text)


def test_places_are_read_as_they_are_written() -> None:
    for text in ("192.0.2.7:4477", "far.example:1", "[2001:db8::1]:65535"):
        assert str(Place.of("--server", text)) == text


def test_papers_that_others_can_read_are_refused(papers: Path, tmp_path: Path) -> None:
    authority.write(tmp_path / "open")
    (tmp_path / "open" / authority.KEY).chmod(0o644)
    with pytest.raises(Refusal, match="chmod 600"):
        context(tmp_path / "open", server=False)
    with pytest.raises(Refusal, match="fecbench field certificates DIR"):
        context(tmp_path / "absent", server=False)
    context(papers, server=True)


def meet(tls: ssl.SSLContext, entries: list[str]) -> tuple[Place, threading.Thread]:
    """A server that takes one connection, and notes what it got."""
    listener = socket.create_server((HOME, 0))

    def take() -> None:
        with listener:
            plain, _ = listener.accept()
            try:
                connection = Connection(tls.wrap_socket(plain, server_side=True), HOME)
                entries.append(str(connection.receive(5)))
                connection.send({"good": True})
                connection.close()
            except (OSError, ConnectionLost) as error:
                entries.append(f"refused: {error}")
                plain.close()

    thread = threading.Thread(target=take)
    thread.start()
    return Place(HOME, listener.getsockname()[1]), thread


def test_both_ends_must_have_papers_of_one_authority(papers: Path, tmp_path: Path) -> None:
    authority.write(tmp_path / "foreign")
    foreign = context(tmp_path / "foreign", server=False)
    without = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    without.check_hostname, without.verify_mode = False, ssl.CERT_NONE
    forged = context(tmp_path / "foreign", server=False)
    forged.verify_mode = ssl.CERT_NONE
    for tls, why in (
        (foreign, "another authority"),
        (without, "refused|broke|closed"),
        (forged, "refused|broke"),
    ):
        entries: list[str] = []
        place, thread = meet(context(papers, server=True), entries)
        with pytest.raises(ConnectionLost, match=why):
            connection = Connection.to(place, tls)
            connection.send({"order": "hello"})
            connection.receive(5)
        thread.join()
        assert [entry[:7] for entry in entries] == ["refused"], entries
    entries = []
    place, thread = meet(context(papers, server=True), entries)
    connection = Connection.to(place, context(papers, server=False))
    connection.send({"order": "hello"})
    assert connection.receive(5) == {"good": True}
    thread.join()
    connection.close()


def test_probes_without_their_token_are_not_answered() -> None:
    train, port = secrets.token_bytes(probe_trains.TOKEN_BYTES), free_port()
    responder = probe_trains.Responder(HOME, port, train)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
        client.settimeout(0.2)
        whole = (train + b"\0\0\0\7").ljust(probe_trains.PROBE_BYTES, b"\0")
        for datagram in (os.urandom(64), whole[:-1], whole + b"\0", b"", os.urandom(16) + whole[16:]):
            client.sendto(datagram, (HOME, port))
        responder.answer()
        with pytest.raises(TimeoutError):
            client.recv(2048)
        client.sendto(whole, (HOME, port))
        responder.answer()
        assert client.recv(2048) == whole
    responder.close()
    assert list(responder.arrived) == [7] and responder.sources == {HOME}


def test_a_train_tells_losses_each_way_and_how_far_clocks_are_apart() -> None:
    sent = probe_trains.Sent(times=[100.0, 100.02, 100.04], round_trips_ms={0: 20.0, 2: 30.0})
    arrived = {0: 507.01, 1: 507.03, 2: 507.06}
    probed = sent.probes(arrived, 100.0)
    assert [(probe.rtt_ms, probe.lost_up) for probe in probed] == [(20, False), (None, False), (30, False)]
    assert [probe.lost_up for probe in sent.probes({0, 2}, 100.0)] == [False, True, False]
    assert sent.server_ahead(arrived) == (20.0, pytest.approx(407.0))


ECHO = """
import socket, sys
opened = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
opened.bind(("127.0.0.1", int(sys.argv[1])))
print("ready", flush=True)
while True:
    datagram, source = opened.recvfrom(2048)
    opened.sendto(datagram, source)
"""


@pytest.mark.parametrize("allowed", [{HOME}, {"::1", HOME}, {f"::ffff:{HOME}"}])
def test_packets_of_others_do_not_reach_a_running_server(allowed: set[str]) -> None:
    port = free_port()
    process = subprocess.Popen(
        [sys.executable, "-c", ECHO, str(port)], stdout=subprocess.PIPE, start_new_session=True
    )
    try:
        assert process.stdout and process.stdout.readline()
        answered = {}
        for shut in (False, True):
            if shut:
                assert shut_out(process.pid, port, allowed) == 1
            for source in (HOME, "127.0.0.2"):
                with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
                    client.bind((source, 0))
                    client.settimeout(0.3)
                    client.sendto(b"hello", (HOME, port))
                    try:
                        answered[shut, source] = client.recv(100)
                    except TimeoutError:
                        answered[shut, source] = b""
        assert answered == {
            **{(False, HOME): b"hello", (False, "127.0.0.2"): b"hello"},
            **{(True, HOME): b"hello", (True, "127.0.0.2"): b""},
        }
    finally:
        process.kill()
        process.wait()
