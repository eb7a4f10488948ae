"""A replay runs what was recorded, whatever the defaults of today are, and says what differs."""

import copy
import dataclasses
from pathlib import Path
from typing import Any

import pytest

from fecbench.results.store.database import Database
from fecbench.results.store.records import CampaignInfo, StoredTrial
from fecbench.runners.campaign import replay as module
from fecbench.runners.campaign.replay import replay
from fecbench.runners.campaign.request import Request
from fecbench.runners.implementations.finding import Implementations, ours
from fecbench.runners.implementations.implementation import Implementation
from fecbench.runners.refusal import Refusal
from fecbench.runners.tasks.validity import Validity
from tests.runners.campaign.conftest import Pretence, Run


@pytest.fixture
def recorded(run: Run, little: Request, tmp_path: Path) -> tuple[CampaignInfo, StoredTrial]:
    """A campaign and its one trial, of FEC."""
    run(keys=[key for key in little.keys if key.variant != "off"][:1])
    with Database.open(str(tmp_path / "x.sqlite")) as database:
        (campaign,) = database.campaigns()
        (trial,) = database.trials(campaign.id)
    return campaign, trial


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch) -> Pretence:
    """What a replay runs its trial on."""
    engine = Pretence()
    monkeypatch.setattr(module, "engine_for", lambda *_: engine)
    monkeypatch.setattr(Implementation, "check_built", lambda *_: None)
    return engine


def with_other_defaults() -> Implementations:
    known = ours()
    rquic = known.find("rquic", "tests")
    options = rquic.declaration.options
    shorter = options["generation_max"].model_copy(update={"default": 7})
    declaration = rquic.declaration.model_copy(update={"options": {**options, "generation_max": shorter}})
    text = rquic.text.replace("default = 63", "default = 7")
    known._read["rquic"] = dataclasses.replace(rquic, declaration=declaration, text=text)
    return known


def test_the_recorded_task_and_seeds_are_run_and_not_those_of_today(
    recorded: tuple[CampaignInfo, StoredTrial], engine: Pretence, tmp_path: Path
) -> None:
    campaign, trial = recorded
    result = replay(campaign, trial, with_other_defaults(), tmp_path / "files")
    (task,) = engine.tasks
    (pair,) = task.pairs
    assert pair.client.options["generation_max"] == pair.server.options["generation_max"] == 63
    assert task.capture
    assert set(pair.client.series) == {"cwnd", "code_rate", "fec"}
    assert result.replayed.record.seeds == trial.record.seeds
    assert [line for line in result.differences if "generation_max" in line] == [
        "impl.toml of rquic.options.generation_max.default was 63, is 7",
        "the trial's task: pairs.0.client.options.generation_max was 63, is 7 today; it is run as it was",
        "the trial's task: pairs.0.server.options.generation_max was 63, is 7 today; it is run as it was",
    ]


def test_nothing_differs_where_nothing_has_changed(
    recorded: tuple[CampaignInfo, StoredTrial], engine: Pretence, tmp_path: Path
) -> None:
    assert replay(*recorded, ours(), tmp_path / "files").differences == []
    assert engine.ran == [recorded[1].record.key]


def test_recorded_seeds_are_run_when_the_design_would_give_others_today(
    recorded: tuple[CampaignInfo, StoredTrial], engine: Pretence, tmp_path: Path
) -> None:
    campaign, trial = recorded
    seeds = {name: seed ^ 1 for name, seed in trial.record.seeds.items()}
    other = dataclasses.replace(trial, record=dataclasses.replace(trial.record, seeds=seeds))
    result = replay(campaign, other, ours(), tmp_path / "files")
    assert result.replayed.record.seeds == seeds
    (line,) = result.differences
    assert line.startswith("the trial's seeds would be others today")
    assert engine.ran


def test_a_trial_whose_task_was_not_kept_is_run_with_the_defaults_of_today_and_that_is_said(
    recorded: tuple[CampaignInfo, StoredTrial], engine: Pretence, tmp_path: Path
) -> None:
    campaign, trial = recorded
    older = dataclasses.replace(trial, record=dataclasses.replace(trial.record, task={}))
    result = replay(campaign, older, with_other_defaults(), tmp_path / "files")
    assert engine.tasks[0].pairs[0].client.options["generation_max"] == 7
    assert "the trial's task was not recorded: it is run with the defaults of today" in result.differences


def test_a_task_that_this_fecbench_does_not_know_is_refused_in_a_line(
    recorded: tuple[CampaignInfo, StoredTrial], engine: Pretence, tmp_path: Path
) -> None:
    campaign, trial = recorded
    task: dict[str, Any] = {**trial.record.task, "quantum": True}
    newer = dataclasses.replace(trial, record=dataclasses.replace(trial.record, task=task))
    with pytest.raises(Refusal, match=r"is not one of this fecbench \(quantum") as refused:
        replay(campaign, newer, ours(), tmp_path / "files")
    assert "\n" not in str(refused.value)
    assert engine.ran == []


def with_task(trial: StoredTrial, task: dict[str, Any]) -> StoredTrial:
    return dataclasses.replace(trial, record=dataclasses.replace(trial.record, task=task))


def test_fields_that_the_recorded_task_lacks_are_told_with_the_defaults_that_were_taken(
    recorded: tuple[CampaignInfo, StoredTrial], engine: Pretence, tmp_path: Path
) -> None:
    """Of the judge's bounds, one was another then; the rest did not exist."""
    campaign, trial = recorded
    task = copy.deepcopy(trial.record.task)
    task["validity"] = {"stall_share": 0.5}
    (pair,) = task["pairs"]
    del pair["client"]["fec"], pair["playout_ms"]
    result = replay(campaign, with_task(trial, task), ours(), tmp_path / "files")
    bounds = Validity().model_dump()
    del bounds["stall_share"]
    assert result.defaults == {
        "pairs.0.client.fec": None,
        "pairs.0.playout_ms": [],
        **{f"validity.{name}": value for name, value in bounds.items()},
    }
    (line,) = [line for line in result.differences if "today's defaults are taken" in line]
    assert "\n" not in line
    assert f"recorded without {len(bounds) + 2} fields" in line
    assert "pairs.0.client.fec = null, " in line
    assert f"validity.rate_share = {bounds['rate_share']}" in line
    assert engine.tasks[0].validity.stall_share == 0.5


@pytest.mark.usefixtures("engine")
def test_a_bound_that_older_tasks_have_elsewhere_is_no_default(
    recorded: tuple[CampaignInfo, StoredTrial], tmp_path: Path
) -> None:
    campaign, trial = recorded
    task = {name: value for name, value in trial.record.task.items() if name != "validity"}
    result = replay(campaign, with_task(trial, {**task, "stall_share": 0.5}), ours(), tmp_path / "files")
    assert result.defaults is not None
    assert result.defaults
    assert "validity.stall_share" not in result.defaults


def test_an_option_that_an_implementation_did_not_have_is_told_and_given_its_default(
    recorded: tuple[CampaignInfo, StoredTrial], engine: Pretence, tmp_path: Path
) -> None:
    campaign, trial = recorded
    task = copy.deepcopy(trial.record.task)
    del task["pairs"][0]["server"]["options"]["generation_max"]
    result = replay(campaign, with_task(trial, task), with_other_defaults(), tmp_path / "files")
    assert result.defaults == {"pairs.0.server.options.generation_max": 7}
    (pair,) = engine.tasks[0].pairs
    assert (pair.client.options["generation_max"], pair.server.options["generation_max"]) == (63, 7)


@pytest.mark.usefixtures("engine")
def test_a_task_that_was_recorded_whole_takes_no_default_and_one_that_was_not_takes_all(
    recorded: tuple[CampaignInfo, StoredTrial], tmp_path: Path
) -> None:
    campaign, trial = recorded
    assert replay(campaign, trial, ours(), tmp_path / "whole").defaults == {}
    assert replay(campaign, with_task(trial, {}), ours(), tmp_path / "none").defaults is None
