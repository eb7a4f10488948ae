"""A simulator's capture is a pcapng file that others read: each datagram whole, with its virtual time."""

import ctypes
import errno
import os
import socket
import struct
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from ipaddress import IPv6Address, ip_address
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from fecbench.checkout import REPOSITORY

CAPTURE = REPOSITORY / "quic-impls" / "lane" / "capture.c"
NEW_YEAR_2000_NS = 946_684_800 * 10**9
SECTION, INTERFACE, PACKET = 0x0A0D0D0A, 1, 6


class Address(ctypes.Structure):
    _fields_ = (
        *(("ipv4", ctypes.c_uint32), ("port", ctypes.c_uint16)),
        *(("is_ipv6", ctypes.c_bool), ("ipv6", ctypes.c_uint8 * 16)),
    )


@dataclass(frozen=True)
class Packet:
    """A datagram of a capture."""

    at_ns: int
    source: tuple[str, int]
    destination: tuple[str, int]
    payload: bytes


def address_of(host: tuple[str, int]) -> Address:
    name, port = host
    address = ip_address(name)
    if address.version == 4:
        return Address(int(address), port)
    return Address(0, port, True, (ctypes.c_uint8 * 16)(*address.packed))


@pytest.fixture(scope="session")
def core(shared_library: Callable[..., ctypes.CDLL]) -> ctypes.CDLL:
    core = shared_library(CAPTURE)
    core.capture_open.restype = ctypes.c_void_p
    core.capture_packet.argtypes = (
        *(ctypes.c_void_p, ctypes.c_uint64, Address, Address),
        *(ctypes.c_char_p, ctypes.c_uint32),
    )
    core.capture_close.argtypes = (ctypes.c_void_p,)
    return core


def write(core: ctypes.CDLL, path: Path, packets: list[Packet], epoch_ns: int = 0) -> int:
    """Write a capture, and return the result of capture_close."""
    capture = core.capture_open(os.fsencode(path), ctypes.c_uint64(epoch_ns))
    assert capture
    for packet in packets:
        source, destination = address_of(packet.source), address_of(packet.destination)
        payload = packet.payload
        core.capture_packet(capture, packet.at_ns, source, destination, payload, len(payload))
    closed: int = core.capture_close(capture)
    return closed


def blocks(pcapng: bytes) -> Iterator[tuple[int, bytes]]:
    """Type and body of each, of which both sizes agree."""
    while pcapng:
        kind, size = struct.unpack_from("=II", pcapng)
        assert size % 4 == 0
        assert struct.unpack_from("=I", pcapng, size - 4) == (size,)
        yield kind, pcapng[8 : size - 4]
        pcapng = pcapng[size:]


def ones_complement_sum(header: bytes) -> int:
    total = sum(struct.unpack(f"!{len(header) // 2}H", header))
    while total > 0xFFFF:
        total = (total & 0xFFFF) + (total >> 16)
    return total


def packet_of_ipv6(time_ns: int, frame: bytes) -> Packet:
    ip, udp, payload = frame[14:54], frame[54:62], frame[62:]
    assert ip[:4] == b"\x60\0\0\0" and ip[6] == socket.IPPROTO_UDP
    assert int.from_bytes(ip[4:6]) == len(frame) - 54
    source, destination, length, checksum = struct.unpack("!4H", udp)
    assert length == 8 + len(payload) and checksum
    pseudo = ip[8:40] + struct.pack("!II", length, socket.IPPROTO_UDP)
    assert ones_complement_sum(pseudo + udp + payload + bytes(len(payload) % 2)) == 0xFFFF
    hosts = str(IPv6Address(ip[8:24])), str(IPv6Address(ip[24:40]))
    assert frame[:2] == frame[6:8] == b"\x02\x00"
    return Packet(time_ns, (hosts[0], source), (hosts[1], destination), payload)


def packet_of(time_ns: int, frame: bytes) -> Packet:
    if frame[12:14] == b"\x86\xdd":
        return packet_of_ipv6(time_ns, frame)
    assert frame[12:14] == b"\x08\x00"
    ip, udp, payload = frame[14:34], frame[34:42], frame[42:]
    assert ip[0] == 0x45
    assert ip[9] == socket.IPPROTO_UDP
    assert ones_complement_sum(ip) == 0xFFFF
    assert int.from_bytes(ip[2:4]) == len(frame) - 14
    source, destination, length, checksum = struct.unpack("!4H", udp)
    assert length == 8 + len(payload)
    assert checksum == 0
    hosts = socket.inet_ntoa(ip[12:16]), socket.inet_ntoa(ip[16:20])
    assert (frame[6:12], frame[:6]) == (b"\x02\x00" + ip[12:16], b"\x02\x00" + ip[16:20])
    return Packet(time_ns, (hosts[0], source), (hosts[1], destination), payload)


def read(path: Path) -> list[Packet]:
    section, interface, *others = blocks(path.read_bytes())
    assert section == (SECTION, struct.pack("=IHHq", 0x1A2B3C4D, 1, 0, -1))
    nanoseconds = struct.pack("=HHB3xHH", 9, 1, 9, 0, 0)
    assert interface == (INTERFACE, struct.pack("=HHI", 1, 0, 0) + nanoseconds)
    packets = []
    for kind, body in others:
        number, high, low, captured, original = struct.unpack_from("=5I", body)
        assert (kind, number, captured) == (PACKET, 0, original)
        assert len(body) == 20 + (captured + 3) // 4 * 4
        packets.append(packet_of(high << 32 | low, body[20 : 20 + captured]))
    return packets


times = st.integers(0, 2**62)
hosts = st.tuples(
    st.integers(0, 2**32 - 1).map(lambda n: socket.inet_ntoa(n.to_bytes(4))), st.integers(0, 65535)
)
hosts_of_ipv6 = st.tuples(
    st.integers(0, 2**128 - 1).map(lambda n: str(IPv6Address(n))), st.integers(0, 65535)
)
captures = st.lists(
    st.builds(Packet, times, hosts, hosts, st.binary(max_size=64))
    | st.builds(Packet, times, hosts_of_ipv6, hosts_of_ipv6, st.binary(max_size=64))
)
CLIENT, SERVER = ("10.0.1.2", 50_000), ("10.0.2.2", 4433)
CLIENT6, SERVER6 = ("fd00:fec:a00:1::2", 50_000), ("fd00:fec:a00:2::2", 4433)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(captures, times)
@example([Packet(0, CLIENT, SERVER, bytes(65507))], NEW_YEAR_2000_NS)
@example([Packet(0, CLIENT6, SERVER6, b"\xff" * 65507)], NEW_YEAR_2000_NS)
@example([Packet(0, ("255.255.255.255", 65535), ("255.255.255.255", 65535), b"")], 0)
@example([Packet(0, ("255.255.255.255", 0), ("255.255.58.213", 0), b"")], 0)  # its checksum carries twice
def test_what_is_captured_can_be_read_again(
    core: ctypes.CDLL, tmp_path: Path, packets: list[Packet], epoch_ns: int
) -> None:
    path = tmp_path / "host.pcapng"
    assert write(core, path, packets, epoch_ns) == 0
    assert read(path) == [
        Packet(epoch_ns + packet.at_ns, packet.source, packet.destination, packet.payload)
        for packet in packets
    ]


def test_tcpdump_reads_it_with_virtual_times_in_nanoseconds(core: ctypes.CDLL, tmp_path: Path) -> None:
    path = tmp_path / "host.pcapng"
    there = Packet(0, CLIENT, SERVER, bytes(1472))
    back = Packet(50_000_001, SERVER, CLIENT, b"x")
    assert write(core, path, [there, back], NEW_YEAR_2000_NS) == 0
    command = ["tcpdump", "-r", "-", "-nvvtt", "--time-stamp-precision=nano"]
    with path.open("rb") as file:
        result = subprocess.run(command, stdin=file, check=True, capture_output=True, text=True)
    assert [line.split(", bad")[0] for line in result.stdout.splitlines()] == [
        "946684800.000000000 IP (tos 0x0, ttl 64, id 0, offset 0, flags [DF], proto UDP (17), length 1500)",
        "    10.0.1.2.50000 > 10.0.2.2.4433: [no cksum] UDP, length 1472",
        "946684800.050000001 IP (tos 0x0, ttl 64, id 0, offset 0, flags [DF], proto UDP (17), length 29)",
        "    10.0.2.2.4433 > 10.0.1.2.50000: [no cksum] UDP, length 1",
    ]
    assert "bad" not in result.stdout


def test_a_full_disk_is_told_at_the_end(core: ctypes.CDLL) -> None:
    one = Packet(0, CLIENT, SERVER, bytes(1472))
    for count in (0, 1, 1000):
        assert write(core, Path("/dev/full"), [one] * count) == errno.ENOSPC


def test_a_file_that_cannot_be_made_is_told_at_once(core: ctypes.CDLL, tmp_path: Path) -> None:
    missing = tmp_path / "missing" / "host.pcapng"
    assert not core.capture_open(os.fsencode(missing), ctypes.c_uint64(0))
    assert ctypes.get_errno() == errno.ENOENT


def test_a_datagram_that_ipv4_cannot_carry_is_told_at_the_end(core: ctypes.CDLL, tmp_path: Path) -> None:
    good, long = Packet(0, CLIENT, SERVER, b"good"), Packet(1, CLIENT, SERVER, bytes(65508))
    path = tmp_path / "host.pcapng"
    assert write(core, path, [good, long, good]) == errno.EMSGSIZE
    assert read(path) == [good]
