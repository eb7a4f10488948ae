"""A campaign is gone on with only as it was run: what differs is named, and nothing is changed then."""

import dataclasses
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fecbench import designs
from fecbench.results.store.database import Database
from fecbench.results.store.records import TrialKey
from fecbench.runners.campaign import provenance
from fecbench.runners.campaign.aside import move_aside
from fecbench.runners.campaign.experiment import Experiment
from fecbench.runners.campaign.request import Request
from fecbench.runners.implementations.finding import ours
from fecbench.runners.implementations.implementation import Implementation
from fecbench.runners.tasks.outcome import EndpointOutcome, Outcome
from fecbench.runners.tasks.task import Task
from fecbench.runners.trial.judge import Judgement
from tests.runners.campaign.conftest import Pretence, Run, Told
from tests.support.campaigns import only_campaign
from tests.support.experiments import experiment_of
from tests.support.refusals import refusal_of

OTHER = {"dropper/build/dropper": "ab" * 32}


@pytest.fixture
def database(tmp_path: Path) -> Path:
    return tmp_path / "x.sqlite"


def refusal(run: Run, database: Path, **changes: Any) -> str:
    """Return why the campaign does not continue."""
    before = database.read_bytes()
    message = refusal_of(lambda: run(**changes))
    assert database.read_bytes() == before
    assert "--campaign" in message
    return message


@pytest.fixture
def part(run: Run, little: Request, database: Path) -> Path:
    """A database with the first trial of the little design."""
    run(keys=little.keys[:1])
    return database


def other_points(experiment: Experiment, change: Callable[[dict[str, Any]], dict[str, Any]]) -> Experiment:
    points = [change(dict(point)) for point in experiment.points]
    return Experiment(experiment.design, points, ours())


def test_points_that_are_planned_otherwise_now_are_refused(run: Run, part: Path, little: Request) -> None:
    before = little.experiment.points[0]["loss.p"]
    lossy = other_points(little.experiment, lambda point: point | {"loss.p": 0.5})
    message = refusal(run, part, experiment=lossy)
    assert f"was run with other points: point 0.loss.p was {before}, is 0.5; " in message
    fewer = Experiment(little.experiment.design, little.experiment.points[:2], ours())
    assert "point 2 was {" in refusal(run, part, experiment=fewer, keys=little.keys[:1])


def test_another_design_is_refused_by_its_first_other_line(run: Run, part: Path, tmp_path: Path) -> None:
    path = tmp_path / "design.toml"
    path.write_text(path.read_text().replace("owd_ms = 5", "owd_ms = 15"))
    design = designs.load(path)
    message = refusal(run, part, experiment=experiment_of(design))
    assert "was run with another design: line " in message
    assert "was 'owd_ms = 5', is 'owd_ms = 15'" in message


def test_another_default_of_an_option_is_refused(run: Run, part: Path, little: Request) -> None:
    (rquic,) = little.experiment.implementations.values()
    text = rquic.text.replace("default = 63", "default = 7")
    assert text != rquic.text
    options = rquic.declaration.options
    shorter = options["generation_max"].model_copy(update={"default": 7})
    declaration = rquic.declaration.model_copy(update={"options": {**options, "generation_max": shorter}})
    message = refusal(run, part, experiment=with_implementation(little, rquic, text, declaration))
    assert "was run with another impl.toml: " in message
    assert "rquic.options.generation_max.default was 63, is 7" in message


def test_a_declaration_that_says_the_same_in_other_words_is_gone_on_with(run: Run, little: Request) -> None:
    run(keys=little.keys[:1])
    (rquic,) = little.experiment.implementations.values()
    reworded = with_implementation(little, rquic, f"# A remark.\n{rquic.text}", rquic.declaration)
    engine = Pretence()
    run(engine, experiment=reworded)
    assert len(engine.ran) == len(little.keys) - 1


def with_implementation(base: Request, declared: Implementation, text: str, declaration: Any) -> Experiment:
    """The experiment with another declaration of its implementation."""
    changed = dataclasses.replace(declared, text=text, declaration=declaration)
    known_ones = ours()
    known_ones._read["rquic"] = changed
    return Experiment(base.experiment.design, base.experiment.points, known_ones)


def test_another_binary_backend_harness_or_rule_of_validity_is_refused_by_its_name(
    run: Run, part: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rules are whatever stands in a task."""
    assert "another link: link was 'wire', is 'netem'" in refusal(run, part, backend="netem")
    assert "another engine: engine was 'local', is 'virtual'" in refusal(run, part, backend="virtual")
    now, make = provenance.harness(), Experiment.task
    changed = {"version": "9.9", "sources": {**now["sources"], "runners/trial": "ab" * 32}}
    with Database.open(str(part)) as database:
        campaign = database.campaigns()[0]
    older = {name: value for name, value in campaign.provenance.items() if name != "harness"}
    before = dataclasses.replace(campaign, provenance=older)

    def of_longer_patience(self: Experiment, *which: Any) -> Task:
        return make(self, *which).model_copy(update={"timeout_s": 77.0})

    of_trial = f"harness sources.runners/trial was {now['sources']['runners/trial'][:12]}, is abababababab"
    others: list[tuple[Any, str, Any, list[str]]] = [
        (provenance, "binaries", lambda *_: OTHER, ["other binaries: binary dropper/build/dropper was "]),
        (provenance, "harness", lambda: changed, ["another harness: harness version was ", of_trial]),
        (Database, "campaign", lambda *_: before, ["another harness: harness was not known, is version "]),
        (Experiment, "task", of_longer_patience, ["other tasks: task of ", ": timeout_s was 30.0, is 77.0"]),
    ]
    for where, name, other, watcher in others:
        with monkeypatch.context() as changes:
            changes.setattr(where, name, other)
            message = refusal(run, part)
        assert all(part_of in message for part_of in watcher), message
    del campaign.provenance["engine"]  # as an earlier fecbench has left it
    monkeypatch.setattr(Database, "campaign", lambda *_: campaign)
    assert "another engine: engine was 'local', is 'virtual'" in refusal(run, part, backend="virtual")


def test_the_harness_is_known_by_its_sources_and_not_by_its_pages(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = ["dropper/model.py", "topologies/wire/wire.c", "runners/trial/judge.py", "designs/wsp.py"]
    files += ["runners/implementations/implementation.py"]
    files += [f"runners/campaign/{name}.py" for name in ("experiment", "links", "processors", "record")]
    others = ["dropper/README.md", "runners/README.md", "topologies/wire/build/made.c", "results/reading.py"]
    for name in files + others:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("once")
    monkeypatch.setattr(provenance, "REPOSITORY", tmp_path)
    before = provenance.harness()
    for name in others:
        (tmp_path / name).write_text("changed")
        assert provenance.harness() == before
    for name in files:
        (tmp_path / name).write_text("changed")
        after = provenance.harness()
        assert after != before
        before = after


def test_there_must_be_something_to_resume(run: Run, part: Path) -> None:
    before = part.read_bytes()
    nothing = refusal_of(lambda: run(resume=True, name="litle"))
    assert re.search("nothing to resume: .* has no campaign 'litle'; did you mean 'little'", nothing)
    assert part.read_bytes() == before
    engine = Pretence()
    run(engine, resume=True)
    assert engine.ran


def test_a_campaign_keeps_that_it_ran_one_variant_against_itself(
    run: Run, little: Request, database: Path
) -> None:
    run()
    twin = little.experiment.design
    variants = [{"label": label, "implementation": "rquic", "baseline": label == "x"} for label in ("x", "y")]
    twice = designs.rewritten(twin, variants=variants)
    run(experiment=Experiment(twice, little.experiment.points, ours()), keys=[], name="named-anyhow")
    with Database.open(str(database)) as opened:
        kinds = {campaign.name: campaign.kind for campaign in opened.campaigns()}
        # Numbers come back as they were planned, to the last bit.
        assert opened.campaigns()[0].points == little.experiment.points
    assert kinds == {"little": "comparison", "named-anyhow": "against-itself"}


def test_a_database_of_another_harness_is_moved_aside_and_one_of_this_harness_is_not(
    run: Run, part: Path, little: Request, monkeypatch: pytest.MonkeyPatch
) -> None:
    absent = part.with_name("absent.sqlite")
    assert move_aside([little], absent) == ""
    assert move_aside([little], part) == ""
    content = part.read_bytes()
    part.with_name("x-1.sqlite").touch()
    monkeypatch.setattr(provenance, "binaries", lambda *_: OTHER)
    line = move_aside([little], part)
    aside = part.with_name("x-2.sqlite")
    assert line.startswith(f"{part} is {aside} now, and the campaign begins anew: campaign 'little' in ")
    assert (part.exists(), aside.read_bytes()) == (False, content)
    run(keys=little.keys[:1])
    assert part.exists()


# Again


def test_trials_of_a_state_are_run_once_again_by_each_start_and_their_attempts_are_kept(
    run: Run, little: Request, database: Path
) -> None:
    failed, timed_out, *_ = little.keys
    ends = {failed: "failed", timed_out: "timeout"}
    run(Pretence(lambda key: ends.get(key, "ok")))
    for state, ran in (("failed", [failed]), ("ok", [failed]), ("ok", [])):
        engine = Pretence(lambda _, state=state: state)
        run(engine, retry={"failed"})
        assert engine.ran == ran
    with only_campaign(database) as (opened, campaign):
        attempts = opened.attempts(campaign.id, failed)
        assert [run.record.state for run in attempts] == ["failed", "failed", "ok"]
        assert opened.states(campaign.id)[timed_out] == ("timeout", 1)


# What cannot be judged or kept


def test_a_judge_that_fails_makes_the_trial_invalid_and_the_campaign_goes_on(
    run: Run, little: Request, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(task: Task, _: Outcome) -> Judgement:
        if task.seeds == little.experiment.seeds(little.keys[0]):
            raise ValueError("too many packets")
        return Judgement("ok", "")

    monkeypatch.setattr("fecbench.runners.campaign.record.judge", fail)
    watcher = Told()
    run(AnyEnd(), watcher=watcher)
    ends: dict[TrialKey, tuple[str, str]] = {key: (state, why) for key, state, why in watcher.ended_trials}
    assert ends[little.keys[0]] == ("invalid", "it cannot be judged: ValueError: too many packets")
    assert [key.group for key, (state, _) in ends.items() if state != "ok"] == [little.keys[0].group] * 2
    assert len(ends) == len(little.keys)


class AnyEnd(Pretence):
    """An engine that does not mind what the judge says."""

    def judged(self, *_: object, **__: object) -> None:
        return None


def test_a_trial_that_cannot_be_stored_is_invalid_and_the_campaign_goes_on(
    run: Run, little: Request, database: Path
) -> None:
    outcome = Outcome(endpoints={"client": EndpointOutcome(metrics={"dct_s": float("inf")})})
    watcher = Told()
    run(AnyEnd(outcome=outcome), watcher=watcher, keys=little.keys[:1])
    message = f"it cannot be kept: {little.keys[0]}: metric client.dct_s is inf: must be a finite number"
    assert {(state, why) for _, state, why in watcher.ended_trials} == {("invalid", message)}
    with Database.open(str(database)) as opened:
        (trial,) = opened.trials(1)
        assert trial.record.task == little.experiment.task(little.keys[0], "wire").document()
        assert trial.record.seeds


def test_the_first_task_is_made_before_the_others(
    run: Run, little: Request, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first of any number of trials begins as soon."""
    runs: list[TrialKey] = []
    make = Experiment.task

    def count(self: Experiment, key: TrialKey, *which: Any) -> Task:
        runs.append(key)
        return make(self, key, *which)

    monkeypatch.setattr(Experiment, "task", count)
    behind: list[int] = []
    engine = Pretence(lambda _: behind.append(len(runs) - len(engine.ran)) or "ok")
    run(engine)
    assert set(behind) == {0}
    assert runs == list(little.keys)
