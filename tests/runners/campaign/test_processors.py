"""The time that a design gives endpoints to take of a processor: it reaches trials in virtual time alone, is
kept with them, and a design that gives none has the tasks that it always had."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fecbench import designs
from fecbench.designs import Design
from fecbench.results.store.records import TrialKey
from fecbench.runners.campaign import crosscheck
from fecbench.runners.campaign.processors import DATAGRAM, HANDSHAKE, processor_task
from fecbench.runners.campaign.request import request
from fecbench.runners.implementations.finding import ours
from fecbench.runners.refusal import Refusal
from fecbench.runners.tasks.task import VIRTUAL, ProcessorTask
from tests.support.campaigns import only_campaign
from tests.support.designs import Table, one_of, variant
from tests.support.experiments import experiment_of

IMPLEMENTATIONS = ("noq-fec", "rquic")
HANDSHAKE_MS, DATAGRAM_US = 3, 500
OF_BOTH = [variant(name, name, scheme="none") for name in IMPLEMENTATIONS]
Load = Callable[..., Design]


@pytest.fixture
def load(write_design: Any, tmp_path: Path) -> Load:
    """A little design of both implementations, without losses, with these among its constants and factors."""

    def load(constants: Table, **factors: Table) -> Design:
        tables = {
            "plan": {"method": "grid"},
            "factors": factors or {"bandwidth_mbps": one_of(8, 10)},
            "constants": {"owd_ms": 5, "queue_packets": 100, **constants},
        }
        return designs.load(write_design(tmp_path, repetitions=1, **tables, variants=OF_BOTH))

    return load


def test_a_design_without_such_a_time_has_the_tasks_that_it_always_had(load: Load) -> None:
    key = TrialKey("rquic", "download-20000", 0, 0)
    documents = []
    for constants in ({}, {HANDSHAKE: 0, DATAGRAM: 0.0}):
        documents.append(experiment_of(load(constants)).task(key, VIRTUAL).document())
    assert documents[0] == documents[1]
    assert "processor" not in documents[0]


def test_every_simulator_takes_the_time_and_the_trial_keeps_it(
    load: Load, virtually: Callable[..., Path]
) -> None:
    """The linked factor changes one of the two at a time."""
    times = {"free": (0, 0), "TLS": (HANDSHAKE_MS, 0), "packets": (0, DATAGRAM_US)}
    linked = {
        name: {"bandwidth_mbps": 10, HANDSHAKE: handshake_ms, DATAGRAM: datagram_us}
        for name, (handshake_ms, datagram_us) in times.items()
    }
    database = virtually(load({}, endpoints={"linked": linked}).path)
    with only_campaign(database) as (opened, campaign):
        trials = [stored.record for stored in opened.trials(campaign.id)]
    times_by_network = {
        (trial.key.variant, campaign.points[trial.key.point]["endpoints"]): trial.metrics["client"]
        for trial in trials
    }
    for name in IMPLEMENTATIONS:
        free, tls, packets = (times_by_network[name, which] for which in ("free", "TLS", "packets"))
        assert tls["handshake_s"] >= free["handshake_s"] + HANDSHAKE_MS / 1e3, name
        assert tls["dct_s"] > free["dct_s"] + 1.5 * HANDSHAKE_MS / 1e3, name  # both sides take it
        # Of 20 kB there are 15 datagrams and more, which the server sends one after another.
        assert packets["dct_s"] >= free["dct_s"] + DATAGRAM_US / 1e6, name
    documents = {json.dumps(trial.task.get("processor")) for trial in trials}
    ns = [ProcessorTask(handshake_ns=3_000_000), ProcessorTask(datagram_ns=500_000)]
    assert documents == {"null", *(json.dumps(part.model_dump()) for part in ns)}
    assert campaign.processor_time == (
        "0 to 3 ms of a processor for each side of a handshake and 0 to 500 µs for each datagram"
    )
    assert campaign.heading == "little, virtual with time of processors"


def test_a_trial_with_such_a_time_is_replayed_as_it_was(
    load: Load, virtually: Callable[..., Path], fecbench_here: Callable[..., Any], tmp_path: Path
) -> None:
    database = virtually(load({HANDSHAKE: 1.5, DATAGRAM: 20}).path)
    replayed = fecbench_here("replay", 1, "--db", database, "--output", tmp_path / "replayed")
    assert (replayed.returncode, "as recorded" in replayed.stdout) == (0, True), replayed
    assert "today" not in replayed.stderr


def test_emulation_refuses_a_design_with_such_a_time(load: Load, fecbench_here: Callable[..., Any]) -> None:
    design = load({HANDSHAKE: 1})
    message = fecbench_here("run", design.path, "--db", "never.sqlite").refusal()
    assert f"constants.{HANDSHAKE}: reaches nobody with --engine local" in message


def test_the_emulated_sample_of_such_a_campaign_has_none_of_it(load: Load) -> None:
    design = load({HANDSHAKE: 1})
    virtual = request(design, ours(), backend=VIRTUAL)
    emulation = crosscheck.emulated(virtual, request(design, ours(), beside_virtual=True), 1.0)
    for base, handshake_ns in ((virtual, 1_000_000), (emulation, 0)):
        tasks = [base.experiment.task(key, base.backend) for key in base.keys]
        assert {task.processor.handshake_ns for task in tasks} == {handshake_ns}


def test_the_plan_says_that_such_a_time_reaches_virtual_time_alone(
    load: Load, fecbench_here: Callable[..., Any]
) -> None:
    planned = json.loads(fecbench_here("plan", load({DATAGRAM: 10}).path, "--json", "--no-measure").stdout)
    assert planned["reach"][DATAGRAM]["engines"] == ["virtual"]
    assert planned["reach"]["owd_ms"]["engines"] == ["local", "virtual"]


def test_what_is_no_time_up_to_a_second_is_refused() -> None:
    for value in (-1, True, "1", float("nan"), float("inf"), 1000.1):
        with pytest.raises(Refusal, match=f"{HANDSHAKE} = .*: must be a number from 0 to 1000"):
            processor_task({HANDSHAKE: value})
