"""Packets of TCP and UDP in a capture: behind IPv4 with options or IPv6 with extension headers.

Fragments are put together again: a datagram is there when all of its fragments are. Frames without such a
packet are passed over, and so are those with a header that is cut off.
"""

import struct
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from ipaddress import ip_address
from pathlib import Path

from fecbench.dropper.recordings.capture_file import Frame, frames
from fecbench.dropper.recordings.link_header import NotIp, ip_of, is_known
from fecbench.errors import BadInput

_TCP, _UDP = 6, 17
_EXTENSIONS = {0, 43, 60, 135, 139, 140}
"""Headers of IPv6 with lengths in units of 8 bytes: options, routing, mobility and identity."""
_AUTHENTICATION, _FRAGMENT = 51, 44
_MOST_EXTENSIONS = 16
_MOST_INCOMPLETE = 4096
"""Datagrams of which fragments are awaited; the oldest are given up."""


@dataclass(frozen=True)
class Packet:
    """A packet of TCP or UDP of a capture."""

    at_s: float
    """Seconds since 1970; NaN where the capture does not say."""
    source: str
    """Address and port, as are those of `destination`: of IPv4, `0a000102:443`."""
    destination: str
    header: bytes
    """Header of UDP or TCP without the checksum, which many hosts leave to their network card."""
    payload: bytes
    length: int = 0
    """Bytes of the payload by the headers: more than `payload` has if the frame was cut."""
    is_udp: bool = True
    fragments: int = 1
    point: tuple[int, ...] = ()
    """The place where it was captured, in a capture of several interfaces."""

    @property
    def content(self) -> bytes:
        """The header and all behind it."""
        return self.header + self.payload

    @property
    def is_cut(self) -> bool:
        return len(self.payload) < self.length

    @property
    def flow(self) -> tuple[str, str]:
        return self.source, self.destination


@dataclass
class Seen:
    """Remarks on a capture while it is read."""

    notes: list[str] = field(default_factory=list)
    unread: Counter[int] = field(default_factory=Counter)
    """Frames by link types that are not read."""


def packets(path: Path, remarks: Seen | None = None) -> Iterator[Packet]:
    """Yield the packets of TCP and UDP of a capture, in its order. Raises BadInput, which names the file."""
    remarks, count = remarks or Seen(), 0
    fragments = _Fragments()
    for frame in frames(path, remarks.notes.append):
        count += 1
        if not is_known(frame.link_type):
            remarks.unread[frame.link_type] += 1
            continue
        try:
            packet = _packet_of(frame, fragments)
        except (NotIp, IndexError, struct.error):
            continue
        if packet is not None:
            yield packet
    if count and sum(remarks.unread.values()) == count:
        kinds = ", ".join(map(str, sorted(remarks.unread)))
        raise BadInput(f"{path}: its packets have link headers of type {kinds}, which are not read")


def place_of(end: str) -> str:
    """Return an address and port as people write them, such as 192.0.2.1:443."""
    address, _, port = end.rpartition(":")
    written = ip_address(bytes.fromhex(address))
    return f"[{written}]:{port}" if written.version == 6 else f"{written}:{port}"


@dataclass(frozen=True)
class _Ip:
    """An IP packet, or a fragment of one."""

    source: bytes
    destination: bytes
    protocol: int
    payload: bytes
    length: int
    """Bytes of the payload by the header."""
    offset: int = 0
    """Place of a fragment in the whole, in bytes."""
    more: bool = False
    """Whether fragments follow."""
    identity: int = 0


class _Fragments:
    """The fragments of datagrams that are not complete yet."""

    def __init__(self) -> None:
        self._parts: dict[tuple[bytes, bytes, int, int], dict[int, _Ip]] = {}

    def whole(self, part: _Ip) -> tuple[_Ip, int] | None:
        """Return the packet that this fragment completes, and of how many it was made."""
        key = (part.source, part.destination, part.protocol, part.identity)
        parts = self._parts.setdefault(key, {})
        parts[part.offset] = part
        if len(self._parts) > _MOST_INCOMPLETE:
            del self._parts[next(iter(self._parts))]
        payload, at = [], 0
        while (following := parts.get(at)) is not None:
            payload.append(following.payload)
            at += following.length
            if not following.more:
                del self._parts[key]
                joined = b"".join(payload)
                return _Ip(part.source, part.destination, part.protocol, joined, at), len(payload)
            if following.length == 0:
                return None
        return None


def _packet_of(frame: Frame, fragments: _Fragments) -> Packet | None:
    inside = ip_of(frame.link_type, frame.content)
    missing = max(0, frame.length - len(frame.content))
    ip = (_version_6 if inside.packet[0] >> 4 == 6 else _version_4)(inside.packet, missing)
    count = 1
    if ip.more or ip.offset:
        whole = fragments.whole(ip)
        if whole is None:
            return None
        ip, count = whole
    header = ip.payload
    source_port, destination_port = struct.unpack_from(">HH", header)
    source = f"{ip.source.hex()}:{source_port}"
    destination = f"{ip.destination.hex()}:{destination_port}"
    if ip.protocol == _UDP:
        start, checksum = 8, 6
    elif ip.protocol == _TCP:
        start, checksum = (header[12] >> 4) * 4, 16
    else:
        return None
    if len(header) < start or ip.length < start:
        return None
    unchecked = header[:checksum] + header[checksum + 2 : start]
    payload, length = header[start:], ip.length - start
    if ip.protocol == _UDP and start <= (own := int.from_bytes(header[4:6], "big")) < ip.length:
        payload, length = payload[: own - start], own - start
    point = (frame.interface, *inside.point)
    return Packet(
        frame.at_s, source, destination, unchecked, payload, length, ip.protocol == _UDP, count, point
    )


def _version_4(packet: bytes, missing: int) -> _Ip:
    """`missing`: bytes of the frame that the capture cut."""
    header = (packet[0] & 0x0F) * 4
    total, identity, flags = struct.unpack_from(">HHH", packet, 2)
    if total == 0:  # for a packet that the card is to segment, and that is too long for the field
        total = len(packet) + missing
    if header < 20 or total < header or len(packet) < header:
        raise NotIp
    return _Ip(
        packet[12:16],
        packet[16:20],
        packet[9],
        packet[header:total],
        total - header,
        (flags & 0x1FFF) * 8,
        bool(flags & 0x2000),
        identity,
    )


def _version_6(packet: bytes, missing: int) -> _Ip:
    length, protocol, at = struct.unpack_from(">H", packet, 4)[0], packet[6], 40
    end = 40 + length if length else len(packet) + missing  # 0: a jumbogram, or one to be segmented
    offset, more, identity = 0, False, 0
    for _ in range(_MOST_EXTENSIONS):
        if protocol in _EXTENSIONS:
            protocol, at = packet[at], at + 8 + packet[at + 1] * 8
        elif protocol == _AUTHENTICATION:
            protocol, at = packet[at], at + 8 + packet[at + 1] * 4
        elif protocol == _FRAGMENT:
            place, identity = struct.unpack_from(">HI", packet, at + 2)
            protocol, at, offset, more = packet[at], at + 8, place & 0xFFF8, bool(place & 1)
            if offset:
                break
        else:
            break
    if at > min(end, len(packet)):
        raise NotIp
    return _Ip(packet[8:24], packet[24:40], protocol, packet[at:end], end - at, offset, more, identity)
