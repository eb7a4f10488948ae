"""Losses in a packet capture of the receiver alone: the gaps in sequence numbers that packets carry.

One flow is read: of one source to one destination. At 2:2, packets are RTP (RFC 3550): those of other kinds
on the same port (RFC 7983: STUN, DTLS, and RTCP by its types, RFC 5761) are passed over, and the source
(SSRC) with most packets is read.

Refuses numbers of which more are missing than came, and a place at which many packets have the same number.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from fecbench.dropper.recordings.flow import Flow, direction_of, text_of
from fecbench.dropper.recordings.packet import Packet, Seen, packets
from fecbench.dropper.recordings.recording import Recording, missing
from fecbench.errors import BadInput
from fecbench.quantities import counted

ByteOrder = Literal["big", "little"]
_RTP_HEADER_BYTES = 12
_MOST_COPIES = 4
"""A packet may be captured at so many interfaces of a host."""
_RTCP_TYPES = range(192, 224)


@dataclass(frozen=True)
class Sequence:
    """The place of a packet's number in its UDP datagram. RTP has 2 bytes at 2."""

    offset: int
    size: int
    byte_order: ByteOrder = "big"

    @classmethod
    def of(cls, text: str, byte_order: ByteOrder = "big") -> "Sequence":
        """Raises BadInput for what is not OFFSET:BYTES."""
        offset, _, size = text.partition(":")
        if not (offset.isdecimal() and size.isdecimal() and 1 <= int(size) <= 8 and int(offset) < 2**16):
            raise BadInput(f"sequence {text!r}: must be OFFSET:BYTES with 1 to 8 bytes, such as 2:2 for RTP")
        return cls(int(offset), int(size), byte_order)

    @property
    def end(self) -> int:
        return self.offset + self.size

    @property
    def is_rtp(self) -> bool:
        return (self.offset, self.size, self.byte_order) == (2, 2, "big")

    def number(self, payload: bytes) -> int:
        return int.from_bytes(payload[self.offset : self.end], self.byte_order)


_Stream = tuple[Flow, bytes]
"""A flow, and of RTP the source (SSRC) in it."""


def read(path: Path, sequence: Sequence) -> Recording:
    """Return the gaps in the numbers of the busiest flow. Raises BadInput, which names the file."""
    remarks = Seen()
    counts = Counter(stream for stream, _ in _numbered(path, sequence, remarks))
    if not counts:
        raise BadInput(_no_numbers(path, sequence))
    (stream, _), *others = counts.most_common()
    usual = Counter(
        packet.length for its_stream, packet in _numbered(path, sequence, Seen()) if its_stream == stream
    ).most_common(1)[0][0]
    last, numbers, modulus = None, list[int](), 256**sequence.size
    for its_stream, packet in _numbered(path, sequence, Seen()):
        if its_stream != stream:
            continue
        for number in _numbers(packet, sequence, usual):
            # The nearest number that ends with these bytes: they begin again after the largest.
            last = number if last is None else last + (number - last + modulus // 2) % modulus - modulus // 2
            numbers.append(last)
    flow, ssrc = stream
    distinct = len(set(numbers))
    if len(numbers) > _MOST_COPIES * distinct:
        raise BadInput(
            f"{path}: {text_of(flow)}: {counted(len(numbers), 'packet', 'has/have')} {distinct}"
            " different numbers there: is the"
            " place right?"
        )
    source = text_of(flow) + (f", SSRC 0x{ssrc.hex()}" if ssrc else "")
    lost = missing(numbers, f"{path}: {source}")
    return Recording(lost, source, direction_of(flow), (*remarks.notes, *_left_out(others, sequence)))


def _numbered(path: Path, sequence: Sequence, remarks: Seen) -> Iterator[tuple[_Stream, Packet]]:
    """The packets of UDP that have a number."""
    for packet in packets(path, remarks):
        if not packet.is_udp or len(packet.payload) < sequence.end:
            continue
        if not sequence.is_rtp:
            yield (packet.flow, b""), packet
        elif _is_rtp(packet.payload):
            yield (packet.flow, packet.payload[8:_RTP_HEADER_BYTES]), packet


def _is_rtp(payload: bytes) -> bool:
    return len(payload) >= _RTP_HEADER_BYTES and payload[0] >> 6 == 2 and payload[1] not in _RTCP_TYPES


def _numbers(packet: Packet, sequence: Sequence, usual: int) -> Iterator[int]:
    """The number of a packet; of one that an offload joined, those of its parts."""
    first = sequence.number(packet.payload)
    yield first
    if packet.length <= usual or packet.is_cut:
        return
    parts = [packet.payload[at : at + usual] for at in range(0, packet.length, usual)]
    numbers = [sequence.number(part) for part in parts if len(part) >= sequence.end]
    if numbers == [(first + place) % 256**sequence.size for place in range(len(parts))]:
        yield from numbers[1:]


def _left_out(others: list[tuple[_Stream, int]], sequence: Sequence) -> Iterator[str]:
    if others:
        kind = "RTP sources" if sequence.is_rtp else "flows"
        yield (
            f"{len(others)} other {kind} with"
            f" {counted(sum(count for _, count in others), 'packet', 'is/are')} left out."
        )


def _no_numbers(path: Path, sequence: Sequence) -> str:
    counts = Counter(packet.is_udp for packet in packets(path))
    if not counts[True]:
        return f"{path}: has no packet of UDP over IP"
    if sequence.is_rtp:
        return (
            f"{path}: none of its {counted(counts[True], 'packet')} of UDP is RTP, whose numbers stand at 2:2"
        )
    return f"{path}: none of its {counted(counts[True], 'packet')} of UDP has {sequence.end} bytes"
