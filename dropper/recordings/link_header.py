"""The headers below IP of a captured frame: which IP packet is in it.

The types are those that libpcap writes for IP (its list of link-layer header types). 802.11 is read where
frames are not encrypted, and each holds one packet.
"""

import struct
from collections.abc import Callable
from typing import NamedTuple

_IP, _IPV6 = 0x0800, 0x86DD
_TAGS = {0x8100, 0x88A8, 0x9100, 0x9200}
"""802.1Q, 802.1ad, and what came before it."""
_MPLS, _PPPOE, _SNAP = {0x8847, 0x8848}, 0x8864, b"\xaa\xaa\x03"
_OF_PPP = {0x0021: _IP, 0x0057: _IPV6}
_MOST_TAGS = 8


class Inside(NamedTuple):
    """An IP packet in a frame, perhaps with padding behind it."""

    packet: bytes
    point: tuple[int, ...] = ()
    """The place on a host where a frame of the interface "any" was captured: the device, and in or out."""


class NotIp(Exception):
    """The frame holds no IP packet."""


def ip_of(link_type: int, frame: bytes) -> Inside:
    """Return the IP packet in a frame. Raises NotIp if there is none, KeyError for an unknown type."""
    read = _TYPES[link_type]
    try:
        return read(frame)
    except (IndexError, struct.error):
        raise NotIp from None


def is_known(link_type: int) -> bool:
    """Whether frames of this type are read."""
    return link_type in _TYPES


def _of_type(kind: int, frame: bytes, at: int) -> Inside:
    """Return the IP packet inside, by an EtherType and the bytes behind it from `at` on."""
    for _ in range(_MOST_TAGS):
        if kind in _TAGS:
            kind, at = int.from_bytes(frame[at + 2 : at + 4], "big"), at + 4
        elif kind in _MPLS:
            return _labelled(frame[at:])
        elif kind == _PPPOE:
            return _ppp(frame[at + 6 :])
        elif kind <= 1500:  # a length, of 802.3
            return _logical_link(frame, at)
        else:
            break
    if kind not in (_IP, _IPV6):
        raise NotIp
    return _raw(frame[at:])


def _labelled(frame: bytes) -> Inside:
    """A packet behind labels of MPLS, of which the last one is marked."""
    at = 0
    while not frame[at + 2] & 1:
        at += 4
    return _raw(frame[at + 4 :])


def _logical_link(frame: bytes, at: int) -> Inside:
    if frame[at : at + 3] != _SNAP:
        raise NotIp
    return _of_type(_two_bytes(frame, at + 6), frame, at + 8)


def _two_bytes(frame: bytes, at: int) -> int:
    return frame[at] << 8 | frame[at + 1]


def _raw(frame: bytes) -> Inside:
    if frame[0] >> 4 not in (4, 6):
        raise NotIp
    return Inside(frame)


def _behind(size: int) -> Callable[[bytes], Inside]:
    """The reader of packets behind a heading of so many bytes, whose family their first bits tell."""
    return lambda frame: _raw(frame[size:])


def _typed(at: int, size: int) -> Callable[[bytes], Inside]:
    """The reader of packets behind a heading of so many bytes, with an EtherType in it."""
    return lambda frame: _of_type(_two_bytes(frame, at), frame, size)


def _cooked(frame: bytes) -> Inside:
    inside = _of_type(_two_bytes(frame, 14), frame, 16)
    return Inside(inside.packet, (_two_bytes(frame, 0),))


def _cooked_2(frame: bytes) -> Inside:
    inside = _of_type(_two_bytes(frame, 0), frame, 20)
    return Inside(inside.packet, (int.from_bytes(frame[4:8], "big"), frame[10]))


def _ppp(frame: bytes) -> Inside:
    at = 2 if frame[:2] == b"\xff\x03" else 0
    if frame[at] & 1:  # a protocol of one byte, where the ends agreed on that
        protocol, at = frame[at], at + 1
    else:
        protocol, at = _two_bytes(frame, at), at + 2
    if protocol not in _OF_PPP:
        raise NotIp
    return _raw(frame[at:])


def _serial_ppp(frame: bytes) -> Inside:
    """PPP, or Cisco's framing of the same lines."""
    return _of_type(_two_bytes(frame, 2), frame, 4) if frame[0] in (0x0F, 0x8F) else _ppp(frame)


def _pflog(frame: bytes) -> Inside:
    return _raw(frame[(frame[0] + 3) // 4 * 4 :])


def _token_ring(frame: bytes) -> Inside:
    """The first bit of the source says that there is a route, whose first byte has its length."""
    return _logical_link(frame, 14 + (frame[14] & 0x1F if frame[8] & 0x80 else 0))


def _netfilter_log(frame: bytes) -> Inside:
    """Attributes with a length and a type each, in the byte order of the host."""
    order, at = ("<", ">")[frame[4] == 0], 4
    while at + 4 <= len(frame):
        size, kind = struct.unpack_from(f"{order}HH", frame, at)
        if kind & 0x7FFF == _PAYLOAD_ATTRIBUTE:
            return _raw(frame[at + 4 : at + size])
        at += max(4, (size + 3) // 4 * 4)
    raise NotIp


def _pktap(frame: bytes) -> Inside:
    size, _, link_type = struct.unpack_from("<III", frame)
    return _nested(link_type, frame, size)


def _ppi(frame: bytes) -> Inside:
    size, link_type = struct.unpack_from("<2xHI", frame)
    return _nested(link_type, frame, size)


def _nested(link_type: int, frame: bytes, size: int) -> Inside:
    if size == 0 or link_type in (_PKTAP, _PPI) or link_type not in _TYPES:
        raise NotIp
    return _TYPES[link_type](frame[size:])


def _radiotap(frame: bytes) -> Inside:
    (size,) = struct.unpack_from("<H", frame, 2)
    return _wireless(frame[size:])


def _wireless(frame: bytes) -> Inside:
    """A frame of 802.11: data that is neither encrypted nor a bundle of several."""
    control, flags = frame[0], frame[1]
    if control & 0x0C != 0x08 or control & 0x40 or flags & 0x40:  # no data, no content, protected
        raise NotIp
    at = 30 if flags & 0x03 == 0x03 else 24  # four addresses between two stations of a bridge
    if control & 0x80:  # quality of service
        if frame[at] & 0x80:
            raise NotIp
        at += 2 + (4 if flags & 0x80 else 0)
    return _logical_link(frame, at)


_PPI, _PKTAP = 192, 258
_PAYLOAD_ATTRIBUTE = 9
_TYPES: dict[int, Callable[[bytes], Inside]] = {
    0: _behind(4),  # NULL, the loopback of BSD and macOS
    1: _typed(12, 14),  # Ethernet
    6: _token_ring,
    8: _behind(16),  # SLIP
    9: _ppp,
    10: lambda frame: _logical_link(frame, 13),  # FDDI
    12: _raw,  # RAW, as some systems number it
    14: _raw,
    50: _serial_ppp,
    51: lambda frame: _ppp(frame[6:]),  # PPPoE without Ethernet
    101: _raw,
    104: _typed(2, 4),  # Cisco HDLC
    105: _wireless,
    108: _behind(4),  # LOOP, of OpenBSD
    109: _behind(12),  # ENC, of OpenBSD
    113: _cooked,
    117: _pflog,
    119: lambda frame: _wireless(frame[144:]),  # Prism
    122: lambda frame: _logical_link(frame, 16),  # IP over Fibre Channel
    127: _radiotap,
    138: _typed(16, 18),  # IP over FireWire, of Apple
    163: lambda frame: _wireless(frame[int.from_bytes(frame[4:8], "big") :]),  # AVS
    166: lambda frame: _ppp(frame[2:]),  # pppd, with a direction
    _PPI: _ppi,
    204: lambda frame: _ppp(frame[1:]),  # PPP with a direction
    219: _labelled,
    226: _behind(24),  # IPNET, of Solaris
    228: _raw,
    229: _raw,
    239: _netfilter_log,
    _PKTAP: _pktap,
    276: _cooked_2,
}
