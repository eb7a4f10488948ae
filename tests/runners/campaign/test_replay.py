"""A replay runs what was recorded, whatever the defaults of today are, and says what differs."""

import copy
import dataclasses
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from fecbench.results.store.records import CampaignInfo, StoredTrial
from fecbench.runners.campaign import replay as module
from fecbench.runners.campaign.replay import Replay, replay
from fecbench.runners.campaign.request import Request
from fecbench.runners.implementations.finding import Implementations, ours
from fecbench.runners.implementations.implementation import Implementation
from fecbench.runners.tasks.validity import Validity
from tests.runners.campaign.conftest import Pretence, Run
from tests.support.campaigns import only_campaign
from tests.support.refusals import refusal_of


@pytest.fixture
def recorded(run: Run, little: Request, tmp_path: Path) -> tuple[CampaignInfo, StoredTrial]:
    """A campaign and its one trial, of FEC."""
    run(keys=[key for key in little.keys if key.variant != "off"][:1])
    with only_campaign(tmp_path / "x.sqlite") as (database, campaign):
        (trial,) = database.trials(campaign.id)
    return campaign, trial


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch) -> Pretence:
    """The engine on which a replay runs its trial."""
    engine = Pretence()
    monkeypatch.setattr(module, "engine_for", lambda *_: engine)
    monkeypatch.setattr(Implementation, "check_built", lambda *_: None)
    return engine


def with_other_defaults() -> Implementations:
    available = ours()
    rquic = available.find("rquic", "tests")
    options = rquic.declaration.options
    shorter = options["generation_max"].model_copy(update={"default": 7})
    declaration = rquic.declaration.model_copy(update={"options": {**options, "generation_max": shorter}})
    text = rquic.text.replace("default = 63", "default = 7")
    available._read["rquic"] = dataclasses.replace(rquic, declaration=declaration, text=text)
    return available


Again = Callable[..., Replay]


@pytest.fixture
def again(recorded: tuple[CampaignInfo, StoredTrial], tmp_path: Path) -> Again:
    """Replays the trial, as if its record had been another one."""
    campaign, trial = recorded
    folders = count()

    def again(available: Implementations | None = None, **record: Any) -> Replay:
        stored = dataclasses.replace(trial, record=dataclasses.replace(trial.record, **record))
        return replay(campaign, stored, available or ours(), tmp_path / f"files-{next(folders)}")

    return again


def test_the_recorded_task_and_seeds_are_run_and_not_those_of_today(
    recorded: tuple[CampaignInfo, StoredTrial], again: Again, engine: Pretence
) -> None:
    _, trial = recorded
    result = again(with_other_defaults())
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


def test_a_task_that_was_recorded_whole_takes_no_default_and_nothing_differs(
    recorded: tuple[CampaignInfo, StoredTrial], again: Again, engine: Pretence
) -> None:
    whole = again()
    assert (whole.differences, whole.defaults) == ([], {})
    assert engine.ran == [recorded[1].record.key]


def test_recorded_seeds_are_run_when_the_design_would_give_others_today(
    recorded: tuple[CampaignInfo, StoredTrial], again: Again, engine: Pretence
) -> None:
    seeds = {name: seed ^ 1 for name, seed in recorded[1].record.seeds.items()}
    result = again(seeds=seeds)
    assert result.replayed.record.seeds == seeds
    (line,) = result.differences
    assert line.startswith("the trial's seeds would be others today")
    assert engine.ran


def test_a_trial_whose_task_was_not_kept_is_run_with_the_defaults_of_today_and_that_is_said(
    again: Again, engine: Pretence
) -> None:
    result = again(with_other_defaults(), task={})
    assert engine.tasks[0].pairs[0].client.options["generation_max"] == 7
    assert result.defaults is None
    assert "the trial's task was not recorded: it is run with the defaults of today" in result.differences


def test_a_task_that_this_fecbench_does_not_know_is_refused_in_a_line(
    recorded: tuple[CampaignInfo, StoredTrial], again: Again, engine: Pretence
) -> None:
    newer = {**recorded[1].record.task, "quantum": True}
    assert "is not one of this fecbench (quantum" in refusal_of(lambda: again(task=newer))
    assert engine.ran == []


def test_fields_that_the_recorded_task_lacks_are_told_with_the_defaults_that_were_taken(
    recorded: tuple[CampaignInfo, StoredTrial], again: Again, engine: Pretence
) -> None:
    """A single bound of the judge existed then, with another value."""
    task = copy.deepcopy(recorded[1].record.task)
    task["validity"] = {"stall_share": 0.5}
    (pair,) = task["pairs"]
    del pair["client"]["fec"], pair["playout_ms"]
    result = again(task=task)
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
    recorded: tuple[CampaignInfo, StoredTrial], again: Again
) -> None:
    task = {name: value for name, value in recorded[1].record.task.items() if name != "validity"}
    result = again(task={**task, "stall_share": 0.5})
    assert result.defaults
    assert "validity.stall_share" not in result.defaults


def test_an_option_that_an_implementation_did_not_have_is_told_and_given_its_default(
    recorded: tuple[CampaignInfo, StoredTrial], again: Again, engine: Pretence
) -> None:
    task = copy.deepcopy(recorded[1].record.task)
    del task["pairs"][0]["server"]["options"]["generation_max"]
    result = again(with_other_defaults(), task=task)
    assert result.defaults == {"pairs.0.server.options.generation_max": 7}
    (pair,) = engine.tasks[0].pairs
    assert (pair.client.options["generation_max"], pair.server.options["generation_max"]) == (63, 7)
