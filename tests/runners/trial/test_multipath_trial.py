"""Trials over two paths: each link has losses, outages, counters and verdicts of its own."""

import subprocess
from collections.abc import Callable
from typing import Any

import pytest

from fecbench.dropper import model as dropper_model
from fecbench.runners.campaign.record import record_of
from fecbench.runners.engines.engine import Finished
from fecbench.runners.tasks.task import EndpointTask, Task
from fecbench.runners.trial.judge import Judgement, judge
from fecbench.topologies.link import DIRECTIONS, LinkSettings
from tests.support import needs, tasks
from tests.support.scripts import HEAD, SERVE, scripted
from tests.support.trials import Trials

pytestmark = needs.TRIALS

# A client that sends from each of its addresses in turn until 40 answers have come to each socket that gets
# any: the first one must.
CLIENT = f"""{HEAD}
sockets = [socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in task["local_addresses"]]
selector, got, rounds = selectors.DefaultSelector(), [0] * len(sockets), 0
for number, (opened, address) in enumerate(zip(sockets, task["local_addresses"])):
    opened.bind((address, 0))
    selector.register(opened, selectors.EVENT_READ, number)
while got[0] < 40 or rounds < 60:
    rounds += 1
    for opened in sockets:
        opened.sendto(bytes(500), server)
    time.sleep(0.002)
    for key, _ in selector.select(0.002):
        key.fileobj.recv(2000)
        got[key.data] += 1
done(**{{f"path{{number + 1}}.packets_received": count for number, count in enumerate(got)}})
"""
SERVER = f"""{SERVE}
assert task["local_addresses"] == [task["address"]]
while True:
    socket_.sendto(*socket_.recvfrom(2000))
"""

SEEDS = {"path1": {"up": 1, "down": 2}, "path2": {"up": 3, "down": 4}}
P = {"path1": 0.1, "path2": 0.3}
END = EndpointTask(implementation="script", options={}, local_addresses=True)


def task(capture: bool = False, **of_path2: Any) -> Task:
    settings = {"path1": LinkSettings.symmetric(10, 2), "path2": LinkSettings.symmetric(5, 10, **of_path2)}
    links = {name: tasks.link(settings[name], {"model": "uniform", "p": p}) for name, p in P.items()}
    seeds, pair = tasks.seeds(3, SEEDS), tasks.pair(client=END, server=END)
    return tasks.task(links, pair, topology="multipath", seeds=seeds, capture=capture)


Run = Callable[..., tuple[Finished, Judgement]]


@pytest.fixture
def run(trials: Trials) -> Run:
    def run(trial_task: Task, client: str = CLIENT) -> tuple[Finished, Judgement]:
        return trials.run(trial_task, scripted(client, SERVER))

    return run


def test_each_path_has_its_own_losses_and_a_wrong_verdict_on_the_second_alone_is_invalid(run: Run) -> None:
    finished, judgement = run(task(capture=True))
    assert (judgement.state, judgement.reason) == ("ok", "")
    assert_captured(finished)
    outcome = finished.outcome
    for link, seeds in SEEDS.items():
        down = outcome.droppers[link]["down"]
        predicted = dropper_model.verdicts(dropper_model.Uniform(P[link]), seeds["down"], down.packets)
        assert down.counters.dropped == predicted.sum() > 0
        assert outcome.droppers[link]["up"].packets >= 60
    record = record_of(finished, judgement)
    assert set(record.links) == set(SEEDS)
    assert set(record.dropper) == {"path1/up", "path1/down", "path2/up", "path2/down"}
    client, up = outcome.endpoints["client"], outcome.links["path2"].directions["up"]
    assert client.metrics is not None
    client.metrics["path2.bytes_sent"] = up.bytes_in
    boasting = judge(finished.task, outcome)
    assert (boasting.state, boasting.reason.split(":")[:2]) == (
        "failed",
        ["client", f" path2.bytes_sent = {up.bytes_in}"],
    )
    second = outcome.droppers["path2"]["down"]
    second.bitmap = bytes([second.bitmap[0] ^ 1, *second.bitmap[1:]])
    wrong = judge(finished.task, outcome)
    assert wrong.state == "invalid"
    assert wrong.reason.startswith("path2/down: 1 of ")
    assert "path1" not in wrong.reason


def test_a_path_that_is_out_from_the_clients_start_on_carries_nothing_and_is_accounted_for(run: Run) -> None:
    finished, judgement = run(task(outage_s=(0, 1000)))
    assert (judgement.state, judgement.reason) == ("ok", "")
    links, client = finished.outcome.links, finished.outcome.endpoints["client"]
    up = links["path2"].directions["up"]
    assert up.frames_in == up.outage_dropped >= 60
    assert (up.frames_out, up.conserved) == (0, True)
    assert [links["path1"].directions[direction].outage_dropped for direction in DIRECTIONS] == [0, 0]
    assert client.metrics is not None
    assert client.metrics["path2.packets_received"] == 0


def test_an_outage_counts_from_the_clients_first_frame_however_long_its_program_takes_to_start(
    run: Run,
) -> None:
    """The same is true in virtual time, where a client starts at once: each path meets the outage, and then
    works."""
    slow = f"import time\ntime.sleep(0.6)\n{CLIENT}"
    finished, judgement = run(task(outage_s=(0, 0.1)), client=slow)
    assert (judgement.state, judgement.reason) == ("ok", "")
    up = finished.outcome.links["path2"].directions["up"]
    assert 0 < up.outage_dropped < up.frames_in
    assert up.frames_out + up.in_flight == up.frames_in - up.outage_dropped > up.in_flight


def assert_captured(finished: Finished) -> None:
    """The packets of every path, apart by the client's address."""
    assert finished.folder is not None
    for host in ("client", "server"):
        for address in ("10.0.1.2", "10.0.2.2"):
            command = ["tcpdump", "-n", "-r", finished.folder / f"{host}.pcap", "host", address]
            output = subprocess.run(command, capture_output=True, text=True)
            assert output.stdout.count("length 500") > 60
