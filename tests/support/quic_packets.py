"""QUIC packets in a capture, decrypted by the secrets that an endpoint left: what counters are held against.

Written from RFC 9000, RFC 9001 and draft-ietf-quic-multipath; it shares nothing with any stack.
"""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hmac import HMAC
from cryptography.hazmat.primitives.kdf.hkdf import HKDFExpand

from fecbench.dropper import recordings

SALT = bytes.fromhex("38762cf7f55934b34d179ae6a4c80cadccbb7f0a")
SPACES = {0: "initial", 2: "handshake"}
LABELS = {
    "CLIENT_HANDSHAKE_TRAFFIC_SECRET": ("client", "handshake"),
    "SERVER_HANDSHAKE_TRAFFIC_SECRET": ("server", "handshake"),
    "CLIENT_TRAFFIC_SECRET_0": ("client", "data"),
    "SERVER_TRAFFIC_SECRET_0": ("server", "data"),
}
PADDING, PING, ACK, ACK_ECN, RESET, STOP, CRYPTO, TOKEN = range(8)
STREAM, DATAGRAM, CLOSE, HANDSHAKE_DONE = 0x08, 0x30, (0x1C, 0x1D), 0x1E
CODED = "coded"
"""The space of rQUIC's coded packets."""
REPAIR, SOURCE, SYMBOL_ACK, WINDOW = 0x32A80FEC, 0x32A80FEC55, 0x32A80FECAC, 0x32A80FECC0
SHORT_REPAIR, SHORT_SOURCE, PACKET_REPAIR = 0x2E, 0x2F, 0x0FEC
NEW_ID, PATH_ACK, PATH_ACK_ECN, PATH_NEW_ID = 0x18, 0x3E, 0x3F, 0x3E78
NUMBERS = {0x10: 1, 0x11: 2, 0x12: 1, 0x13: 1, 0x14: 1, 0x15: 2, 0x16: 1, 0x17: 1, 0x19: 1, RESET: 3, STOP: 2}
NUMBERS |= {0x3E75: 2, 0x3E76: 2, 0x3E77: 2, 0x3E79: 2, 0x3E7A: 1, 0x3E7B: 1, 0x3E7C: 2}
"""Frames of so many variable-length integers."""
Identity = tuple[str, int, int]
"""Packet number space, path and number of a packet."""


class Frame(NamedTuple):
    kind: int
    fields: tuple[int, ...] = ()
    """ACK has a delay, then first and last number of each range; STREAM stream, offset, length and end."""
    body: bytes = b""
    path: int = 0
    """The path that an ACK or a connection ID is for."""


@dataclass(frozen=True)
class Packet:
    at_s: float
    sender: str
    space: str
    number: int
    size: int
    frames: tuple[Frame, ...]
    datagram: int
    """The number of its datagram in the capture."""
    kind: int | None = None
    """The kind that the header of rQUIC tells."""
    path: int = 0
    link: int = 0
    """The number of the client's address: the third part of 10.0.1.2."""
    phase: int = 0
    """The number of updates of its keys."""

    def has(self, *kinds: int) -> bool:
        return any(frame.kind in kinds for frame in self.frames)

    @property
    def identity(self) -> Identity:
        return self.space, self.path, self.number

    def acknowledged(self, frame: Frame) -> Iterator[Identity]:
        """The packets that an ACK in this one acknowledges."""
        return ((self.space, frame.path, number) for number in numbers(frame.fields[1:]))

    @property
    def is_source(self) -> bool:
        """Whether it says so."""
        return self.kind == 1 or self.has(SOURCE)

    @property
    def is_repair(self) -> bool:
        return self.space == CODED or self.has(REPAIR)

    @property
    def asks_for_ack(self) -> bool:
        return any(frame.kind not in (PADDING, ACK, SYMBOL_ACK, *CLOSE) for frame in self.frames)

    @property
    def is_in_flight(self) -> bool:
        """RFC 9002, §2."""
        return self.asks_for_ack or self.has(PADDING)


class _Keys:
    """The keys of one sender and packet number space; those of data follow its key phases."""

    def __init__(self, secret: bytes) -> None:
        self._secret = secret
        self._largest: dict[int, int] = {}
        self._mask = algorithms.AES(_label(secret, b"quic hp", _key_bytes(secret)))
        self._phases = [self._opener(secret)]

    @staticmethod
    def _opener(secret: bytes) -> tuple[AESGCM, int]:
        key, iv = _label(secret, b"quic key", _key_bytes(secret)), _label(secret, b"quic iv", 12)
        return AESGCM(key), int.from_bytes(iv, "big")

    def _update(self) -> None:
        self._secret = _label(self._secret, b"quic ku", len(self._secret))
        self._phases.append(self._opener(self._secret))

    def open(self, packet: bytes, at: int, path: int) -> tuple[int, bytes, int]:
        """Number, payload and key phase of a packet of a path whose number begins there."""
        masked = bytearray(packet)
        mask = Cipher(self._mask, modes.ECB()).encryptor().update(packet[at + 4 : at + 20])
        masked[0] ^= mask[0] & (0x0F if packet[0] & 0x80 else 0x1F)
        size = (masked[0] & 3) + 1
        for n in range(size):
            masked[at + n] ^= mask[1 + n]
        window, expected = 1 << 8 * size, self._largest.get(path, -1) + 1
        number = int.from_bytes(masked[at : at + size], "big") + expected - expected % window
        number = min((number, number - window, number + window), key=lambda n: (n < 0, abs(n - expected)))
        is_odd = not packet[0] & 0x80 and bool(masked[0] & 4)
        if is_odd == len(self._phases) % 2:
            self._update()
        phases = range(is_odd, len(self._phases), 2)
        for phase in reversed(phases):
            key, iv = self._phases[phase]
            nonce = iv ^ path << 64 ^ number  # draft-ietf-quic-multipath, §2.4
            with suppress(InvalidTag):
                payload = key.decrypt(
                    nonce.to_bytes(12, "big"), packet[at + size :], bytes(masked[: at + size])
                )
                self._largest[path] = max(expected - 1, number)
                return number, payload, phase
        raise InvalidTag


def _key_bytes(secret: bytes) -> int:
    """Return 32 for AES-256 with SHA-384, and 16 for AES-128 with SHA-256."""
    return 32 if len(secret) == 48 else 16


def _label(secret: bytes, label: bytes, size: int) -> bytes:
    label = b"tls13 " + label
    info = size.to_bytes(2, "big") + bytes([len(label)]) + label + b"\0"
    kind = hashes.SHA384() if len(secret) == 48 else hashes.SHA256()
    return HKDFExpand(kind, size, info).derive(secret)


def _initial(connection_id: bytes, role: str) -> _Keys:
    extract = HMAC(SALT, hashes.SHA256())
    extract.update(connection_id)
    return _Keys(_label(extract.finalize(), f"{role} in".encode(), 32))


class _Reader:
    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, 0

    def integer(self) -> int:
        first = self.data[self.at]
        size = 1 << (first >> 6)
        value = int.from_bytes(self.data[self.at : self.at + size], "big") & ((1 << 8 * size - 2) - 1)
        self.at += size
        return value

    def integers(self, count: int) -> tuple[int, ...]:
        return tuple(self.integer() for _ in range(count))

    def bytes(self, size: int | None = None) -> bytes:
        end = len(self.data) if size is None else self.at + size
        part, self.at = self.data[self.at : end], end
        return part

    def skip(self, byte: int) -> None:
        while self and self.data[self.at] == byte:
            self.at += 1

    def __bool__(self) -> bool:
        return self.at < len(self.data)


def _frames(payload: bytes) -> Iterator[Frame]:
    reader = _Reader(payload)
    while reader:
        kind = reader.integer()
        if kind == PADDING:
            reader.skip(PADDING)
            yield Frame(kind)
        elif kind in (PING, HANDSHAKE_DONE, 0x1F):
            yield Frame(kind)
        elif kind in (ACK, ACK_ECN, PATH_ACK, PATH_ACK_ECN):
            path = reader.integer() if kind in (PATH_ACK, PATH_ACK_ECN) else 0
            yield Frame(ACK, _ranges(reader, 1), path=path)
            if kind in (ACK_ECN, PATH_ACK_ECN):
                reader.integers(3)
        elif kind == CRYPTO:
            offset, size = reader.integers(2)
            yield Frame(kind, (offset, size), reader.bytes(size))
        elif kind == TOKEN:
            yield Frame(kind, (), reader.bytes(reader.integer()))
        elif STREAM <= kind < STREAM + 8:
            stream = reader.integer()
            offset = reader.integer() if kind & 4 else 0
            body = reader.bytes(reader.integer() if kind & 2 else None)
            yield Frame(STREAM, (stream, offset, len(body), kind & 1), body)
        elif kind in NUMBERS:
            yield Frame(kind, reader.integers(NUMBERS[kind]))
        elif kind in (NEW_ID, PATH_NEW_ID):
            path = reader.integer() if kind == PATH_NEW_ID else 0
            yield Frame(NEW_ID, reader.integers(2), reader.bytes(reader.bytes(1)[0]), path)
            reader.bytes(16)
        elif kind in (0x1A, 0x1B):
            yield Frame(kind, (), reader.bytes(8))
        elif kind in CLOSE:
            numbers = reader.integers(2 if kind == 0x1C else 1)
            yield Frame(kind, numbers, reader.bytes(reader.integer()))
        elif kind in (DATAGRAM, DATAGRAM + 1):
            yield Frame(DATAGRAM, (), reader.bytes(reader.integer() if kind & 1 else None))
        elif kind in (SOURCE, SHORT_SOURCE):
            yield Frame(SOURCE, (reader.integer(),))
        elif kind == SYMBOL_ACK:
            yield Frame(kind, _ranges(reader))
        elif kind == PACKET_REPAIR:
            numbers = reader.integers(4)
            yield Frame(REPAIR, numbers, reader.bytes(numbers[3]))
        elif kind in (REPAIR, SHORT_REPAIR):
            yield Frame(REPAIR, (), reader.bytes())
        elif kind == WINDOW:
            yield Frame(kind, reader.integers(2))
        else:
            raise ValueError(f"frame of the unknown type {kind:#x}")


def _ranges(reader: _Reader, *between: int) -> tuple[int, ...]:
    """First and last number of each range, from the largest number down; `between` are read after that."""
    largest = reader.integer()
    delay = tuple(reader.integer() for _ in between)
    count, first = reader.integers(2)
    ranges = [largest - first, largest]
    for _ in range(count):
        gap, length = reader.integers(2)
        end = ranges[-2] - gap - 2
        ranges += [end - length, end]
    return (*delay, *ranges)


def numbers(ranges: tuple[int, ...]) -> Iterator[int]:
    """The numbers of ranges by their first and last one."""
    for first, last in zip(ranges[::2], ranges[1::2], strict=True):
        yield from range(first, last + 1)


def names_of(packets: Iterable[Packet]) -> dict[int, Identity]:
    """Return the packets that whole repair symbols name, by their source symbols' numbers."""
    parts: dict[int, dict[int, bytes]] = {}
    lengths: dict[int, int] = {}
    for packet in packets:
        for frame in packet.frames:
            if frame.kind == REPAIR and frame.fields:
                number, lengths[frame.fields[0]], offset, _ = frame.fields
                parts.setdefault(number, {})[offset] = frame.body
    names: dict[int, Identity] = {}
    for number, of_symbol in parts.items():
        symbol = b"".join(of_symbol[offset] for offset in sorted(of_symbol))
        if len(symbol) == lengths[number]:
            reader = _Reader(symbol)
            sid, count = reader.integers(2)
            for _ in range(count):
                path, first, size = reader.integers(3)
                names |= {sid + n: ("data", path, first + n) for n in range(size)}
                sid += size
    return names


def secrets(path: Path) -> dict[tuple[str, str], bytes]:
    """Return the secrets of one connection."""
    fields = (line.split() for line in path.read_text().splitlines())
    return {LABELS[label]: bytes.fromhex(secret) for label, _, secret in fields if label in LABELS}


def read(
    capture: Path, log: Mapping[tuple[str, str], bytes], wrapped: bool = False, server_port: int = 4433
) -> Iterator[Packet]:
    """Yield the packets that one end sent and received, of one connection, in the capture's order."""
    keys: dict[tuple[str, str], _Keys] = {of: _Keys(secret) for of, secret in log.items()}
    id_bytes: dict[str, int] = {}
    path_of: dict[bytes, int] = {}
    for number, datagram in enumerate(recordings.packets(capture)):
        sender = "server" if datagram.source.endswith(f":{server_port}") else "client"
        rest, kind, link = datagram.payload, None, link_of(datagram, sender)
        if wrapped and not rest[0] & 0x80:
            kind = rest[5]
            rest = rest[:5] + rest[6 if kind == 0 else 9 :]
            if kind > 1:
                yield Packet(
                    datagram.at_s, sender, CODED, number, datagram.length, (), number, kind, link=link
                )
                continue
        while any(rest):  # some stacks pad datagrams behind the last packet
            path = 0
            if rest[0] & 0x80:
                reader = _Reader(rest)
                reader.bytes(5)
                destination, source = reader.bytes(reader.bytes(1)[0]), reader.bytes(reader.bytes(1)[0])
                space = SPACES[rest[0] >> 4 & 3]
                if space == "initial":
                    reader.bytes(reader.integer())
                    if not any(of[1] == "initial" for of in keys):
                        keys |= {
                            (role, "initial"): _initial(destination, role) for role in ("client", "server")
                        }
                id_bytes[sender] = len(source)
                end = reader.integer() + reader.at
                at = reader.at
            else:
                space, end = "data", len(rest)
                at = 1 + id_bytes["client" if sender == "server" else "server"]
                path = path_of.get(rest[1:at], 0)
            packet, rest = rest[:end], rest[end:]
            try:
                packet_number, payload, phase = keys[sender, space].open(packet, at, path)
            except InvalidTag:
                continue
            frames = tuple(_frames(payload))
            path_of |= {frame.body: frame.path for frame in frames if frame.kind == NEW_ID}
            yield Packet(
                datagram.at_s, sender, space, packet_number, end, frames, number, kind, path, link, phase
            )


def link_of(datagram: recordings.Packet, sender: str) -> int:
    client = datagram.source if sender == "client" else datagram.destination
    return int(client[4:6], 16)
