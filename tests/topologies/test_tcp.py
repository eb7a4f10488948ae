"""TCP in a host of a topology, for real: congestion control by its routes, buffers, subflows."""

import socket
import subprocess
import sys
from pathlib import Path

import pytest

from fecbench.topologies import tcp
from fecbench.topologies.link import LinkSettings
from fecbench.topologies.namespace import run_inside
from fecbench.topologies.topology import Topology, build

pytestmark = pytest.mark.root

# As a user without rights: one transfer, the controller that each end got, and what ss tells of connections.
SERVER = """
import os, socket, subprocess, sys
os.setresgid(65534, 65534, 65534), os.setresuid(65534, 65534, 65534)
listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, int(sys.argv[2]))
listener.bind((sys.argv[1], 4433))
listener.listen()
print("ready", flush=True)
connection, _ = listener.accept()
print(connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, 16).strip(b"\\0").decode(), flush=True)
connection.sendall(bytes(400_000))
connection.recv(1)
print(subprocess.run(["ss", "-Htin"], capture_output=True, text=True).stdout)
"""
CLIENT = """
import os, socket, subprocess, sys
os.setresgid(65534, 65534, 65534), os.setresuid(65534, 65534, 65534)
connection = socket.socket(socket.AF_INET, socket.SOCK_STREAM, int(sys.argv[2]))
connection.connect((sys.argv[1], 4433))
print(connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, 16).strip(b"\\0").decode(), flush=True)
left = 400_000
while left:
    left -= len(connection.recv(left))
print(subprocess.run(["ss", "-Htin"], capture_output=True, text=True).stdout)
connection.sendall(b".")
connection.recv(1)
"""


def transfer(topology: Topology, protocol: int) -> dict[str, tuple[str, list[list[str]]]]:
    """Return the congestion control of each end, and ss's report of each of its connections."""
    processes = {}
    for name, host, program in (("server", topology.server, SERVER), ("client", topology.client, CLIENT)):
        command = [sys.executable, "-c", program, topology.server.address, str(protocol)]
        processes[name] = host.popen(command, stdout=subprocess.PIPE, text=True)
        if name == "server":
            assert processes[name].stdout.readline() == "ready\n"
    ends = {}
    for name, process in processes.items():
        controller, *lines = process.communicate(timeout=60)[0].splitlines()
        ends[name] = (controller, [line.split() for line in lines if "cwnd:" in line])
    return ends


def restricted() -> str:
    """A congestion control that this kernel has, and that users may not choose here; else another one than
    the machine's."""
    allowed = Path("/proc/sys/net/ipv4/tcp_allowed_congestion_control").read_text().split()
    usual = Path("/proc/sys/net/ipv4/tcp_congestion_control").read_text().strip()
    others = [name for name in tcp.controllers() if name != usual]
    return next((name for name in others if name not in allowed), others[0])


def test_connections_of_users_without_rights_have_the_controller_that_their_host_was_given() -> None:
    controller, links = restricted(), ["path1", "path2"]
    with build("multipath", {link: LinkSettings.symmetric(50, 1) for link in links}) as topology:
        for host in (topology.client, topology.server):
            topology.set_tcp(host, controller, 1)
        ends = transfer(topology, socket.IPPROTO_TCP)
    assert {end: controller_of_end for end, (controller_of_end, _) in ends.items()} == {
        "server": controller,
        "client": controller,
    }


def test_a_controller_that_the_kernel_lacks_is_not_set() -> None:
    usual = Path("/proc/sys/net/ipv4/tcp_congestion_control").read_text().strip()
    with build("single-path", {"internet": LinkSettings.symmetric(50, 1)}) as topology:
        topology.set_tcp(topology.client, "no-such-controller", 1)
        controller_of_end, _ = transfer(topology, socket.IPPROTO_TCP)["client"]
    assert controller_of_end == usual


@pytest.mark.parametrize(("name", "paths", "used"), [("multipath", 1, 1), ("multipath-3", 2, 2)])
def test_multipath_tcp_has_a_subflow_for_each_path_and_all_have_the_controller(
    name: str, paths: int, used: int
) -> None:
    controller, links = restricted(), ["path1", "path2", "path3"][: 3 if name == "multipath-3" else 2]
    with build(name, {link: LinkSettings.symmetric(10, 5) for link in links}) as topology:
        for host in (topology.client, topology.server):
            topology.set_tcp(host, controller, paths)
        ends = transfer(topology, socket.IPPROTO_MPTCP)
        reports = topology.finish()
    for controller_of_end, subflows in ends.values():
        assert controller_of_end == controller
        assert [controller in words for words in subflows] == [True] * used
    carried = [reports[link].directions["down"].frames_in > 10 for link in links]
    assert carried == [number < used for number in range(len(links))]


def test_hosts_have_buffers_and_no_memory_whatever_the_machine_has() -> None:
    with build("single-path", {"internet": LinkSettings.symmetric(50, 1)}) as topology:

        def written() -> dict[str, list[str]]:
            return {name: Path("/proc/sys", name).read_text().split() for name in tcp.TCP_SYSCTLS}

        values = run_inside(f"/proc/{topology.server.pid}/ns/net", written)
    assert values == {name: value.split() for name, value in tcp.TCP_SYSCTLS.items()}
