"""single-path, for real: packets from end to end, and nothing left behind, however it ends."""

import contextlib
import json
import os
import re
import signal
import socket
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from fecbench.checkout import REPOSITORY
from fecbench.topologies.layout import Port
from fecbench.topologies.link import LinkEnd, LinkError, LinkSettings, TopologyError
from fecbench.topologies.namespace import run_inside, run_tool
from fecbench.topologies.single_path import SINGLE_PATH
from fecbench.topologies.topology import Host, Topology, build
from tests.waiting import wait_until

SETTINGS = {"internet": LinkSettings.symmetric(10, 20)}
UDP_SEGMENT = 103
SO_RCVBUFFORCE = 33

root = pytest.mark.root


def single_path(**settings: Any) -> Topology:
    return build("single-path", {"internet": LinkSettings.symmetric(**settings)} if settings else SETTINGS)


def in_netns(path: str, *command: str) -> str:
    return run_inside(path, partial(run_tool, list(command)))


def udp_socket(host: Host) -> socket.socket:
    netns_path = f"/proc/{host.pid}/ns/net"
    opened = run_inside(netns_path, partial(socket.socket, socket.AF_INET, socket.SOCK_DGRAM))
    opened.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 8 << 20)
    return opened


def output(process: "subprocess.Popen[str]") -> str:
    text, _ = process.communicate(timeout=60)
    assert process.returncode == 0, text
    return text


def namespaces_of(topology: Topology) -> list[str]:
    ends = [f"/proc/{host.pid}/ns/net" for host in (topology.client, topology.server)]
    return ends + [exit_.netns_path for exit_ in topology.exits.values()]


def identity(netns_path: str) -> int:
    return Path(netns_path).stat().st_ino


@root
def test_a_ping_takes_twice_the_delay() -> None:
    with single_path() as topology:
        ping = ["ping", "-q", "-c", "40", "-i", "0.01", topology.server.address]
        summary = output(topology.client.popen(ping, stdout=subprocess.PIPE, text=True))
        report = topology.finish()["internet"]
    minimum, average, maximum = (float(value) for value in re.findall(r"[\d.]+", summary.split("rtt")[1])[:3])
    print(f"\nping over 2 x 20 ms: min {minimum}, avg {average}, max {maximum} ms")
    assert "40 received" in summary
    assert 40 <= minimum < 42
    assert report.conserved
    assert {direction.frames_in for direction in report.directions.values()} == {40}  # no ARP, no IPv6


@root
def test_a_sender_with_segmentation_offload_sends_frames_of_the_mtu() -> None:
    """20 sends of ten datagrams each are 200 frames on the link."""
    with single_path(bandwidth_mbps=1000, owd_ms=1, queue_packets=1000) as topology:
        server, client = udp_socket(topology.server), udp_socket(topology.client)
        with server, client:
            server.bind((topology.server.address, 4433))
            server.settimeout(30)
            client.setsockopt(socket.IPPROTO_UDP, UDP_SEGMENT, 1200)
            for _ in range(20):
                client.sendto(os.urandom(12_000), (topology.server.address, 4433))
            assert {len(server.recv(65536)) for _ in range(200)} == {1200}
        up = topology.finish()["internet"].directions["up"]
    assert (up.frames_in, up.frames_out) == (200, 200)
    assert up.bytes_in == 200 * 1242
    assert up.oversize_dropped == 0


@root
def test_the_exits_are_where_frames_leave_the_link() -> None:
    with (
        single_path() as topology,
        udp_socket(topology.client) as client,
        udp_socket(topology.server) as server,
    ):
        server.bind((topology.server.address, 4433))
        server.settimeout(30)
        client.settimeout(30)
        for _ in range(3):
            client.sendto(b"up", (topology.server.address, 4433))
        for _ in range(3):
            _, sender = server.recvfrom(100)
        server.sendto(b"down", sender)
        assert client.recv(100) == b"down"
        reports = topology.finish()["internet"].directions
        received = {}
        for place, exit_ in topology.exits.items():
            output = in_netns(exit_.netns_path, "ip", "-j", "-s", "link", "show", exit_.interface)
            received[place] = json.loads(output)[0]["stats64"]["rx"]["packets"]
    assert received == {("internet", "up"): 3, ("internet", "down"): 1}
    assert {direction: report.frames_out for direction, report in reports.items()} == {"up": 3, "down": 1}


@root
def test_nothing_of_the_machine_is_changed(monkeypatch: pytest.MonkeyPatch) -> None:
    import mininet.net

    monkeypatch.setattr(mininet.net.Mininet, "inited", False)
    monkeypatch.setattr(mininet.net, "fixLimits", lambda: pytest.fail("Mininet overwrites sysctls"))

    def state() -> tuple[list[str], list[str]]:
        links = [link["ifname"] for link in json.loads(run_tool(["ip", "-j", "link"]))]
        names = ("tcp_rmem", "tcp_wmem", "ip_forward", "tcp_no_metrics_save")
        return links, [Path(f"/proc/sys/net/ipv4/{name}").read_text() for name in names]

    before = state()
    with single_path():
        assert state() == before
    assert state() == before


@root
def test_the_first_packet_after_the_build_arrives() -> None:
    """Several times, since interfaces that were not ready yet lost it in one build of ten."""
    for _ in range(5):
        with (
            single_path(bandwidth_mbps=100, owd_ms=0) as topology,
            udp_socket(topology.server) as server,
            udp_socket(topology.client) as client,
        ):
            server.bind((topology.server.address, 4433))
            server.settimeout(30)
            client.sendto(b"first", (topology.server.address, 4433))
            assert server.recv(100) == b"first"


@root
def test_two_topologies_at_once_do_not_meet() -> None:
    with single_path(bandwidth_mbps=10, owd_ms=5) as short, single_path(bandwidth_mbps=10, owd_ms=50) as long:
        pings = []
        for topology in (short, long):
            ping = ["ping", "-q", "-c", "5", "-i", "0.01", topology.server.address]
            pings.append(topology.client.popen(ping, stdout=subprocess.PIPE, text=True))
        summaries = [output(ping) for ping in pings]
        frames = [topology.finish()["internet"].directions["up"].frames_in for topology in (short, long)]
    minima = [float(summary.split("rtt")[1].split("=")[1].split("/")[0]) for summary in summaries]
    assert frames == [5, 5]
    assert 10 <= minima[0] < 20
    assert 100 <= minima[1] < 110


@root
def test_close_ends_every_process_and_may_be_called_again() -> None:
    topology = single_path()
    sleeper = topology.client.popen(["sleep", "1000"])
    paths = namespaces_of(topology)
    identities = {identity(path) for path in paths}
    topology.close()
    topology.close()
    assert sleeper.returncode == -signal.SIGKILL
    assert not identities & namespaces_in_use()


@root
def test_finish_may_be_called_again() -> None:
    with single_path() as topology:
        assert topology.finish() == topology.finish()


@root
def test_a_topology_whose_link_cannot_be_made_leaves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    namespaces: set[int] = set()

    def nowhere(topology: Topology, port: Port) -> LinkEnd:
        namespaces.update(identity(topology._network.netns_path(node)) for node in SINGLE_PATH.nodes)
        return LinkEnd("/nowhere", port.interface)

    monkeypatch.setattr(Topology, "_end", nowhere)
    with pytest.raises(LinkError, match=r"^wire: cannot open /nowhere"):
        single_path()
    assert len(namespaces) == 4
    assert not namespaces & namespaces_in_use()


BUILDER = """
import subprocess, sys, time
from fecbench.topologies.link import LinkSettings
from fecbench.topologies.topology import build

topology = build("single-path", {"internet": LinkSettings.symmetric(10, 20)})
sleeper = topology.server.popen(["sleep", "1000"])
nodes = [topology._network.pid(node) for node in ("client", "r1", "r2", "server")]
print(topology._links["internet"]._process.pid, sleeper.pid, *nodes, flush=True)
time.sleep(1000)
"""


@root
def test_kill_9_of_the_builder_leaves_no_process_and_no_namespace() -> None:
    environment = os.environ | {"PYTHONPATH": str(REPOSITORY)}
    with subprocess.Popen([sys.executable, "-c", BUILDER], env=environment, stdout=-1, text=True) as builder:
        assert builder.stdout is not None
        pids = [int(pid) for pid in builder.stdout.readline().split()]
        namespaces = {identity(f"/proc/{pid}/ns/net") for pid in pids[2:]}
        assert namespaces <= namespaces_in_use()
        builder.kill()
    wait_until(lambda: not any(is_alive(pid) for pid in pids), "their ends")
    # Interfaces are in namespaces, and a namespace ends with its last process.
    wait_until(lambda: not namespaces & namespaces_in_use(), "the ends of all processes in the namespaces")


BAD: list[tuple[str, Any, Any, str]] = [
    ("dual", SETTINGS, "auto", "topology = 'dual': must be one of single-path"),
    ("single-path", {}, "auto", "link 'internet' of topology single-path has no settings"),
    (
        "single-path",
        SETTINGS | {"wan": SETTINGS["internet"]},
        "auto",
        "link 'wan' is not in topology single-path",
    ),
    ("single-path", SETTINGS, "magic", "link backend = 'magic': must be one of auto, wire, netem"),
]


def test_bad_input_is_refused_before_anything_is_made() -> None:
    for topology, links, backend, named in BAD:
        with pytest.raises(TopologyError) as refusal:
            build(topology, links, backend)
        assert str(refusal.value).startswith(named)


def test_a_lateness_bound_of_no_link_is_refused() -> None:
    with pytest.raises(TopologyError, match=r"^link 'wan' is not in topology single-path; its links are int"):
        build("single-path", SETTINGS, late_bounds_us={"wan": 1000})


def is_alive(pid: int) -> bool:
    try:
        return "State:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False


def namespaces_in_use() -> set[int]:
    """Identities of the network namespaces that this machine's processes are in."""
    identities = set()
    for process in Path("/proc").glob("[0-9]*/ns/net"):
        with contextlib.suppress(OSError):  # it has just ended, or is not ours to see
            identities.add(process.stat().st_ino)
    return identities
