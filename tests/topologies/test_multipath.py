"""multipath, for real: each address of the client has a link of its own to the server's one address."""

import re
import subprocess

import pytest

from fecbench.topologies.link import DIRECTIONS, LinkSettings
from fecbench.topologies.multipath import multipath
from fecbench.topologies.topology import TOPOLOGIES, build


def test_a_path_is_an_address_of_the_client_and_a_link() -> None:
    for paths in (1, 2, 3, 9):
        layout = multipath(paths)
        assert [link.name for link in layout.links] == [f"path{number}" for number in range(1, paths + 1)], (
            paths
        )
        assert len(layout.addresses("client")) == len(layout.rules["client"]) == paths, paths
        assert len(layout.addresses("server")) == 1, paths
        ports = [port for node in layout.nodes for port, _ in layout.ports(node)]
        for values in ([port.address for port in ports], [port.mac for port in ports]):
            assert len(set(values)) == len(values) == 4 * paths + 2, paths


@pytest.mark.root
@pytest.mark.parametrize("name", ["multipath", "multipath-3"])
def test_packets_from_each_address_take_its_link_both_ways(name: str) -> None:
    delays_ms = {link.name: 4.0 + 12 * number for number, link in enumerate(TOPOLOGIES[name].links)}
    with build(name, {link: LinkSettings.symmetric(10, owd) for link, owd in delays_ms.items()}) as topology:
        shortest_ms = {}
        for number, (link, address) in enumerate(zip(delays_ms, topology.client.addresses, strict=True)):
            command = f"ping -q -I {address} -c {5 + number} -i 0.01 {topology.server.address}"
            process = topology.client.popen(command.split(), stdout=subprocess.PIPE, text=True)
            output, _ = process.communicate(timeout=60)
            shortest_ms[link] = float(re.findall(r"[\d.]+", output.split("rtt")[1])[0])
        reports = topology.finish()
    for number, (link, owd_ms) in enumerate(delays_ms.items()):
        assert 2 * owd_ms < shortest_ms[link] < 2 * owd_ms + 12
        for direction in DIRECTIONS:
            report = reports[link].directions[direction]
            assert (report.frames_in, report.frames_out, report.conserved) == (5 + number, 5 + number, True)
