"""Frames of packet captures, pcap and pcapng, of all interfaces and in either byte order.

The forms are those of draft-ietf-opsawg-pcap and draft-ietf-opsawg-pcapng. Blocks that hold no packet are
passed over. A last packet that is cut off, as a killed tcpdump leaves it, is left out.
"""

import math
import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, NamedTuple

from fecbench.errors import BadInput
from fecbench.unpacking import opened

LARGEST_BYTES = 4 << 30
_LARGEST_FRAME_BYTES = 1 << 20
_LARGEST_BLOCK_BYTES = 1 << 24
_SECTION = b"\x0a\x0d\x0d\x0a"
_PCAP = {  # the first bytes: byte order, units of a second, bytes of a record's heading
    b"\xa1\xb2\xc3\xd4": (">", 1e6, 16),
    b"\xd4\xc3\xb2\xa1": ("<", 1e6, 16),
    b"\xa1\xb2\x3c\x4d": (">", 1e9, 16),
    b"\x4d\x3c\xb2\xa1": ("<", 1e9, 16),
    b"\xa1\xb2\xcd\x34": (">", 1e6, 24),  # of a libpcap that was patched for its interfaces
    b"\x34\xcd\xb2\xa1": ("<", 1e6, 24),
}
_INTERFACE, _OLD_PACKET, _SIMPLE_PACKET, _ENHANCED_PACKET = 1, 2, 3, 6
_RESOLUTION, _OFFSET = 9, 14
"""Options of an interface: units of its times, and what to add to them."""


class Frame(NamedTuple):
    """A frame as a capture has it."""

    at_s: float
    """Seconds since 1970; NaN where the file has no time."""
    link_type: int
    content: bytes
    length: int
    """Bytes on the wire: more than the content has if it was cut."""
    interface: int
    """The number of the interface in the file."""


@dataclass(frozen=True)
class _Interface:
    link_type: int
    snap_bytes: int
    units: float
    offset_s: int
    number: int


class _CutOff(Exception):
    """The file ends within something."""


def is_capture(start: bytes) -> bool:
    """Whether a file that begins with these bytes is a packet capture."""
    return start[:4] == _SECTION or start[:4] in _PCAP


def frames(path: Path, warn: Callable[[str], None] = lambda _: None) -> Iterator[Frame]:
    """Yield the frames of a capture, in its order. Raises BadInput, which names the file.

    `warn` gets a sentence if the last packet was cut off.
    """
    with opened(path, LARGEST_BYTES) as file:
        magic, has_frame = file.read(4), False
        if not is_capture(magic):
            raise BadInput(f"{path}: is no packet capture (pcap or pcapng)")
        read = _sections(file, path) if magic == _SECTION else _records(file, path, *_PCAP[magic])
        try:
            for frame in read:
                has_frame = True
                yield frame
        except _CutOff:
            if not has_frame:
                raise BadInput(
                    f"{path}: is no whole packet capture: it ends before its first packet"
                ) from None
            warn(f"{path.name} is cut off within its last packet, which is left out.")


def _read_exactly(file: BinaryIO, size: int) -> bytes:
    content = file.read(size)
    if len(content) < size:
        raise _CutOff
    return content


def _records(file: BinaryIO, path: Path, order: str, units: float, heading_bytes: int) -> Iterator[Frame]:
    """The frames of a pcap, behind its magic number."""
    _, _, _, _, _, link = struct.unpack(f"{order}HHiIII", _read_exactly(file, 20))
    link_type = link & 0xFFFF  # above are bits of a frame check sequence
    heading = struct.Struct(f"{order}IIII{heading_bytes - 16}x")
    while start := file.read(heading_bytes):
        if len(start) < heading_bytes:
            raise _CutOff
        seconds, fraction, captured, length = heading.unpack(start)
        if captured > _LARGEST_FRAME_BYTES:
            raise BadInput(f"{path}: is no whole packet capture: a packet of {captured} bytes")
        yield Frame(seconds + fraction / units, link_type, _read_exactly(file, captured), length, 0)


def _sections(file: BinaryIO, path: Path) -> Iterator[Frame]:
    """The frames of a pcapng, behind the first four bytes."""
    order, interfaces, started, kind_bytes = "<", list[_Interface](), 0, _SECTION
    while kind_bytes:
        if len(kind_bytes) < 4:
            raise _CutOff
        size_bytes = _read_exactly(file, 4)
        if kind_bytes == _SECTION:
            mark = _read_exactly(file, 4)
            orders = {b"\x1a\x2b\x3c\x4d": ">", b"\x4d\x3c\x2b\x1a": "<"}
            if mark not in orders:
                raise BadInput(f"{path}: is no whole packet capture: a section without a byte order")
            order, interfaces = orders[mark], []
            _body(file, path, _size_of(size_bytes, order, path) - 4)
        else:
            (kind,) = struct.unpack(f"{order}I", kind_bytes)
            body = _body(file, path, _size_of(size_bytes, order, path))
            if kind == _INTERFACE:
                interfaces.append(_interface(body, order, path, started))
                started += 1
            elif kind in _PACKETS:
                yield _PACKETS[kind](body, order, interfaces, path)
        kind_bytes = file.read(4)


def _size_of(size_bytes: bytes, order: str, path: Path) -> int:
    """The bytes of a block's body: all but its type and its two lengths."""
    (size,) = struct.unpack(f"{order}I", size_bytes)
    if size < 12 or size % 4 or size > _LARGEST_BLOCK_BYTES:
        raise BadInput(f"{path}: is no whole packet capture: a block of {size} bytes")
    return int(size) - 12


def _body(file: BinaryIO, path: Path, size: int) -> bytes:
    if size < 0:
        raise BadInput(f"{path}: is no whole packet capture: a section heading that is too short")
    body = _read_exactly(file, size)
    _read_exactly(file, 4)  # its length again
    return body


def _interface(body: bytes, order: str, path: Path, number: int) -> _Interface:
    if len(body) < 8:
        raise BadInput(f"{path}: is no whole packet capture: an interface of {len(body)} bytes")
    link_type, _, snap_bytes = struct.unpack_from(f"{order}HHI", body)
    units, offset_s = 1e6, 0
    for code, value in _options(body[8:], order):
        if code == _RESOLUTION and len(value) == 1:
            units = 2.0 ** (value[0] & 0x7F) if value[0] & 0x80 else 10.0 ** value[0]
        elif code == _OFFSET and len(value) == 8:
            (offset_s,) = struct.unpack(f"{order}q", value)
    return _Interface(link_type, snap_bytes or _LARGEST_FRAME_BYTES, units, offset_s, number)


def _options(body: bytes, order: str) -> Iterator[tuple[int, bytes]]:
    at = 0
    while at + 4 <= len(body):
        code, size = struct.unpack_from(f"{order}HH", body, at)
        if code == 0:
            return
        yield code, body[at + 4 : at + 4 + size]
        at += 4 + (size + 3) // 4 * 4


def _enhanced(body: bytes, order: str, interfaces: list[_Interface], path: Path) -> Frame:
    return _timed(body, f"{order}IIIII", interfaces, path)


def _old(body: bytes, order: str, interfaces: list[_Interface], path: Path) -> Frame:
    return _timed(body, f"{order}HxxIIII", interfaces, path)


def _timed(body: bytes, form: str, interfaces: list[_Interface], path: Path) -> Frame:
    if len(body) < 20:
        raise BadInput(f"{path}: is no whole packet capture: a packet block of {len(body)} bytes")
    number, high, low, captured, length = struct.unpack_from(form, body)
    interface = _interface_of(number, interfaces, path)
    if captured > len(body) - 20:
        raise BadInput(f"{path}: is no whole packet capture: {captured} bytes in a block of {len(body)}")
    at_s = (high << 32 | low) / interface.units + interface.offset_s
    return Frame(at_s, interface.link_type, body[20 : 20 + captured], length, interface.number)


def _simple(body: bytes, order: str, interfaces: list[_Interface], path: Path) -> Frame:
    """A frame without a time, of the section's first interface."""
    if len(body) < 4:
        raise BadInput(f"{path}: is no whole packet capture: a packet block of {len(body)} bytes")
    (length,) = struct.unpack_from(f"{order}I", body)
    interface = _interface_of(0, interfaces, path)
    captured = min(length, interface.snap_bytes, len(body) - 4)
    return Frame(math.nan, interface.link_type, body[4 : 4 + captured], length, interface.number)


_PACKETS = {_OLD_PACKET: _old, _SIMPLE_PACKET: _simple, _ENHANCED_PACKET: _enhanced}


def _interface_of(number: int, interfaces: list[_Interface], path: Path) -> _Interface:
    if number >= len(interfaces):
        raise BadInput(f"{path}: is no whole packet capture: a packet of interface {number}, which it lacks")
    return interfaces[number]
