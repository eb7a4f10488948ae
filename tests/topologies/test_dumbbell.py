"""dumbbell, for real: two pairs that share a link in both directions."""

import re
import subprocess

import pytest

from fecbench.topologies.link import DIRECTIONS, LinkSettings
from fecbench.topologies.topology import TOPOLOGIES, Pair, Topology, build

PINGS = 30
# Of 1000 bytes each.
PING = ["ping", "-q", "-c", str(PINGS), "-i", "0.01", "-s", "958"]


def ping(pair: Pair, *options: str) -> "subprocess.Popen[str]":
    return pair.client.popen([*PING, *options, pair.server.address], stdout=subprocess.PIPE, text=True)


def output(process: "subprocess.Popen[str]") -> str:
    text, _ = process.communicate(timeout=60)
    return text


def dumbbell(**settings: float) -> Topology:
    return build("dumbbell", {"internet": LinkSettings.symmetric(**settings)})  # type: ignore[arg-type]


@pytest.mark.parametrize(("name", "pairs"), [("dumbbell", 2), ("dumbbell-5", 5)])
def test_all_nodes_have_addresses_and_names_of_their_own(name: str, pairs: int) -> None:
    layout = TOPOLOGIES[name]
    ports = [port for node in layout.nodes for port, _ in layout.ports(node)]
    for values in ([port.address for port in ports], [port.mac for port in ports]):
        assert len(set(values)) == len(values) == 4 * pairs + 2
    assert [host for pair in layout.pairs for host in pair] == list(layout.hosts)
    assert (len(layout.pairs), len(layout.links)) == (pairs, 1)


@pytest.mark.root
def test_each_client_reaches_its_server_over_the_one_link() -> None:
    with dumbbell(bandwidth_mbps=10, owd_ms=10) as topology:
        summaries = [output(ping(pair)) for pair in topology.pairs]
        received = [host.received_bytes() for pair in topology.pairs for host in (pair.client, pair.server)]
        carried = [topology.carried_bytes("internet", direction) for direction in DIRECTIONS]
        report = topology.finish()["internet"]
    for summary in summaries:
        assert f"{PINGS} received" in summary
        assert 20 <= float(re.findall(r"[\d.]+", summary.split("rtt")[1])[0]) < 22
    assert report.conserved
    assert {direction.frames_in for direction in report.directions.values()} == {2 * PINGS}
    assert received == [1000 * PINGS] * 4
    assert carried == [2000 * PINGS] * 2
    assert carried == [report.directions[direction].bytes_out for direction in DIRECTIONS]


@pytest.mark.root
def test_the_pairs_share_the_bandwidth_and_the_queue_of_the_link() -> None:
    """A queue that holds all pings of one pair is too short for two.

    All pings of a pair are sent at once and take 2.4 s to leave, so the other pair has that long to start.
    """
    with dumbbell(bandwidth_mbps=0.1, owd_ms=1, queue_packets=PINGS) as topology:
        alone = output(ping(topology.pairs[0], "-l", str(PINGS)))
        together = [ping(pair, "-l", str(PINGS)) for pair in topology.pairs]
        received = [int(re.findall(r"(\d+) received", output(process))[0]) for process in together]
        report = topology.finish()["internet"]
    assert f"{PINGS} received" in alone
    assert report.conserved
    dropped = report.directions["up"].queue_dropped
    assert dropped > 0
    assert sum(received) == 2 * PINGS - dropped
