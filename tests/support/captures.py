"""Packet captures that tests write: frames of every link type, in every form of file.

Written from the drafts of pcap and pcapng, and from libpcap's list of link-layer header types; the readers
share nothing with it.
"""

import gzip
import struct
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from ipaddress import ip_address

SERVER, CLIENT = ("192.0.2.1", 4433), ("198.51.100.2", 50000)
SERVER_6, CLIENT_6 = ("2001:db8::1", 4433), ("2001:db8:1::2", 50000)
End = tuple[str, int]
BEGIN_S = 1_700_000_000.0
EVERY_S = 0.01


def udp(payload: bytes, source: End = SERVER, destination: End = CLIENT) -> bytes:
    """A packet of IP with one of UDP in it; of IPv6 by its addresses."""
    datagram = struct.pack(">HHHH", source[1], destination[1], 8 + len(payload), 0x1234) + payload
    return ip(datagram, 17, source[0], destination[0])


def tcp(payload: bytes, number: int, source: End = SERVER, destination: End = CLIENT) -> bytes:
    header = struct.pack(">HHIIBBHHH", source[1], destination[1], number, 1, 0x50, 0x10, 512, 0, 0)
    return ip(header + payload, 6, source[0], destination[0])


def ip(inside: bytes, protocol: int, source: str = SERVER[0], destination: str = CLIENT[0]) -> bytes:
    ends = ip_address(source).packed + ip_address(destination).packed
    if len(ends) == 32:
        return struct.pack(">IHBB", 6 << 28, len(inside), protocol, 64) + ends + inside
    return struct.pack(">BBHHHBBH", 0x45, 0, 20 + len(inside), 0, 0x4000, 64, protocol, 0) + ends + inside


def fragments(packet: bytes, identity: int, size: int = 600) -> list[bytes]:
    """A packet of IPv4 without options, in pieces of so many bytes, a multiple of 8."""
    inside = packet[20:]
    pieces = []
    for at in range(0, len(inside), size):
        piece = inside[at : at + size]
        flags = (0x2000 if at + size < len(inside) else 0) | at // 8
        pieces.append(
            packet[:2] + struct.pack(">HHH", 20 + len(piece), identity, flags) + packet[8:20] + piece
        )
    return pieces


def extended(packet: bytes, *headers: tuple[int, bytes]) -> bytes:
    """A packet of IPv6 with extension headers of these kinds and bodies (all but their first byte)."""
    inner, at = packet[6], b""
    kinds = [kind for kind, _ in headers] + [inner]
    for (_, body), following in zip(headers, kinds[1:], strict=True):
        at += bytes([following]) + body
    length = struct.pack(">H", len(packet) - 40 + len(at))
    return packet[:4] + length + bytes([kinds[0]]) + packet[7:40] + at + packet[40:]


def _kind(packet: bytes) -> int:
    return 0x86DD if packet[0] >> 4 == 6 else 0x0800


def _two(number: int) -> bytes:
    return struct.pack(">H", number)


def ethernet(packet: bytes, *tags: int) -> bytes:
    """Return a frame with tags of VLANs, by their EtherTypes."""
    tagged = b"".join(_two(tag) + _two(7) for tag in tags)
    return bytes(12) + tagged + _two(_kind(packet)) + packet


def _ppp(packet: bytes) -> bytes:
    return _two(0x57 if packet[0] >> 4 == 6 else 0x21) + packet


def _family(packet: bytes) -> int:
    return 30 if packet[0] >> 4 == 6 else 2


def _snap(packet: bytes) -> bytes:
    return b"\xaa\xaa\x03\0\0\0" + _two(_kind(packet)) + packet


def wireless(packet: bytes) -> bytes:
    """Data of 802.11 with quality of service, from an access point."""
    return b"\x88\x02" + bytes(22) + b"\0\0" + _snap(packet)


def _logged(packet: bytes, order: str) -> bytes:
    """Return the packet after a prefix."""
    prefix = struct.pack(f"{order}HH", 9, 10) + b"drop\0" + bytes(3)
    inside = struct.pack(f"{order}HH", 4 + len(packet), 9) + packet
    return b"\x02\0\0\0" + prefix + inside + bytes(-len(inside) % 4)


LINKS: dict[str, tuple[int, Callable[[bytes], bytes]]] = {
    "loopback": (0, lambda packet: struct.pack("<I", _family(packet)) + packet),
    "loopback of a big-endian machine": (0, lambda packet: struct.pack(">I", _family(packet)) + packet),
    "loop": (108, lambda packet: struct.pack(">I", _family(packet)) + packet),
    "Ethernet": (1, ethernet),
    "Ethernet, 802.1Q": (1, lambda packet: ethernet(packet, 0x8100)),
    "Ethernet, 802.1ad": (1, lambda packet: ethernet(packet, 0x88A8, 0x8100)),
    "Ethernet, padded": (1, lambda packet: ethernet(packet) + bytes(6)),
    "Ethernet, PPPoE": (
        1,
        lambda packet: bytes(12) + b"\x88\x64\x11\0\0\1" + _two(len(packet) + 2) + _ppp(packet),
    ),
    "Ethernet, MPLS": (1, lambda packet: bytes(12) + b"\x88\x47" + b"\0\1\0\x40" + b"\0\2\1\x40" + packet),
    "802.3": (1, lambda packet: bytes(12) + _two(len(packet) + 8) + _snap(packet)),
    "token ring": (6, lambda packet: bytes(14) + _snap(packet)),
    "token ring, with a route": (
        6,
        lambda packet: bytes(8) + b"\x80" + bytes(5) + b"\x06" + bytes(5) + _snap(packet),
    ),
    "FDDI": (10, lambda packet: bytes(13) + _snap(packet)),
    "Fibre Channel": (122, lambda packet: bytes(16) + _snap(packet)),
    "MPLS": (219, lambda packet: b"\0\1\0\x40" + b"\0\2\1\x40" + packet),
    "IPNET": (226, lambda packet: b"\1" + bytes(23) + packet),
    "netfilter log": (239, lambda packet: _logged(packet, "<")),
    "netfilter log of a big-endian machine": (239, lambda packet: _logged(packet, ">")),
    "SLIP": (8, lambda packet: bytes(16) + packet),
    "PPP": (9, lambda packet: b"\xff\x03" + _ppp(packet)),
    "PPP, bare": (9, _ppp),
    "PPP, short": (9, lambda packet: b"\x57" + packet if packet[0] >> 4 == 6 else b"\x21" + packet),
    "serial PPP": (50, lambda packet: b"\xff\x03" + _ppp(packet)),
    "serial PPP, Cisco": (50, lambda packet: b"\x0f\0" + _two(_kind(packet)) + packet),
    "PPPoE": (51, lambda packet: b"\x11\0\0\1" + _two(len(packet) + 2) + _ppp(packet)),
    "raw, as BSD numbers it": (12, bytes),
    "raw, as OpenBSD numbers it": (14, bytes),
    "raw": (101, bytes),
    "Cisco HDLC": (104, lambda packet: b"\x0f\0" + _two(_kind(packet)) + packet),
    "802.11": (105, wireless),
    "ENC": (109, lambda packet: bytes(12) + packet),
    "cooked": (113, lambda packet: bytes(14) + _two(_kind(packet)) + packet),
    "cooked, 802.1Q": (113, lambda packet: bytes(14) + b"\x81\0\0\7" + _two(_kind(packet)) + packet),
    "PF log": (117, lambda packet: bytes([61]) + bytes(63) + packet),
    "Prism": (119, lambda packet: bytes(144) + wireless(packet)),
    "radiotap": (127, lambda packet: b"\0\0\x0c\0" + bytes(8) + wireless(packet)),
    "AVS": (163, lambda packet: bytes(4) + struct.pack(">I", 64) + bytes(56) + wireless(packet)),
    "FireWire": (138, lambda packet: bytes(16) + _two(_kind(packet)) + packet),
    "pppd": (166, lambda packet: b"\1\x03" + _ppp(packet)),
    "PPI": (192, lambda packet: struct.pack("<BBHI", 0, 0, 8, 105) + wireless(packet)),
    "PPP with a direction": (204, lambda packet: b"\1\xff\x03" + _ppp(packet)),
    "pktap": (258, lambda packet: struct.pack("<III", 108, 1, 1) + bytes(96) + ethernet(packet)),
    "cooked 2": (276, lambda packet: _two(_kind(packet)) + bytes(18) + packet),
}
"""The link types that carry both versions of IP: the number in a file, and the frame of a packet."""
OF_ONE_VERSION = {4: (228, bytes), 6: (229, bytes)}


@dataclass(frozen=True)
class Frame:
    content: bytes
    link_type: int = 1
    at_s: float = BEGIN_S
    length: int | None = None
    """Length on the wire; None: that of the content."""

    @property
    def wire_bytes(self) -> int:
        return len(self.content) if self.length is None else self.length

    def cut(self, snap_bytes: int) -> "Frame":
        return Frame(self.content[:snap_bytes], self.link_type, self.at_s, self.wire_bytes)


def framed(
    packets: Iterable[bytes], link: tuple[int, Callable[[bytes], bytes]] = LINKS["Ethernet"]
) -> list[Frame]:
    """Frames of packets, one behind the other."""
    link_type, frame = link
    return [
        Frame(frame(packet), link_type, BEGIN_S + EVERY_S * number) for number, packet in enumerate(packets)
    ]


def pcap(
    frames: Sequence[Frame],
    order: str = "<",
    units: int = 1_000_000,
    patched: bool = False,
    snap_bytes: int = 65535,
) -> bytes:
    magic = {1_000_000: 0xA1B2CD34 if patched else 0xA1B2C3D4, 1_000_000_000: 0xA1B23C4D}[units]
    link_type = frames[0].link_type if frames else 1
    written = [struct.pack(f"{order}IHHiIII", magic, 2, 4, 0, 0, snap_bytes, link_type)]
    for frame in frames:
        seconds = int(frame.at_s)
        fraction = round((frame.at_s - seconds) * units)
        written.append(struct.pack(f"{order}IIII", seconds, fraction, len(frame.content), frame.wire_bytes))
        written += [bytes(8 if patched else 0), frame.content]
    return b"".join(written)


def block(kind: int, body: bytes, order: str = "<") -> bytes:
    padded = body + bytes(-len(body) % 4)
    size = struct.pack(f"{order}I", 12 + len(padded))
    return struct.pack(f"{order}I", kind) + size + padded + size


def section(order: str = "<") -> bytes:
    return block(0x0A0D0D0A, struct.pack(f"{order}IHHq", 0x1A2B3C4D, 1, 0, -1), order)


def interface(link_type: int, order: str = "<", snap_bytes: int = 65535, options: bytes = b"") -> bytes:
    return block(1, struct.pack(f"{order}HHI", link_type, 0, snap_bytes) + options, order)


def packet_block(frame: Frame, kind: str = "enhanced", order: str = "<", number: int = 0) -> bytes:
    """A block with a frame of the interface of that number: `enhanced`, `old` or `simple`."""
    if kind == "simple":
        return block(3, struct.pack(f"{order}I", frame.wire_bytes) + frame.content, order)
    at_us = round(frame.at_s * 1e6)
    sizes = struct.pack(f"{order}IIII", at_us >> 32, at_us & 0xFFFFFFFF, len(frame.content), frame.wire_bytes)
    if kind == "old":
        return block(2, struct.pack(f"{order}HH", number, 0) + sizes + frame.content, order)
    return block(6, struct.pack(f"{order}I", number) + sizes + frame.content, order)


def pcapng(frames: Sequence[Frame], kind: str = "enhanced", order: str = "<", sections: int = 1) -> bytes:
    """Interfaces by the link types of the frames, in each of the sections, and blocks that hold no packet."""
    written = []
    share = -(-len(frames) // sections)
    for begin in range(0, max(len(frames), 1), max(share, 1)):
        part = frames[begin : begin + share]
        links = list(dict.fromkeys(frame.link_type for frame in part)) or [1]
        written += [section(order), *(interface(link, order) for link in links)]
        written += [packet_block(frame, kind, order, links.index(frame.link_type)) for frame in part]
        written += [block(5, struct.pack(f"{order}III", 0, 0, 0), order), block(0xBAD, b"custom", order)]
    return b"".join(written)


FILES: dict[str, Callable[[Sequence[Frame]], bytes]] = {
    "pcap": pcap,
    "pcap, big-endian": lambda frames: pcap(frames, ">"),
    "pcap, nanoseconds": lambda frames: pcap(frames, "<", 1_000_000_000),
    "pcap, nanoseconds, big-endian": lambda frames: pcap(frames, ">", 1_000_000_000),
    "pcap, patched": lambda frames: pcap(frames, "<", 1_000_000, True),
    "pcap, gzip": lambda frames: gzip.compress(pcap(frames)),
    "pcapng": pcapng,
    "pcapng, big-endian": lambda frames: pcapng(frames, "enhanced", ">"),
    "pcapng, old packets": lambda frames: pcapng(frames, "old"),
    "pcapng, simple packets": lambda frames: pcapng(frames, "simple"),
    "pcapng, simple packets, big-endian": lambda frames: pcapng(frames, "simple", ">"),
    "pcapng, three sections": lambda frames: pcapng(frames, sections=3),
    "pcapng, gzip": lambda frames: gzip.compress(pcapng(frames)),
}
"""The forms of a file. Simple packets are of one interface."""
