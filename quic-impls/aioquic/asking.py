"""The workload `requests`: a client reads what to ask for on its standard input, and says what arrived."""

import json
import os
import sys
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from aioquic.quic import events
from aioquic.quic.connection import QuicConnection
from assignment import LARGEST, Assignment, UnsupportedError
from content import content


class AskingError(Exception):
    """The reason for which requests cannot succeed any more, in one line."""


@dataclass
class Pending:
    """An object that has not arrived."""

    size_bytes: int
    requested_at: float
    received: int = 0
    first_byte_at: float | None = None


class Requests:
    """Requests to a client, until its input ends."""

    def __init__(self, assignment: Assignment, say: Callable[[dict[str, object]], None]) -> None:
        self._seed, self._say = assignment.content_seed, say
        self._input = sys.stdin.fileno()
        os.set_blocking(self._input, False)
        self._unread = b""
        self._waiting: deque[Pending] = deque()
        self._open: dict[int, Pending] = {}
        self.connected: float | None = None
        self.ended: float | None = None

    def fileno(self) -> int:
        """Return the descriptor of the input, to wait for it."""
        return self._input

    def read(self, now: float) -> None:
        """Read what there is of the input. Raises AskingError and UnsupportedError."""
        try:
            data = os.read(self._input, 65536)
        except BlockingIOError:
            return
        *lines, self._unread = (self._unread + data).split(b"\n")
        self._waiting.extend(Pending(_size_of(line), now) for line in lines)
        if not data and self.ended is None:
            if self.connected is None:
                raise AskingError("the input ended before the handshake")
            self.ended = now

    def on_event(self, connection: QuicConnection, event: events.QuicEvent, now: float) -> None:
        """Raises AskingError when it cannot be a success any more."""
        del connection
        if isinstance(event, events.HandshakeCompleted):
            self.connected = now
        elif isinstance(event, events.StreamDataReceived):
            self._take(event, now)
        elif isinstance(event, events.StreamReset | events.StopSendingReceived):
            raise AskingError(f"the server refused a request with code {event.error_code}")
        elif isinstance(event, events.ConnectionTerminated) and self.ended is None:
            where = "handshake" if self.connected is None else "connection lost"
            raise AskingError(f"{where}: code {event.error_code:#x} {event.reason_phrase!r}")

    def proceed(self, connection: QuicConnection) -> None:
        """Ask for what waits."""
        while self.connected is not None and self._waiting:
            pending = self._waiting.popleft()
            stream_id = connection.get_next_available_stream_id()
            self._open[stream_id] = pending
            line = f"GET /{pending.size_bytes}\r\n".encode()
            connection.send_stream_data(stream_id, line, end_stream=True)

    def _take(self, event: events.StreamDataReceived, now: float) -> None:
        pending = self._open.get(event.stream_id)
        if pending is None:
            return
        if event.data:
            pending.first_byte_at = now if pending.first_byte_at is None else pending.first_byte_at
            if content(self._seed, pending.received, len(event.data)) != event.data:
                raise AskingError(f"the content from byte {pending.received} on is wrong")
            pending.received += len(event.data)
        if pending.received > pending.size_bytes or (
            event.end_stream and pending.received < pending.size_bytes
        ):
            raise AskingError(f"the server sent {pending.received} of {pending.size_bytes} bytes")
        if event.end_stream:
            del self._open[event.stream_id]
            self._say(
                {
                    "event": "object",
                    "bytes": pending.size_bytes,
                    "requested_at": pending.requested_at,
                    "first_byte_at": now if pending.first_byte_at is None else pending.first_byte_at,
                    "done_at": now,
                }
            )


def _size_of(line: bytes) -> int:
    try:
        request = json.loads(line)
    except ValueError:
        request = None
    if isinstance(request, dict) and request.keys() & {"tell_every_s", "stop"}:
        raise UnsupportedError("standard input: watching a download and giving it up are not supported")
    size = request.get("get") if isinstance(request, dict) and request.keys() == {"get"} else None
    if isinstance(size, bool) or not isinstance(size, int) or not 0 <= size <= LARGEST:
        raise AskingError(f'standard input: {line[:80]!r} is not {{"get": BYTES}} of at most {LARGEST} bytes')
    return size
