"""relay, for real: the client reaches the relay over one link, and the relay the server over the other."""

import itertools
import subprocess

import pytest

from fecbench.topologies.link import DIRECTIONS, LinkSettings
from fecbench.topologies.topology import TOPOLOGIES, Host, build, has_relay

FRAMES = {"access": 4, "backbone": 7}


def test_one_topology_has_a_relay() -> None:
    assert [name for name in TOPOLOGIES if has_relay(name)] == ["relay"]
    assert not has_relay("field")


@pytest.mark.root
@pytest.mark.parametrize("family", ["ipv4", "ipv6"])
def test_what_a_neighbour_of_the_relay_sends_takes_the_link_between_them_alone(family: str) -> None:
    links = {link: LinkSettings.symmetric(10, 3) for link in FRAMES}
    with build("relay", links, family=family) as topology:  # type: ignore[arg-type]
        assert topology.relay is not None

        def ping(sender: Host, receiver: Host, count: int) -> None:
            # One at a time until each has its answer: a busy host may lose one before the link.
            command = f"ping -q -c 1 -W 5 {receiver.address}".split()
            pings = (
                sender.popen(command, stdout=subprocess.DEVNULL).wait(timeout=60) for _ in range(5 * count)
            )
            assert (
                sum(1 for _ in itertools.islice((status for status in pings if status == 0), count)) == count
            )

        ping(topology.client, topology.relay, FRAMES["access"])
        ping(topology.relay, topology.server, FRAMES["backbone"])
        reports = topology.finish()
    for link, frames in FRAMES.items():
        for direction in DIRECTIONS:
            report = reports[link].directions[direction]
            assert (report.frames_in, report.frames_out, report.conserved) == (frames, frames, True)
