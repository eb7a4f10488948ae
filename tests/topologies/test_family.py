"""Networks of IPv6: the same as those of IPv4, with no frame on them that no host sent."""

import re
import subprocess
import time

import pytest

from fecbench.topologies.family import FAMILIES
from fecbench.topologies.link import DIRECTIONS, DirectionSettings, LinkSettings, TopologyError
from fecbench.topologies.topology import TOPOLOGIES, build, has_relay, layout_of

LATE_S = 3.0
"""Routers, hosts and the kernel report groups within two intervals of a second."""


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("name", TOPOLOGIES)
def test_each_hop_is_the_other_end_of_a_port_and_each_address_stands_once(name: str, family: str) -> None:
    layout = layout_of(name, "ipv6" if family == "ipv6" else "ipv4")
    ports = [(own, peer) for node in layout.nodes for own, peer in layout.ports(node)]
    assert len({own.address.ip for own, _ in ports}) == len(ports)
    assert {own.address.version for own, _ in ports} == {6 if family == "ipv6" else 4}
    assert all(own.address.network == peer.address.network for own, peer in ports)
    for node in layout.nodes:
        neighbours = {str(peer.address.ip) for _, peer in layout.ports(node)}
        tables = [layout.routes.get(node, ()), *layout.rules.get(node, {}).values()]
        assert {hop for routes in tables for _, hop in routes} <= neighbours
        assert set(layout.rules.get(node, {})) <= set(layout.addresses(node))


def test_another_family_is_refused() -> None:
    links = {"internet": LinkSettings.symmetric(10, 5)}
    with pytest.raises(TopologyError, match="family = 'ipx': must be ipv4 or ipv6"):
        build("single-path", links, family="ipx")  # type: ignore[arg-type]


@pytest.mark.root
@pytest.mark.parametrize("name", [name for name in TOPOLOGIES if not has_relay(name)])
def test_over_ipv6_packets_take_the_links_of_their_address_and_no_others_are_there(name: str) -> None:
    delays_ms = {link.name: 4.0 + 12 * number for number, link in enumerate(TOPOLOGIES[name].links)}
    settings = {link: LinkSettings.symmetric(10, owd_ms) for link, owd_ms in delays_ms.items()}
    with build(name, settings, family="ipv6") as topology:
        topology.start()
        time.sleep(LATE_S)
        shortest_ms = []
        for number, address in enumerate(topology.client.addresses):
            command = f"ping -6 -q -I {address} -c {5 + number} -i 0.01 {topology.server.address}"
            process = topology.client.popen(command.split(), stdout=subprocess.PIPE, text=True)
            output, _ = process.communicate(timeout=60)
            shortest_ms.append(float(re.findall(r"[\d.]+", output.split("rtt")[1])[0]))
        reports, discarded = topology.finish(), +topology.discarded()
    assert not discarded
    for number, (link, owd_ms) in enumerate(delays_ms.items()):
        assert 2 * owd_ms < shortest_ms[number] < 2 * owd_ms + 12
        for direction in DIRECTIONS:
            report = reports[link].directions[direction]
            assert (report.frames_in, report.frames_out, report.conserved) == (5 + number, 5 + number, True)


@pytest.mark.root
def test_an_outage_counts_from_the_client_s_first_frame_of_ipv6() -> None:
    """The second client's frames, which come before, do not begin it."""
    out = LinkSettings(up=DirectionSettings(10, 2, outage_s=(0.0, 0.5)), down=DirectionSettings(10, 2))
    with build("dumbbell", {"internet": out}, family="ipv6") as topology:
        topology.start()
        for pair, answered in ((topology.pairs[1], True), (topology.pairs[0], False)):
            command = f"ping -6 -q -c 2 -i 0.1 -W 0.2 {pair.server.address}"
            process = pair.client.popen(command.split(), stdout=subprocess.DEVNULL)
            assert (process.wait(60) == 0) == answered
        report = topology.finish()["internet"].directions["up"]
    assert (report.frames_in, report.outage_dropped) == (4, 2)
