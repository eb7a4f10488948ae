"""Probes of the path: datagrams that the server answers, each with the token of its train and a number.

A train's token comes over the control connection. A datagram without it is not answered, and an answer is
never longer than what it answers, so nobody can have the server send to others.
"""

import contextlib
import secrets
import select
import socket
import statistics
import struct
import time
from collections import deque
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field

from fecbench.runners.tasks.outcome import Probe

TOKEN_BYTES = 16
PROBE_BYTES = 64
INTERVAL_S = 0.02
TRAIN_S = 2.0
LINGER_S = 1.0
"""Longest wait for an answer after the last probe."""
REST_S = 10.0
_NEAR, _NEAR_MS, _OF = 1.1, 0.5, 5
"""The queue has drained when the median of so many round-trip times is within 10 % of the least, or within
what processors add on a short path."""
_NUMBER = struct.Struct("!I")
_INT = struct.Struct("i")
_IP_RECVTTL, _IP_MTU, _IPV6_MTU = 12, 14, 24  # linux/in.h, linux/in6.h
_TTL = ((socket.IPPROTO_IP, socket.IP_TTL), (socket.IPPROTO_IPV6, socket.IPV6_HOPLIMIT))
_SPACE = socket.CMSG_SPACE(_INT.size)


def token() -> str:
    """Return a new token, as text."""
    return secrets.token_hex(TOKEN_BYTES)


class Responder:
    """The server's end of a train."""

    def __init__(self, address: str, port: int, train: bytes) -> None:
        self.socket = bound(address, port)
        self._train = train
        self.arrived: dict[int, float] = {}
        """Time at which each probe came, by the monotonic clock of the server."""
        self.sources: set[str] = set()
        """The addresses that they came from."""
        self.ttl = 0
        """TTL of the last one when it came; 0: not known."""

    def answer(self) -> None:
        """Answer what has come."""
        while True:
            try:
                datagram, more, _, source = self.socket.recvmsg(2048, _SPACE)
            except BlockingIOError:
                return
            except OSError:  # an ICMP message about an answer
                continue
            if len(datagram) == PROBE_BYTES and datagram[:TOKEN_BYTES] == self._train:
                number = _NUMBER.unpack_from(datagram, TOKEN_BYTES)[0]
                self.arrived.setdefault(number, time.monotonic())
                self.sources.add(source[0])
                self.ttl = ttl_of(more)
                try:
                    self.socket.sendto(datagram, source)
                except OSError:  # its answer is lost
                    continue

    def close(self) -> None:
        self.socket.close()


def bound(address: str, port: int) -> socket.socket:
    """Return a socket for UDP that is bound there, and never waits. Raises OSError."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    opened = socket.socket(family, socket.SOCK_DGRAM)
    try:
        opened.bind((address, port))
    except OSError:
        opened.close()
        raise
    opened.setblocking(False)
    tell_ttl(opened)
    return opened


def tell_ttl(opened: socket.socket) -> None:
    """Have the kernel tell the TTL of each datagram that comes."""
    if opened.family == socket.AF_INET6:
        opened.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_RECVHOPLIMIT, 1)
    else:
        opened.setsockopt(socket.IPPROTO_IP, _IP_RECVTTL, 1)


def ttl_of(more: list[tuple[int, int, bytes]]) -> int:
    """Return the TTL or the hop limit that the kernel told; 0: it told none."""
    for level, kind, content in more:
        if (level, kind) in _TTL and len(content) >= _INT.size:
            return int(_INT.unpack_from(content)[0])
    return 0


@dataclass
class Sent:
    """A train as the client sees it."""

    times: list[float] = field(default_factory=list)
    """Time at which each probe was sent."""
    round_trips_ms: dict[int, float] = field(default_factory=dict)
    address: str = ""
    mtu: int = 0
    ttl: int = 0
    """TTL of the last answer when it came; 0: not known."""

    def server_ahead(self, arrived: Mapping[int, float]) -> tuple[float, float] | None:
        """Return the least round-trip time in ms, and by it how far the server's clock is ahead, in s."""
        both = [(rtt_ms, number) for number, rtt_ms in self.round_trips_ms.items() if number in arrived]
        if not both:
            return None
        rtt_ms, number = min(both)
        return rtt_ms, arrived[number] - self.times[number] - rtt_ms / 2e3

    def probes(self, arrived: Collection[int], since: float) -> list[Probe]:
        """Return the probes, with those that arrived at the server; times count from `since`."""
        return [
            Probe(
                sent_s=sent - since,
                rtt_ms=self.round_trips_ms.get(number),
                lost_up=number not in arrived and number not in self.round_trips_ms,
            )
            for number, sent in enumerate(self.times)
        ]


def send(
    host: str, port: int, train: bytes, until: Callable[[Sent, "deque[float]"], bool], limit_s: float
) -> Sent:
    """Send probes until `until` says so, by those sent and the last round-trip times, or until the limit."""
    family, _, _, _, place = socket.getaddrinfo(host, port, type=socket.SOCK_DGRAM)[0]
    sent, last = Sent(), deque[float](maxlen=_OF)
    with socket.socket(family, socket.SOCK_DGRAM) as opened:
        opened.connect(place)
        opened.setblocking(False)
        tell_ttl(opened)
        sent.address = opened.getsockname()[0]
        start_s = next_s = time.monotonic()
        while not until(sent, last) and time.monotonic() - start_s < limit_s:
            content = train + _NUMBER.pack(len(sent.times))
            sent.times.append(time.monotonic())
            with contextlib.suppress(OSError):  # it is lost
                opened.send(content.ljust(PROBE_BYTES, b"\0"))
            next_s += INTERVAL_S
            _receive(opened, sent, last, next_s)
        # The last answers may be on their way.
        end = time.monotonic() + min(LINGER_S, 4 * max(sent.round_trips_ms.values(), default=1e9) / 1e3)
        while len(sent.round_trips_ms) < len(sent.times) and time.monotonic() < end:
            _receive(opened, sent, last, min(end, time.monotonic() + INTERVAL_S))
        level, option = (
            (socket.IPPROTO_IP, _IP_MTU) if family == socket.AF_INET else (socket.IPPROTO_IPV6, _IPV6_MTU)
        )
        with contextlib.suppress(OSError):  # there is no way to the server any more
            sent.mtu = opened.getsockopt(level, option)
    return sent


def _receive(opened: socket.socket, sent: Sent, last: "deque[float]", until_s: float) -> None:
    while (left_s := until_s - time.monotonic()) > 0:
        if not select.select([opened], [], [], left_s)[0]:
            return
        try:
            datagram, more, _, _ = opened.recvmsg(2048, _SPACE)
        except OSError:  # an ICMP message: nobody listens
            time.sleep(min(0.001, max(0.0, left_s)))
            continue
        now = time.monotonic()
        if len(datagram) != PROBE_BYTES:
            continue
        (number,) = _NUMBER.unpack_from(datagram, TOKEN_BYTES)
        if number < len(sent.times) and number not in sent.round_trips_ms:
            sent.round_trips_ms[number] = 1e3 * (now - sent.times[number])
            sent.ttl = ttl_of(more)
            last.append(sent.round_trips_ms[number])


def has_drained(last: "deque[float]", least_ms: float) -> bool:
    """Whether the round-trip time is near the least again."""
    return len(last) == _OF and statistics.median(last) <= max(_NEAR * least_ms, least_ms + _NEAR_MS)
