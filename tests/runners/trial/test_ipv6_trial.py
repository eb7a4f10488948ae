"""Trials over IPv6: each stack transfers, losses are the oracle's, and the judge counts longer headers."""

import json
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import pytest

from fecbench.dropper import recordings
from fecbench.runners.campaign.experiment import Experiment
from fecbench.runners.engines.engine import Finished
from fecbench.runners.tasks.task import ROLES
from fecbench.runners.trial import simulation
from fecbench.topologies.link import DIRECTIONS
from fecbench.topologies.topology import layout_of
from tests.support import needs
from tests.support.designs import Table, text_of, variant, workload
from tests.support.experiments import commands_of, experiment_of_text, task_of, trial_by
from tests.support.trials import Trials

NETWORK = {**{"family": "ipv6", "bandwidth_mbps": 10, "owd_ms": 5}, "loss": {"model": "uniform", "p": 0.02}}
DOWNLOAD = workload(size_bytes=200_000)
MESSAGES = workload("messages", rate_hz=100, payload_bytes=1000, duration_s=1, delivery="datagram")
COMPETING = workload("competing", background="it", size_bytes=200_000)
ON_DEMAND = ("quinn", "quiche", "aioquic", "quic-go", "ngtcp2")
STACKS = [
    *((name, "single-path", DOWNLOAD, {}) for name in ("noq-fec", "rquic", "tcp", *ON_DEMAND)),
    ("udp", "single-path", MESSAGES, {}),
    ("noq-fec", "dumbbell", COMPETING, {}),
    *((name, "multipath", DOWNLOAD, {"paths": 2}) for name in ("noq-fec", "tcp")),
]


def experiment(folder: Path, name: str, topology: str, activity: Table, options: Table) -> Experiment:
    tables = {"constants": NETWORK, "workloads": [activity], "variants": [variant("it", name, **options)]}
    return experiment_of_text(folder, text_of("six", seed=6, topology=topology, timeout_s=20, **tables))


def captured(result: Finished) -> list[recordings.Packet]:
    """The packets of both hosts' captures."""
    assert result.folder is not None
    files = [result.folder / f"{role}.pcap" for role in ROLES]
    return [packet for file in files for packet in recordings.packets(file)]


@pytest.mark.parametrize(("name", "topology", "activity", "options"), STACKS)
class TestStack:
    pytestmark = needs.TRIALS

    def test_a_stack_transfers_over_ipv6(
        self, name: str, topology: str, activity: Table, options: Table, trials: Trials, tmp_path: Path
    ) -> None:
        trial_task = task_of(experiment(tmp_path, name, topology, activity, options), capture=True)
        finished, judgement = trial_by(name, trials, trial_task)
        assert (judgement.state, judgement.reason) == ("ok", "")  # the judge has held verdicts to the oracle
        for directions in finished.outcome.droppers.values():
            for direction in DIRECTIONS:
                counters = directions[direction].counters
                assert counters.seen > 10 * counters.other  # an endpoint that has ended is unreachable
        layout = layout_of(topology, "ipv6")
        addresses = {address for host in layout.pairs[0] for address in layout.addresses(host)}
        ends = {
            end.partition(":")[0]
            for packet in captured(finished)
            for end in (packet.source, packet.destination)
        }
        assert ends == {ip_address(address).packed.hex() for address in addresses}


@pytest.mark.parametrize(
    ("name", "topology", "activity", "options"),
    [
        ("noq-fec", "single-path", DOWNLOAD, {}),
        ("noq-fec", "dumbbell", COMPETING, {}),
        ("noq-fec", "multipath", DOWNLOAD, {"paths": 2}),
        ("rquic", "single-path", DOWNLOAD, {}),
    ],
)
def test_trials_in_virtual_time_are_over_ipv6_too(
    name: str, topology: str, activity: Table, options: Table, tmp_path: Path, fecbench_here: Any
) -> None:
    commands_of(name)
    experiment(tmp_path, name, topology, activity, options)
    database = tmp_path / "six.sqlite"
    run = fecbench_here("run", tmp_path / "design.toml", "--engine", "virtual", "--db", database)
    assert run.returncode == 0, run.stdout
    replayed = fecbench_here("replay", 1, "--db", database, "--output", tmp_path / "replay")
    assert replayed.returncode == 0, replayed.stdout


def test_a_simulator_hears_of_ipv6_by_the_text_of_its_lanes_and_by_addresses(tmp_path: Path) -> None:
    six = task_of(experiment(tmp_path, "noq-fec", "multipath", DOWNLOAD, {"paths": 2}))
    place = simulation.Place(certificates=tmp_path, logs=tmp_path)
    document = json.loads(simulation.line_of(six, 1, place))
    for link in document["links"].values():
        assert all("\nfamily ipv6\n" in text for text in link.values())
    assert document["pairs"][0]["client"]["local_addresses"] == ["fd00:fec:a00:1::2", "fd00:fec:a00:2::2"]
    four = six.model_copy(update={"family": "ipv4"})
    assert b"family" not in simulation.line_of(four, 1, place)
