"""The files of a replay that start both programs of a trial by hand work where they lie."""

import json
import subprocess
from pathlib import Path

import pytest

from fecbench import designs
from fecbench.runners.campaign import by_hand
from fecbench.runners.campaign.request import Request
from fecbench.runners.implementations.finding import ours
from fecbench.runners.tasks.task import Task
from tests.runners.campaign.conftest import Run
from tests.support.campaigns import only_campaign
from tests.support.experiments import experiment_of_text, task_of


@pytest.fixture
def task(run: Run, little: Request, tmp_path: Path) -> Task:
    """The task of a recorded trial."""
    if ours().find("rquic", "tests").missing_programs():
        pytest.skip("needs rquic: make build")
    run(keys=little.keys[:1])
    with only_campaign(tmp_path / "x.sqlite") as (database, campaign):
        (trial,) = database.trials(campaign.id)
    return Task.model_validate({**trial.record.task, "seeds": trial.record.seeds})


def test_the_command_that_it_says_repeats_the_transfer_over_loopback(task: Task, tmp_path: Path) -> None:
    source, at = tmp_path / "unfinished", tmp_path / "a folder" / "by-hand"
    by_hand.leave(task, ours(), source, at)
    at.parent.mkdir()
    source.rename(at)
    started = ["sh", "-c", f"({by_hand.start_with(task, at)}; wait)"]
    result = subprocess.run(started, capture_output=True, text=True, timeout=500, cwd="/")
    assert result.stderr == ""
    events = [json.loads(line) for line in result.stdout.splitlines()]
    assert [event["event"] for event in events] == ["ready", "done", "done"]
    assert "dct_s" in events[1]["metrics"]
    assert (at / "client" / "keys.log").is_file()


@pytest.mark.skipif(bool(ours().find("moq", "tests").missing_programs()), reason="make build-all")
def test_a_relay_stands_between_both_ends_by_hand_too(tmp_path: Path) -> None:
    text = designs.catalogue()["live-relay"].read_text()
    shorter = experiment_of_text(tmp_path, text.replace("duration_s = 20", "duration_s = 0.5"))
    relayed = task_of(shorter, "safe on the backbone", point=2)
    at = tmp_path / "by-hand"
    by_hand.leave(relayed, ours(), at, at)
    started = ["sh", "-c", f"({by_hand.start_with(relayed, at)}; wait)"]
    result = subprocess.run(started, capture_output=True, text=True, timeout=500, cwd="/")
    assert result.stderr == ""
    events = [json.loads(line) for line in result.stdout.splitlines()]
    assert sorted(event["event"] for event in events) == [*["done"] * 3, *["ready"] * 2]
    (relay,) = (event["metrics"] for event in events if "backbone.source_sent" in event.get("metrics", {}))
    # The options of each hop: FEC on the backbone alone.
    assert relay["backbone.source_received"] + relay["backbone.repair_received"] > 0
    assert relay["access.source_sent"] == relay["access.repair_sent"] == 0


def test_each_end_has_what_the_trial_told_it(task: Task, tmp_path: Path) -> None:
    by_hand.leave(task, ours(), tmp_path / "by-hand", tmp_path / "by-hand")
    for role in ("client", "server"):
        assignment = json.loads((tmp_path / "by-hand" / f"{role}.json").read_text())
        end = task.pairs[0].client if role == "client" else task.pairs[0].server
        assert (assignment["options"], assignment["content_seed"]) == (end.options, task.content_seed)
        assert ("private_key" in assignment) == (role == "server")
        assert all(
            Path(assignment[key]).is_file() for key in ("authority", "certificate") if key in assignment
        )
