"""A real topology of any layout: here a client with two addresses, each with a link of its own."""

import json
import re
import subprocess
from collections.abc import Iterator
from functools import partial
from ipaddress import IPv4Interface

import pytest

from fecbench.topologies.layout import Cable, EmulatedLink, Layout, Port
from fecbench.topologies.link import DirectionSettings, LinkSettings
from fecbench.topologies.namespace import run_inside, run_tool
from fecbench.topologies.offloads import MERGING_OFFLOADS
from fecbench.topologies.topology import TOPOLOGIES, Topology, build


def port(node: str, peer: str, address: str) -> Port:
    interface = IPv4Interface(address)
    mac = "02:00:" + ":".join(f"{byte:02x}" for byte in interface.ip.packed)
    return Port(node, f"{node}-{peer}", interface, mac)


# client = ra, rb = r2 - server: the link "a" is behind ra, "b" behind rb.
TWO_PATHS = Layout(
    hosts=("client", "server"),
    routers=("ra", "rb", "r2"),
    cables=(
        Cable(port("client", "ra", "10.0.1.2/24"), port("ra", "client", "10.0.1.1/24")),
        Cable(port("client", "rb", "10.0.2.2/24"), port("rb", "client", "10.0.2.1/24")),
        Cable(port("server", "r2", "10.0.3.2/24"), port("r2", "server", "10.0.3.1/24")),
    ),
    links=(
        EmulatedLink("a", port("ra", "r2", "10.1.1.1/24"), port("r2", "ra", "10.1.1.2/24")),
        EmulatedLink("b", port("rb", "r2", "10.1.2.1/24"), port("r2", "rb", "10.1.2.2/24")),
    ),
    routes={
        "client": (("default", "10.0.1.1"),),
        "ra": (("10.0.3.0/24", "10.1.1.2"),),
        "rb": (("10.0.3.0/24", "10.1.2.2"),),
        "r2": (("10.0.1.0/24", "10.1.1.1"), ("10.0.2.0/24", "10.1.2.1")),
        "server": (("default", "10.0.3.1"),),
    },
    rules={"client": {"10.0.2.2": (("default", "10.0.2.1"),)}},
    pairs=(("client", "server"),),
)

LINKS = {
    "a": LinkSettings(up=DirectionSettings(10, 2), down=DirectionSettings(20, 6)),
    "b": LinkSettings.symmetric(5, 15),
}


@pytest.fixture
def two_paths(monkeypatch: pytest.MonkeyPatch) -> Iterator[Topology]:
    monkeypatch.setitem(TOPOLOGIES, "two-paths", TWO_PATHS)
    with build("two-paths", LINKS, late_bounds_us={"a": 1234}) as topology:
        yield topology


def ping(topology: Topology, source: str, count: int) -> float:
    """The shortest round trip from an address of the client, in ms. A frame has 1000 bytes."""
    command = f"ping -q -I {source} -c {count} -i 0.01 -s 958 {topology.server.address}"
    process = topology.client.popen(command.split(), stdout=subprocess.PIPE, text=True)
    output, _ = process.communicate(timeout=30)
    assert f"{count} received" in output
    return float(re.findall(r"[\d.]+", output.split("rtt")[1])[0])


@pytest.mark.root
def test_packets_from_each_address_of_a_host_take_the_link_of_that_address(two_paths: Topology) -> None:
    client, server = two_paths.client, two_paths.server
    assert client.addresses == ("10.0.1.2", "10.0.2.2")
    assert client.address == "10.0.1.2"
    assert server.addresses == ("10.0.3.2",)
    rtt_ms = {"a": ping(two_paths, "10.0.1.2", 10), "b": ping(two_paths, "10.0.2.2", 30)}
    received = [client.received_bytes(), server.received_bytes()]
    carried = {name: two_paths.carried_bytes(name, "down") for name in LINKS}
    reports = two_paths.finish()
    for name, frames in (("a", 10), ("b", 30)):
        directions = reports[name].directions.values()
        assert [(report.frames_in, report.frames_out) for report in directions] == [(frames, frames)] * 2
        assert reports[name].conserved
        assert LINKS[name].rtt_ms <= rtt_ms[name] < LINKS[name].rtt_ms + 8
    assert carried == {"a": 10_000, "b": 30_000}
    assert received == [40_000, 40_000]


def assert_as_the_contract_wants(layout: Layout, node: str, netns_path: str) -> None:
    def output(*command: str) -> str:
        return run_inside(netns_path, partial(run_tool, list(command)))

    interfaces = {link["ifname"]: link for link in json.loads(output("ip", "-j", "-d", "link"))}
    del interfaces["lo"]
    assert set(interfaces) == set(layout.interfaces(node))
    for name, interface in interfaces.items():
        assert interface["mtu"] == 1500
        assert {"UP", "LOWER_UP"} <= set(interface["flags"])
        features = output("ethtool", "-k", name)
        # ethtool has names of its own for the two oldest ones
        features = features.replace("generic-receive-offload", "rx-gro")
        features = features.replace("generic-segmentation-offload", "tx-generic-segmentation")
        states = dict(re.findall(r"^\s*([\w-]+): (on|off)", features, re.MULTILINE))
        assert {states.get(offload, "off") for offload in MERGING_OFFLOADS} == {"off"}
    neighbours = json.loads(output("ip", "-j", "neighbour"))
    assert {neighbour["dst"] for neighbour in neighbours} == {
        str(peer.address.ip) for _, peer in layout.ports(node)
    }
    assert all(neighbour["state"] == ["PERMANENT"] for neighbour in neighbours)
    assert json.loads(output("ip", "-j", "-6", "address")) == []


def test_all_ports_have_addresses_of_their_own() -> None:
    for name, layout in TOPOLOGIES.items():
        ports = [port for node in layout.nodes for port, _ in layout.ports(node)]
        for values in ([port.address for port in ports], [port.mac for port in ports]):
            assert len(set(values)) == len(values) == 2 * (len(layout.cables) + len(layout.links)), name


@pytest.mark.root
@pytest.mark.parametrize("name", ["single-path", "multipath"])
def test_links_and_interfaces_are_as_the_contract_wants_them(name: str) -> None:
    layout = TOPOLOGIES[name]
    links = {
        link.name: LinkSettings(DirectionSettings(10 + number, 2), DirectionSettings(20, 6 + number))
        for number, link in enumerate(layout.links)
    }
    last = layout.links[-1].name
    with build(name, links, late_bounds_us={last: 1234}) as topology:
        for node in layout.nodes:
            assert_as_the_contract_wants(layout, node, topology._network.netns_path(node))
        reports = topology.finish()
    assert set(reports) == set(links)
    for link, settings in links.items():
        configuration = reports[link].configuration
        assert configuration.up.rate_bps == settings.up.rate_bps
        assert configuration.down.delay_ns == settings.down.delay_ns
        assert reports[link].late_bound_us == (1234 if link == last else 1000)
