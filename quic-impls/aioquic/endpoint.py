"""Transfers over aioquic as it is published; quic-impls/README.md has the contract.

    endpoint.py ASSIGNMENT.json

One datagram per system call, no segmentation offload, no ECN.
"""

import hashlib
import json
import logging
import os
import re
import select
import signal
import socket
import ssl
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn, TextIO

import counting
from aioquic.buffer import Buffer
from aioquic.quic import events
from aioquic.quic.configuration import QuicConfiguration
from aioquic.quic.connection import QuicConnection
from aioquic.quic.logger import QuicLogger
from aioquic.quic.packet import QuicPacketType, pull_quic_header
from asking import AskingError, Requests
from assignment import LARGEST, Assignment, UnsupportedError, WrongError, read
from content import content, content_hash

EXIT_FAILURE, EXIT_WRONG, EXIT_UNSUPPORTED = 1, 2, 127
ALPN = "hq-interop"
SOCKET_BUFFER_BYTES = 7 << 20
WINDOW_BYTES = 64 << 20
"""Flow control must not be what limits a transfer."""
BACKLOG_BYTES = 1 << 20
"""Most bytes that a stream gets in advance."""
BATCH = 64
"""Datagrams that are received before others are sent."""
HASH_LENGTH = 64
LONGEST_LINE = 64
BAD_REQUEST = 1


class FailedError(Exception):
    """An endpoint could not do what it had to, in one line."""


class Outgoing:
    """The data of a stream: some first bytes, then content, then its end."""

    def __init__(self, stream_id: int, first: bytes, seed: int, size: int) -> None:
        self._stream_id, self._first, self._seed, self._size = stream_id, first, seed, size
        self._given = 0
        self._has_begun = False
        self.is_given = False

    def proceed(self, connection: QuicConnection) -> None:
        """Give the stream as much as there is room for."""
        if not self._has_begun:
            self._has_begun = True
            self.is_given = self._size == 0
            connection.send_stream_data(self._stream_id, self._first, end_stream=self.is_given)
        if self.is_given:
            return
        # aioquic takes any amount and keeps it in memory; it does not tell how much that is.
        sender = connection._streams[self._stream_id].sender
        room = BACKLOG_BYTES - (sender._buffer_stop - sender._buffer_start)
        step = min(room, self._size - self._given)
        if step <= 0:
            return
        data = content(self._seed, self._given, step)
        self._given += step
        self.is_given = self._given == self._size
        connection.send_stream_data(self._stream_id, data, end_stream=self.is_given)


class Request:
    """The one request of a client, and its answer."""

    def __init__(self, assignment: Assignment) -> None:
        self._assignment = assignment
        self._outgoing: Outgoing | None = None
        self._digest = hashlib.sha256()
        self._received = 0
        self._answer = b""
        self.connected: float | None = None
        self.ended: float | None = None

    def on_event(self, connection: QuicConnection, event: events.QuicEvent, now: float) -> None:
        """Raises FailedError when it cannot be a success any more."""
        request = self._assignment
        if isinstance(event, events.HandshakeCompleted):
            self.connected = now
            line = f"{request.method} /{request.size_bytes}\r\n".encode()
            body = request.size_bytes if request.method == "PUT" else 0
            stream_id = connection.get_next_available_stream_id()
            self._outgoing = Outgoing(stream_id, line, request.content_seed, body)
        elif isinstance(event, events.StreamDataReceived):
            self._take(event.data)
            if event.end_stream:
                self._verify()
                self.ended = now
        elif isinstance(event, events.StreamReset | events.StopSendingReceived):
            raise FailedError(f"{request.transfer}: the server refused it with code {event.error_code}")
        elif isinstance(event, events.ConnectionTerminated) and self.ended is None:
            where = "handshake" if self.connected is None else f"after {self._received} bytes"
            raise FailedError(f"{request.transfer}: {where}: {reason_of(event)}")

    def proceed(self, connection: QuicConnection) -> None:
        if self._outgoing is not None:
            self._outgoing.proceed(connection)

    def _take(self, data: bytes) -> None:
        self._received += len(data)
        self._digest.update(data)
        request = self._assignment
        limit = request.size_bytes if request.method == "GET" else HASH_LENGTH
        if self._received > limit:
            raise FailedError(
                f"{request.transfer}: the server sent more than the {limit} bytes that are right"
            )
        if request.method == "PUT":
            self._answer += data

    def _verify(self) -> None:
        request = self._assignment
        if request.method == "GET" and self._received < request.size_bytes:
            raise FailedError(f"{request.transfer}: the server sent {self._received} bytes")
        right = content_hash(request.content_seed, request.size_bytes)
        result = (
            self._digest.hexdigest() if request.method == "GET" else self._answer.decode(errors="replace")
        )
        if result != right:
            raise FailedError(
                f"{request.transfer}: the content received has SHA-256 {result!r}, right is {right}"
            )


class Exchange:
    """A request of a client, and a server's answer."""

    def __init__(self, stream_id: int, seed: int) -> None:
        self._stream_id, self._seed = stream_id, seed
        self._line = b""
        self._body_bytes: int | None = None
        self._digest = hashlib.sha256()
        self._received = 0
        self._outgoing: Outgoing | None = None

    def take(self, data: bytes, is_end: bool) -> None:
        """Raises FailedError for a request that is wrong."""
        if self._outgoing is not None:
            if data:
                raise FailedError("more than a request line")
            return
        if self._body_bytes is None:
            self._line += data
            line, separator, data = self._line.partition(b"\n")
            if not separator:
                if is_end or len(line) > LONGEST_LINE:
                    raise FailedError("no request line")
                return
            self._begin(line.decode(errors="replace").strip())
            if self._outgoing is not None:
                self.take(data, is_end)
                return
        self._received += len(data)
        self._digest.update(data)
        if self._received > self._body_bytes or (is_end and self._received < self._body_bytes):
            raise FailedError(f"the body has {self._received} bytes, announced were {self._body_bytes}")
        if is_end:
            self._outgoing = Outgoing(self._stream_id, self._digest.hexdigest().encode(), 0, 0)

    def _begin(self, line: str) -> None:
        request = re.fullmatch(r"(GET|PUT) /(\d{1,13})", line, re.ASCII)
        if request is None or int(request[2]) > LARGEST:
            raise FailedError(f"{line!r} is neither GET nor PUT with / and a number of bytes")
        if request[1] == "PUT":
            self._body_bytes = int(request[2])
        else:
            self._outgoing = Outgoing(self._stream_id, b"", self._seed, int(request[2]))

    def proceed(self, connection: QuicConnection) -> None:
        if self._outgoing is not None:
            self._outgoing.proceed(connection)


class Answers:
    """A server's answers on one connection."""

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._exchanges: dict[int, Exchange] = {}

    def on_event(self, connection: QuicConnection, event: events.QuicEvent) -> None:
        if isinstance(event, events.StreamDataReceived):
            exchange = self._exchanges.setdefault(event.stream_id, Exchange(event.stream_id, self._seed))
            try:
                exchange.take(event.data, event.end_stream)
            except FailedError as error:
                complain(f"request of stream {event.stream_id}: {error}")
                self._refuse(connection, event.stream_id)
        elif isinstance(event, events.StreamReset | events.StopSendingReceived):
            self._exchanges.pop(event.stream_id, None)

    def _refuse(self, connection: QuicConnection, stream_id: int) -> None:
        del self._exchanges[stream_id]
        connection.reset_stream(stream_id, BAD_REQUEST)
        connection.stop_stream(stream_id, BAD_REQUEST)

    def proceed(self, connection: QuicConnection) -> None:
        for exchange in self._exchanges.values():
            exchange.proceed(connection)


class Wire:
    """The socket, and signals that end an endpoint."""

    def __init__(self, address: tuple[str, int] | None, family: socket.AddressFamily) -> None:
        self._socket = socket.socket(family, socket.SOCK_DGRAM)
        self._socket.setblocking(False)
        for buffer in (socket.SO_RCVBUF, socket.SO_SNDBUF):
            self._socket.setsockopt(socket.SOL_SOCKET, buffer, SOCKET_BUFFER_BYTES)
        self._socket.bind(address or ("", 0))
        self.is_interrupted = False
        self.input: Requests | None = None
        """Standard input of a client of the workload `requests`."""
        self._woken, waker = socket.socketpair()
        waker.setblocking(False)
        signal.set_wakeup_fd(waker.detach())
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda *_: self._interrupt())
        self.bytes_sent = self.bytes_received = 0

    def _interrupt(self) -> None:
        self.is_interrupted = True

    def receive(self) -> tuple[bytes, Any] | None:
        try:
            data, address = self._socket.recvfrom(65535)
        except BlockingIOError:
            return None
        self.bytes_received += len(data)
        return data, address

    def send(self, data: bytes, address: Any) -> None:
        while True:
            try:
                self._socket.sendto(data, address)
            except BlockingIOError:
                select.select([], [self._socket], [])
                continue
            self.bytes_sent += len(data)
            return

    def wait(self, until: float | None) -> None:
        """Wait for a datagram or a signal, at most until a time."""
        timeout = None if until is None else max(0.0, until - time.monotonic())
        if not self.is_interrupted:
            inputs = [self._socket, self._woken, *([self.input] if self.input is not None else [])]
            select.select(inputs, [], [], timeout)


class Side:
    """The common part of client and server."""

    def __init__(self, assignment: Assignment, address: tuple[str, int] | None) -> None:
        family = socket.AF_INET6 if ":" in assignment.address else socket.AF_INET
        self.assignment = assignment
        self.counts = counting.register(assignment.congestion_control, assignment.initial_window)
        self.wire = Wire(address, family)
        self.connections: list[QuicConnection] = []
        folder, secrets = os.environ.get("QLOGDIR"), os.environ.get("SSLKEYLOGFILE")
        self._qlog_folder = Path(folder) if folder else None
        self._qlog = QuicLogger() if folder else None
        self._secrets = _appended(secrets) if secrets else None

    def configuration(self) -> QuicConfiguration:
        request = self.assignment
        configuration = QuicConfiguration(
            is_client=request.role == "client",
            alpn_protocols=[ALPN],
            congestion_control_algorithm=counting.NAME,
            max_datagram_size=request.packet_size,
            max_data=WINDOW_BYTES,
            max_stream_data=WINDOW_BYTES,
            idle_timeout=2 * request.deadline_s,
            quic_logger=self._qlog,
            secrets_log_file=self._secrets,
            server_name=request.server_name,
        )
        if request.role == "client":
            configuration.verify_mode = ssl.CERT_REQUIRED
            configuration.load_verify_locations(cafile=request.authority)
        else:
            configuration.load_cert_chain(request.certificate, request.private_key)
        return configuration

    def handle_timers(self, now: float) -> None:
        for connection in self.connections:
            timer = connection.get_timer()
            if timer is not None and timer <= now:
                connection.handle_timer(now)

    def transmit(self) -> None:
        for connection in self.connections:
            for data, address in connection.datagrams_to_send(time.monotonic()):
                self.wire.send(data, address)

    def timer(self) -> float | None:
        timers = [connection.get_timer() for connection in self.connections]
        return min((timer for timer in timers if timer is not None), default=None)

    def leave_qlog(self) -> None:
        """Write the qlog of all connections, where it is asked for."""
        if self._qlog is not None and self._qlog_folder is not None:
            self._qlog_folder.mkdir(parents=True, exist_ok=True)
            path = self._qlog_folder / f"{self.assignment.role}.qlog"
            path.write_text(json.dumps(self._qlog.to_dict()), encoding="utf-8")

    def metrics(self) -> dict[str, float]:
        """Return the contract's metrics that both roles have."""
        last = self.connections[-1] if self.connections else None
        # Before it was measured, there is none.
        rtt = (
            {"smoothed_rtt_ms": 1e3 * last._loss._rtt_smoothed}
            if last and last._loss._rtt_initialized
            else {}
        )
        return {
            # Packets are numbered through all packet number spaces.
            "packets_sent": sum(connection._packet_number for connection in self.connections),
            "packets_lost": self.counts.packets_lost,
            "losses_declared": self.counts.packets_lost,
            "bytes_sent": self.wire.bytes_sent,
            "bytes_received": self.wire.bytes_received,
            **rtt,
        }


def _appended(path: str) -> TextIO:
    return os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), "w")


def drain(connection: QuicConnection, take: Callable[[events.QuicEvent], None]) -> None:
    """Pass on all events of a connection."""
    while (event := connection.next_event()) is not None:
        take(event)


def reason_of(event: events.ConnectionTerminated) -> str:
    return f"code {event.error_code:#x} {event.reason_phrase!r}"


def run_client(assignment: Assignment) -> None:
    """Transfer. Raises FailedError when that fails."""
    side = Side(assignment, None)
    asking = Requests(assignment, say) if assignment.workload == "requests" else None
    request = asking or Request(assignment)
    side.wire.input = asking
    connection = QuicConnection(configuration=side.configuration())
    side.connections.append(connection)
    peer = (assignment.address, assignment.port)
    start = time.monotonic()
    deadline = start + assignment.deadline_s
    connection.connect(peer, start)
    try:
        while request.ended is None:
            side.transmit()
            side.wire.wait(min(deadline, side.timer() or deadline))
            if asking is not None:
                asking.read(time.monotonic())
            _turn(side, connection, request, peer)
            if request.ended is not None:
                break
            if side.wire.is_interrupted:
                raise FailedError(f"{assignment.transfer}: ended by a signal")
            if time.monotonic() >= deadline:
                raise FailedError(
                    f"{assignment.transfer}: not done within the deadline of {assignment.deadline_s:g} s"
                )
    finally:
        connection.close()
        side.transmit()
        side.leave_qlog()
    assert request.connected is not None
    times = {"dct_s": request.ended - start, "handshake_s": request.connected - start}
    say({"event": "done", "metrics": {**side.metrics(), **times}})


def _turn(side: Side, connection: QuicConnection, request: Request | Requests, peer: tuple[str, int]) -> None:
    for _ in range(BATCH):
        received = side.wire.receive()
        if received is None:
            break
        now = time.monotonic()
        connection.receive_datagram(received[0], peer, now)
        _pass_on(connection, request, now)
    now = time.monotonic()
    side.handle_timers(now)
    _pass_on(connection, request, now)
    request.proceed(connection)


def _pass_on(connection: QuicConnection, request: Request | Requests, now: float) -> None:
    drain(connection, lambda event: request.on_event(connection, event, now))


def run_server(assignment: Assignment) -> None:
    """Answer until a signal comes."""
    side = Side(assignment, (assignment.address, assignment.port))
    configuration = side.configuration()
    answers: dict[Any, tuple[QuicConnection, Answers]] = {}
    say({"event": "ready"})
    while not side.wire.is_interrupted:
        side.wire.wait(side.timer())
        for _ in range(BATCH):
            received = side.wire.receive()
            if received is None:
                break
            data, address = received
            if address not in answers:
                connection = accepted(configuration, data)
                if connection is None:
                    continue
                side.connections.append(connection)
                answers[address] = (connection, Answers(assignment.content_seed))
            connection, answering = answers[address]
            connection.receive_datagram(data, address, time.monotonic())
        side.handle_timers(time.monotonic())
        for connection, answering in answers.values():
            _answer(connection, answering)
        side.transmit()
    for connection in side.connections:
        connection.close()
    side.transmit()
    side.leave_qlog()
    say({"event": "done", "metrics": side.metrics()})


def _answer(connection: QuicConnection, answering: Answers) -> None:
    drain(connection, lambda event: answering.on_event(connection, event))
    answering.proceed(connection)


def accepted(configuration: QuicConfiguration, data: bytes) -> QuicConnection | None:
    """The connection that a datagram begins, if it begins one."""
    try:
        header = pull_quic_header(Buffer(data=data), host_cid_length=configuration.connection_id_length)
    except ValueError:
        return None
    if header.packet_type != QuicPacketType.INITIAL or header.version not in configuration.supported_versions:
        return None
    return QuicConnection(
        configuration=configuration, original_destination_connection_id=header.destination_cid
    )


def say(event: dict[str, Any]) -> None:
    print(json.dumps(event), flush=True)


def complain(line: str) -> None:
    print(f"aioquic: {line}", file=sys.stderr, flush=True)


def end(code: int, line: str) -> NoReturn:
    complain(" ".join(line.split()))
    sys.exit(code)


def main() -> None:
    if len(sys.argv) != 2:
        end(EXIT_WRONG, "usage: endpoint.py ASSIGNMENT.json")
    try:
        assignment = read(Path(sys.argv[1]))
    except WrongError as error:
        end(EXIT_WRONG, str(error))
    except UnsupportedError as error:
        end(EXIT_UNSUPPORTED, str(error))
    logging.disable()  # a failure is one line of ours
    try:
        (run_client if assignment.role == "client" else run_server)(assignment)
    except (FailedError, AskingError, OSError, ValueError) as error:
        end(EXIT_FAILURE, f"{assignment.role}: {error}")


if __name__ == "__main__":
    main()
