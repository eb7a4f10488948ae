"""A volley: full packets, back to back, first up and then down. It shows the rates of a path, and its queues.

The server keeps the packets that came. The client sends the others again, slowly, since a volley down has
to have as many. Then it sends them back as they are, at once: no more than it got, and only to where it
came from. Times of arrival are those of the kernel.
"""

import contextlib
import operator
import select
import socket
import statistics
import struct
import time
from dataclasses import dataclass, field

from fecbench.runners.field.probe_trains import TOKEN_BYTES, bound
from fecbench.runners.tasks.outcome import FullPacket

PACKETS = 100
PACKET_BYTES = 1200
"""Payload of UDP. QUIC needs a path that carries as much (RFC 9000, §14)."""
QUIET_S = 0.5
"""A volley has ended when nothing has come for so long."""
LIMIT_S = 10.0
_SLOWER = 1.2
"""Packets are sent again so much farther apart than the others came."""
_USUAL_GAP_S = 0.002
_BUFFER_BYTES = 1 << 20
_NUMBER = struct.Struct("!I")
_SO_TIMESTAMPNS = 35  # asm-generic/socket.h
_TIMESPEC = struct.Struct("ll")
_SPACE = socket.CMSG_SPACE(_TIMESPEC.size)

Times = dict[int, float]
"""The time of each packet by its number, in s, by the clock of the day."""


@dataclass
class Arrivals:
    """Packets of a volley that came."""

    times: Times = field(default_factory=dict)
    datagrams: dict[int, tuple[bytes, tuple[object, ...]]] = field(default_factory=dict)
    """Each packet, and where it came from."""

    def take(self, opened: socket.socket, token: bytes) -> None:
        """Take what has come to a socket that never waits."""
        while True:
            try:
                datagram, more, _, source = opened.recvmsg(PACKET_BYTES + 1, _SPACE)
            except BlockingIOError:
                return
            except OSError:  # an ICMP message
                continue
            if len(datagram) != PACKET_BYTES or datagram[:TOKEN_BYTES] != token:
                continue
            number = _NUMBER.unpack_from(datagram, TOKEN_BYTES)[0]
            if number < PACKETS and number not in self.times:
                self.times[number] = _arrived(more)
                self.datagrams[number] = datagram, source

    @property
    def are_all(self) -> bool:
        return len(self.times) == PACKETS


def _arrived(more: list[tuple[int, int, bytes]]) -> float:
    """Return the kernel's time of a datagram."""
    for level, kind, content in more:
        if level == socket.SOL_SOCKET and kind == _SO_TIMESTAMPNS and len(content) >= _TIMESPEC.size:
            seconds, nanoseconds = _TIMESPEC.unpack_from(content)
            return float(seconds) + 1e-9 * float(nanoseconds)
    return time.time()


class Returner:
    """The server's end of a volley."""

    def __init__(self, address: str, port: int, token: bytes) -> None:
        self.socket = _prepared(bound(address, port))
        self._token = token
        self.arrivals = Arrivals()
        self.answered: Times = {}

    def take(self) -> None:
        self.arrivals.take(self.socket, self._token)

    def take_the_rest(self) -> None:
        """Take packets until all have come, or none comes any more."""
        end = time.monotonic() + LIMIT_S
        while not self.arrivals.are_all and time.monotonic() < end:
            if not select.select([self.socket], [], [], QUIET_S)[0]:
                break
            self.take()

    def answer(self) -> None:
        """Send back what came."""
        self.socket.setblocking(True)
        self.socket.settimeout(LIMIT_S)
        for number, (datagram, source) in self.arrivals.datagrams.items():
            self.answered[number] = time.time()
            with contextlib.suppress(OSError):  # it is lost
                self.socket.sendto(datagram, source)

    def close(self) -> None:
        self.socket.close()


class Volley:
    """The client's end of a volley."""

    def __init__(self, host: str, port: int, token: bytes) -> None:
        family, _, _, _, place = socket.getaddrinfo(host, port, type=socket.SOCK_DGRAM)[0]
        self._token = token
        self.socket = _prepared(socket.socket(family, socket.SOCK_DGRAM))
        self.socket.connect(place)
        self.sent: Times = {}
        self._answers = Arrivals()

    def send(self) -> None:
        """Send all packets, back to back."""
        self.socket.settimeout(LIMIT_S)
        for number in range(PACKETS):
            content = self._packet(number)
            self.sent[number] = time.time()
            with contextlib.suppress(OSError):  # it is lost
                self.socket.send(content)

    def _packet(self, number: int) -> bytes:
        return (self._token + _NUMBER.pack(number)).ljust(PACKET_BYTES, b"\0")

    def send_again(self, arrivals: Times) -> None:
        """Send what did not come, more slowly than the others came."""
        self.socket.settimeout(LIMIT_S)
        times = sorted(arrivals.values())
        gap_s = statistics.median(map(operator.sub, times[1:], times)) if len(times) > 2 else _USUAL_GAP_S
        for number in (number for number in self.sent if number not in arrivals):
            time.sleep(min(LIMIT_S / PACKETS, _SLOWER * gap_s))
            with contextlib.suppress(OSError):  # it is lost
                self.socket.send(self._packet(number))
        self.socket.setblocking(False)

    def receive(self, connection: int) -> None:
        """Take answers until all have come, or until the server has told on the connection that it has sent
        them, and none comes any more."""
        is_sent, end = False, time.monotonic() + 3 * LIMIT_S
        while not self._answers.are_all and time.monotonic() < end:
            waited = [self.socket.fileno()] if is_sent else [self.socket.fileno(), connection]
            readable = select.select(waited, [], [], QUIET_S if is_sent else LIMIT_S)[0]
            if not readable:
                return
            is_sent = is_sent or connection in readable
            self._answers.take(self.socket, self._token)

    def packets(self, arrivals: Times, answered: Times) -> list[FullPacket]:
        """Return what became of each packet, by what the server says. Times of each clock count from its
        first one."""
        at_server = min(arrivals.values(), default=0.0)
        begin = min(self.sent.values(), default=0.0)

        def since(times: Times, number: int, start: float) -> float | None:
            return times[number] - start if number in times else None

        return [
            FullPacket(
                sent_s=self.sent[number] - begin,
                came_s=since(arrivals, number, at_server),
                answered_s=since(answered, number, at_server),
                answer_s=since(self._answers.times, number, begin),
            )
            for number in self.sent
        ]

    def close(self) -> None:
        self.socket.close()


def _prepared(opened: socket.socket) -> socket.socket:
    """Return a socket that has room for a volley, and tells when each datagram came."""
    opened.setblocking(False)
    opened.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _BUFFER_BYTES)
    opened.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _BUFFER_BYTES)
    opened.setsockopt(socket.SOL_SOCKET, _SO_TIMESTAMPNS, 1)
    return opened
