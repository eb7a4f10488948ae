"""Recorded losses: which packets of a recording were lost, one after another.

- A list: 0 for each packet that came and 1 for each that was lost.
- A qlog of the sender (JSON or JSON text sequences): what it sent, and what it declared lost. Gaps in the
  numbers of a receiver would tell less: some stacks skip numbers.
- Packet captures of both sides (pcap or pcapng): what the sender's has, and the receiver's lacks.
- A packet capture of the receiver alone, where packets carry sequence numbers: the gaps in these.

Refuses, in one line that names the file, what is none of these, and captures that have nothing in common.
"""

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import dpkt
import numpy as np
from numpy.typing import NDArray

from fecbench.errors import BadInput

MOST_PACKETS = 10_000_000
LARGEST_BYTES = 4 << 30
"""Of a capture or a qlog."""
_TEXT_BYTES = 512 << 20

Verdicts = NDArray[np.bool_]
_ALLOWED = str.maketrans("", "", "01, \t")
_CAPTURES = {  # the first bytes of a file
    b"\xa1\xb2\xc3\xd4": dpkt.pcap.Reader,
    b"\xd4\xc3\xb2\xa1": dpkt.pcap.Reader,
    b"\xa1\xb2\x3c\x4d": dpkt.pcap.Reader,
    b"\x4d\x3c\xb2\xa1": dpkt.pcap.Reader,
    b"\x0a\x0d\x0d\x0a": dpkt.pcapng.Reader,
}
_LINKS = {
    dpkt.pcap.DLT_NULL: dpkt.loopback.Loopback,
    dpkt.pcap.DLT_EN10MB: dpkt.ethernet.Ethernet,
    dpkt.pcap.DLT_LINUX_SLL: dpkt.sll.SLL,
    dpkt.pcap.DLT_LINUX_SLL2: dpkt.sll2.SLL2,
}
_RECORD_SEPARATOR = "\x1e"  # RFC 7464; white space to Python
_RAW_IP = (12, 14, dpkt.pcap.DLT_RAW)


@dataclass(frozen=True)
class Sequence:
    """Where in a UDP datagram its number stands: big-endian. RTP has 2 bytes at 2."""

    offset: int
    size: int

    @classmethod
    def of(cls, text: str) -> "Sequence":
        """Raises BadInput for what is not OFFSET:BYTES."""
        offset, _, size = text.partition(":")
        if not (offset.isdecimal() and size.isdecimal() and 1 <= int(size) <= 8 and int(offset) < 2**16):
            raise BadInput(f"sequence {text!r}: must be OFFSET:BYTES with 1 to 8 bytes, such as 2:2 for RTP")
        return cls(int(offset), int(size))


@dataclass(frozen=True)
class Packet:
    """A packet of TCP or UDP of a capture."""

    at_s: float
    """When it was seen, since 1970."""
    source: str
    """Address and port, as are those of `destination`: of IPv4, `0a000102:443`."""
    destination: str
    content: bytes
    """The transport header, without its checksum, and all behind it."""
    payload: bytes


def read(path: Path, received: Path | None = None, sequence: Sequence | None = None) -> Verdicts:
    """Which packets were lost, in the order in which they were sent.

    Raises BadInput, which names the file.
    """
    start = _beginning(path)
    if start[:4] in _CAPTURES:
        if (received is None) == (sequence is None):
            raise BadInput(f"{path}: a capture needs either --received, the other side's, or --sequence")
        lost = _missing(path, received) if received is not None else _gaps_of(path, sequence)
    elif received is not None or sequence is not None:
        raise BadInput(f"{path}: is no packet capture (pcap or pcapng)")
    elif start.lstrip()[:1] in (b"{", b"\x1e"):
        lost = _of_qlog(path)
    else:
        lost = _of_list(path)
    if lost.size > MOST_PACKETS:
        raise BadInput(f"{path}: has more than {MOST_PACKETS} packets")
    return lost


def drop_list(lost: Verdicts) -> str:
    """What was lost as a list of packets and ranges, "3,7-9": what a pattern takes."""
    edges = np.flatnonzero(np.diff(np.concatenate(([0], lost.astype(np.int8), [0]))))
    runs = zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True)
    return ",".join(str(first) if end == first + 1 else f"{first}-{end - 1}" for first, end in runs)


def _beginning(path: Path) -> bytes:
    try:
        if path.stat().st_size > LARGEST_BYTES:
            raise BadInput(f"{path}: has more than {LARGEST_BYTES >> 30} GiB")
        with path.open("rb") as file:
            return file.read(64)
    except OSError as error:
        raise BadInput(f"{path}: cannot be read: {error.strerror}") from error


# A list


def _of_list(path: Path) -> Verdicts:
    text = _text_of(path, 4 * MOST_PACKETS)
    for number, line in enumerate(text.splitlines(), start=1):
        if wrong := line.translate(_ALLOWED).strip():
            raise BadInput(f"{path}: line {number}: {wrong[:20]!r}: must be 0 (it came) or 1 (it was lost)")
    digits = "".join(text.split()).replace(",", "")
    if not digits:
        raise BadInput(f"{path}: is empty")
    lost: Verdicts = np.frombuffer(digits.encode(), np.uint8) == ord("1")
    return lost


def _text_of(path: Path, most_bytes: int) -> str:
    if path.stat().st_size > most_bytes:
        raise BadInput(f"{path}: has more than {most_bytes >> 20} MiB")
    try:
        return path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        raise BadInput(f"{path}: is no text") from None


# Captures


def _missing(path: Path, received: Path) -> Verdicts:
    """Of what the busiest sender of the first capture's side sent, what is not in the second."""
    seen = list(packets(path))
    sent = Counter(packet.source for packet in seen)
    came = Counter(packet.source for packet in packets(received))
    # Of what came from the other side, losses have made fewer.
    senders = [source for source, count in sent.most_common() if count >= came[source] > 0]
    if not senders:
        raise BadInput(f"{received}: has none of the packets that {path} has of a sender on its side")
    left = Counter(packet.content for packet in packets(received) if packet.source == senders[0])
    is_lost = []
    for packet in seen:
        if packet.source == senders[0]:
            is_lost.append(left[packet.content] == 0)
            left[packet.content] -= left[packet.content] > 0
    if all(is_lost):
        raise BadInput(
            f"{received}: has none of the packets of {senders[0]} in {path}: they are of other times"
        )
    # What was sent behind the last that came may be under way.
    behind = is_lost[::-1].index(False)
    return np.array(is_lost[: len(is_lost) - behind])


def _gaps_of(path: Path, sequence: Sequence | None) -> Verdicts:
    assert sequence is not None
    busiest = Counter(packet.source for packet in packets(path)).most_common(1)
    if not busiest:
        raise BadInput(f"{path}: has no packet of TCP or UDP over IP")
    end, numbers, last, modulus = sequence.offset + sequence.size, [], None, 256**sequence.size
    for packet in packets(path):
        if packet.source != busiest[0][0] or len(packet.payload) < end:
            continue
        number = int.from_bytes(packet.payload[sequence.offset : end], "big")
        # The nearest number that ends with these bytes: they begin again after the largest.
        last = number if last is None else last + (number - last + modulus // 2) % modulus - modulus // 2
        numbers.append(last)
    return _gaps(path, numbers)


def packets(path: Path) -> Iterator[Packet]:
    """The packets of TCP and UDP of a capture, in its order. Raises BadInput, which names the file."""
    try:
        with path.open("rb") as file:
            yield from _packets_in(file, path)
    except OSError as error:
        raise BadInput(f"{path}: cannot be read: {error.strerror}") from error
    except BadInput:
        raise
    except (dpkt.Error, ValueError) as error:
        raise BadInput(f"{path}: is no whole packet capture: {error or type(error).__name__}") from None


def _packets_in(file: BinaryIO, path: Path) -> Iterator[Packet]:
    reader_of = _CAPTURES.get(file.read(4))
    if reader_of is None:
        raise BadInput(f"{path}: is no packet capture (pcap or pcapng)")
    file.seek(0)
    reader = reader_of(file)
    link = reader.datalink()
    if link not in _LINKS and link not in _RAW_IP:
        raise BadInput(
            f"{path}: its packets have link headers of type {link}; Ethernet, cooked and raw are read"
        )
    for at_s, frame in reader:
        try:
            packet = _packet_of(frame, link, float(at_s))
        except (dpkt.Error, IndexError, AttributeError):
            continue  # a frame that is no whole packet; of some, dpkt reads what they have not
        if packet is not None:
            yield packet


def _packet_of(frame: bytes, link: int, at_s: float) -> Packet | None:
    if link in _RAW_IP:
        ip = dpkt.ip6.IP6(frame) if frame[0] >> 4 == 6 else dpkt.ip.IP(frame)
    else:
        ip = _LINKS[link](frame).data
    if not isinstance(ip, dpkt.ip.IP | dpkt.ip6.IP6) or not isinstance(ip.data, dpkt.udp.UDP | dpkt.tcp.TCP):
        return None
    transport = ip.data
    transport.sum = 1  # many hosts leave it to their network card; 0 would be computed
    source, destination = f"{ip.src.hex()}:{transport.sport}", f"{ip.dst.hex()}:{transport.dport}"
    return Packet(at_s, source, destination, bytes(transport), bytes(transport.data))


# qlog


def _of_qlog(path: Path) -> Verdicts:
    sent, lost = [], set()
    for event in _events(path):
        name, data = str(event.get("name", "")).rpartition(":")[2], event.get("data")
        header = data.get("header") if isinstance(data, dict) else None
        if not isinstance(header, dict) or header.get("packet_type") not in ("1RTT", "1rtt"):
            continue
        number = header.get("packet_number")
        if not isinstance(number, int):
            continue
        if header.get("path_id"):
            raise BadInput(f"{path}: has packets of several paths, which lose each its own")
        if name == "packet_sent":
            sent.append(number)
        elif name == "packet_lost":
            lost.add(number)
    if not sent:
        raise BadInput(f"{path}: has no packet that was sent after the handshake")
    return np.array([number in lost for number in sent])


def _events(path: Path) -> Iterator[dict[str, Any]]:
    """The events of a qlog: of one JSON document, or of JSON text sequences (RFC 7464)."""
    text = _text_of(path, _TEXT_BYTES)
    try:
        if text.startswith(_RECORD_SEPARATOR):
            records = map(json.loads, filter(str.strip, text.split(_RECORD_SEPARATOR)))
            yield from (record for record in records if isinstance(record, dict) and "name" in record)
            return
        document = json.loads(text)
        for trace in document["traces"]:
            yield from (event for event in trace["events"] if isinstance(event, dict))
    except ValueError as error:
        raise BadInput(f"{path}: is no whole qlog: {error}") from None
    except (KeyError, TypeError, AttributeError):
        raise BadInput(f"{path}: is no qlog: it has no traces with events") from None


def _gaps(path: Path, numbers: list[int]) -> Verdicts:
    """Of numbers that were received, those that are missing from the first to the last."""
    if not numbers:
        raise BadInput(f"{path}: no packet has a number there")
    first, last = min(numbers), max(numbers)
    if last - first >= MOST_PACKETS:
        raise BadInput(f"{path}: its numbers go from {first} to {last}: more than {MOST_PACKETS} packets")
    lost = np.ones(last - first + 1, dtype=np.bool_)
    lost[np.array(numbers) - first] = False
    return lost
