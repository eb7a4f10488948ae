"""Trials over a relay: each hop has losses, counters and verdicts of its own."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from fecbench import designs
from fecbench.dropper import model as dropper_model
from fecbench.runners.campaign.record import record_of
from fecbench.runners.engines.engine import Finished
from fecbench.runners.implementations.finding import ours
from fecbench.runners.tasks.task import EndpointTask, Task
from fecbench.runners.trial.judge import Judgement, judge
from fecbench.topologies.link import LinkSettings
from tests.support import needs, tasks
from tests.support.experiments import experiment_of_text, task_of, trial_by
from tests.support.scripts import HEAD, SERVE, scripted
from tests.support.trials import Trials

pytestmark = needs.TRIALS

SEEDS = {"access": {"up": 1, "down": 2}, "backbone": {"up": 3, "down": 4}}
P = {"access": 0.1, "backbone": 0.3}

# A client that sends until 40 answers have come.
CLIENT = f"""{HEAD}
got = 0
socket_.settimeout(0.01)
while got < 40:
    socket_.sendto(bytes(500), server)
    try:
        socket_.recv(2000)
    except TimeoutError:
        continue
    got += 1
done(packets_received=got)
"""
# A server that answers with what came, and a relay between it and the last client.
SERVER = f"""{SERVE}
upstream = task.get("upstream")
assert (task["role"] == "relay") == (upstream is not None)
assert "certificate" in task and "series" not in task
server = upstream and (upstream["address"], upstream["port"])
if upstream:
    assert (task["options"]["scheme"], upstream["options"]["scheme"]) == ("rlc", "none")
    counts |= {{"access.packets_sent": 0, "backbone.packets_sent": 0}}
client = None
while True:
    datagram, sender = socket_.recvfrom(2000)
    if upstream and sender != server:
        client = sender
    receiver = sender if not upstream else client if sender == server else server
    socket_.sendto(datagram, receiver)
    if upstream:
        counts["backbone.packets_sent" if receiver == server else "access.packets_sent"] += 1
"""


def task() -> Task:
    links = {
        name: tasks.link(LinkSettings.symmetric(10, 2), {"model": "uniform", "p": p}) for name, p in P.items()
    }
    lazy: Mapping[str, Any] = {"owes_repair": False, "owes_source": False}
    ends = {
        role: EndpointTask(implementation="script", options={"scheme": scheme}, fec=scheme != "none", **lazy)
        for role, scheme in (("client", "rlc"), ("server", "none"))
    }
    seeds = tasks.seeds(3, SEEDS)
    return tasks.task(links, tasks.pair(**ends), topology="relay", seeds=seeds, capture=True)


@pytest.fixture
def ran(trials: Trials) -> tuple[Finished, Judgement]:
    return trials.run(task(), scripted(CLIENT, SERVER))


def test_each_hop_is_judged_by_its_own_link_and_the_reports_of_its_own_ends(
    ran: tuple[Finished, Judgement],
) -> None:
    finished, judgement = ran
    assert (judgement.state, judgement.reason) == ("ok", "")
    outcome = finished.outcome
    assert list(outcome.endpoints) == ["client", "relay", "server"]
    for link, seeds in SEEDS.items():
        down = outcome.droppers[link]["down"]
        predicted = dropper_model.verdicts(dropper_model.Uniform(P[link]), seeds["down"], down.packets)
        assert down.counters.dropped == predicted.sum() > 0
        assert outcome.droppers[link]["up"].packets >= 40
    record = record_of(finished, judgement)
    assert set(record.dropper) == {f"{link}/{way}" for link in SEEDS for way in ("up", "down")}
    assert record.exits == {"client": 0, "relay": 0, "server": 0}
    assert record.metrics["relay"]["access.packets_sent"] < record.metrics["relay"]["backbone.packets_sent"]

    relay = outcome.endpoints["relay"].metrics
    assert relay is not None
    for metric, why in (
        ("access.packets_sent", "frames came to the links down"),
        ("backbone.packets_sent", "frames came to the links up"),
        ("backbone.repair_sent", "relay: FEC is off, but repair_sent = 1"),
    ):
        before = relay.pop(metric, None)
        relay[metric] = 1 if metric.endswith("repair_sent") else 1e6
        boasting = judge(finished.task, outcome)
        assert boasting.state == "failed"
        assert why in boasting.reason
        relay.pop(metric)
        relay |= {} if before is None else {metric: before}
    relay["access.repair_sent"] = 1  # there, FEC is on
    assert judge(finished.task, outcome).state == "ok"

    second = outcome.droppers["backbone"]["down"]
    second.bitmap = bytes([second.bitmap[0] ^ 1, *second.bitmap[1:]])
    wrong = judge(finished.task, outcome)
    assert wrong.state == "invalid"
    assert wrong.reason.startswith("backbone/down: 1 of ")


def broadcast(folder: Path) -> Task:
    """The task of two seconds of the broadcast of live-relay, with FEC on both hops, on any machine."""
    text = designs.catalogue()["live-relay"].read_text()
    shorter = experiment_of_text(folder, text.replace("duration_s = 20", "duration_s = 2"))
    return task_of(shorter, "safe on both", point=2)


@pytest.mark.skipif(bool(ours().find("moq", "tests").missing_programs()), reason="make build-all")
def test_moq_relays_a_broadcast_over_emulated_links_no_sooner_than_they_carry_it(
    trials: Trials, tmp_path: Path
) -> None:
    finished, judgement = trial_by("moq", trials, broadcast(tmp_path))
    assert (judgement.state, judgement.reason) == ("ok", "")
    relay = finished.outcome.endpoints["relay"].metrics
    assert relay is not None
    assert relay["access.repair_sent"] > 0 < relay["backbone.repair_received"]
    delays_ms = sum(link.settings.down.owd_ms for link in finished.task.links.values())
    assert judgement.metrics["live"]["audio_latency_p50_ms"] > delays_ms
