"""A link that tells senders of its MTU: their kernels hear it, over IPv4 and IPv6."""

import errno
import socket
import subprocess
from contextlib import suppress
from functools import partial

import pytest

from fecbench.topologies.family import Family
from fecbench.topologies.link import DirectionSettings, LinkSettings
from fecbench.topologies.namespace import run_inside
from fecbench.topologies.topology import Topology, build
from tests.waiting import wait_until

pytestmark = pytest.mark.root

MTU = 1380
IP_BYTES: dict[Family, int] = {"ipv4": 20, "ipv6": 40}
IP_MTU_DISCOVER, IP_PMTUDISC_DONT, IP_PMTUDISC_DO = 10, 0, 2
OPTIONS: dict[Family, tuple[int, int, int]] = {
    "ipv4": (socket.IPPROTO_IP, IP_MTU_DISCOVER, 14),
    "ipv6": (socket.IPPROTO_IPV6, 23, 24),
}
"""The level of options, that of discovery, and that of the MTU that the kernel knows."""


def network(family: Family, *, icmp: bool) -> Topology:
    own = DirectionSettings(100, 1, queue_packets=100, mtu_bytes=MTU, mtu_icmp=icmp)
    return build("single-path", {"internet": LinkSettings(own, own)}, family=family)


def datagrams(topology: Topology, kind: socket.AddressFamily) -> socket.socket:
    """Return a socket of the client."""
    return run_inside(f"/proc/{topology.client.pid}/ns/net", partial(socket.socket, kind, socket.SOCK_DGRAM))


def ping(topology: Topology, ip_bytes: int, family: Family) -> str:
    """Return the words of ping about one echo request of so many bytes of IP."""
    payload = ip_bytes - IP_BYTES[family] - 8
    command = ["ping", "-n", "-M", "do", "-c", "1", "-W", "1", "-s", str(payload), topology.server.address]
    process = topology.client.popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    answer, _ = process.communicate(timeout=30)
    return str(answer)


@pytest.mark.parametrize("family", ["ipv4", "ipv6"])
def test_the_sender_of_a_packet_that_is_too_long_is_told_the_mtu(family: Family) -> None:
    with network(family, icmp=True) as topology:
        assert "1 received" in ping(topology, MTU, family)
        too_long = ping(topology, MTU + 1, family)
        assert f"mtu={MTU}" in too_long.replace(" ", "")
        report = topology.finish()["internet"]
    up, down = report.directions["up"], report.directions["down"]
    assert (up.frames_in, up.frames_out, up.oversize_dropped, up.icmp_sent) == (2, 1, 1, 1)
    assert (down.frames_in, down.frames_out, down.icmp_sent) == (1, 1, 0)
    assert report.conserved


@pytest.mark.parametrize("family", ["ipv4", "ipv6"])
def test_without_mtu_icmp_nobody_is_told(family: Family) -> None:
    with network(family, icmp=False) as topology:
        assert "100% packet loss" in ping(topology, MTU + 1, family)
        up = topology.finish()["internet"].directions["up"]
    assert (up.oversize_dropped, up.icmp_sent) == (1, 0)


@pytest.mark.parametrize("family", ["ipv4", "ipv6"])
@pytest.mark.parametrize("payload_bytes", [MTU, 1452])
def test_a_socket_that_minds_the_mtu_is_refused_the_next_datagram(family: Family, payload_bytes: int) -> None:
    """An answer does not quote all of 1452 bytes."""
    kind = socket.AF_INET if family == "ipv4" else socket.AF_INET6
    level, discover, mtu = OPTIONS[family]
    with network(family, icmp=True) as topology, datagrams(topology, kind) as sender:
        sender.setsockopt(level, discover, IP_PMTUDISC_DO)

        def mtu_of_route() -> int:
            # One to which the answer comes within send() tells of the route before, until it looks again.
            sender.connect((topology.server.address, 4433))
            return sender.getsockopt(level, mtu)

        def is_minded_in_time() -> bool:
            with suppress(AssertionError):
                wait_until(lambda: mtu_of_route() == MTU, "the kernel minds the MTU", limit_s=20)
                return True
            with suppress(OSError):  # the answer came just now
                sender.send(bytes(payload_bytes))
            return False

        assert mtu_of_route() == 1500
        sender.send(bytes(payload_bytes))
        # The kernel forgets what it knows of a route when routes change: then another datagram is answered.
        wait_until(is_minded_in_time, "the kernel minds the MTU")
        sender.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)  # what the ICMP has left
        sender.send(bytes(MTU - IP_BYTES[family] - 8))
        with pytest.raises(OSError) as refusal:
            sender.send(bytes(MTU - IP_BYTES[family] - 7))
        assert refusal.value.errno == errno.EMSGSIZE


def test_a_packet_that_may_be_fragmented_is_dropped_and_nobody_is_told() -> None:
    with network("ipv4", icmp=True) as topology, datagrams(topology, socket.AF_INET) as sender:
        sender.setsockopt(socket.IPPROTO_IP, IP_MTU_DISCOVER, IP_PMTUDISC_DONT)
        sender.sendto(bytes(1400), (topology.server.address, 4433))
        up = topology.finish()["internet"].directions["up"]
    assert (up.oversize_dropped, up.icmp_sent) == (1, 0)
