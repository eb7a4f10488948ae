"""Designs whose links have noise of the delay, and let frames overtake: what they say, what is refused, and
that both engines carry it out."""

import os
from pathlib import Path
from typing import Any

import pytest

from fecbench import designs, results
from fecbench.dropper.command import COMMAND as DROPPER
from fecbench.results.store.database import Database
from fecbench.results.store.records import TrialKey
from fecbench.runners.campaign import links
from fecbench.runners.campaign.experiment import Experiment
from fecbench.runners.campaign.record import seeds_of
from fecbench.runners.implementations.finding import ours
from fecbench.runners.tasks.task import VIRTUAL, LinkTask, Task
from fecbench.topologies.jitter import Jitter
from fecbench.topologies.link import DIRECTIONS, TopologyError
from fecbench.topologies.programs import WIRE
from fecbench.topologies.topology import check_backend

FOUND = ours().find("noq-fec", "tests")
PLAIN = {"bandwidth_mbps": 10, "owd_ms": 20}
DESIGN = """
name = "noisy"
title = "Links with noise of the delay"
question = "Do both engines have the same noise?"
seed = 12
topology = "single-path"
repetitions = 2
[plan]
method = "grid"
[factors]
jitter_ms = { choices = [0, 10] }
[constants]
bandwidth_mbps = 8
owd_ms = 20
queue_packets = 100
jitter.law = "pareto"
reorder = true
loss.model = "uniform"
loss.p = 0.02
[[workloads]]
name = "download"
size_bytes = 200_000
[[variants]]
label = "off"
implementation = "noq-fec"
options = { scheme = "none" }
[[variants]]
label = "rlc"
implementation = "noq-fec"
options = { scheme = "rlc" }
"""


def written(tmp_path: Path) -> Path:
    path = tmp_path / "noisy.toml"
    path.write_text(DESIGN)
    return path


def task_of(path: Path, variant: str, point: int, repetition: int) -> Task:
    design = designs.load(path)
    resolved = Experiment(design, design.plan().points, ours())
    return resolved.task(TrialKey(variant, "download-200000", point, repetition), VIRTUAL)


def one(**values: Any) -> Any:
    return links.link_tasks({**PLAIN, **values}, ["internet"])["internet"].settings


def test_a_name_of_one_direction_gives_noise_to_that_one_alone() -> None:
    link = one(
        **{"internet.down.jitter_ms": 5, "jitter.law": "normal", "down.reorder": True, "up.jitter_ms": 0}
    )
    assert (link.up.jitter, link.up.reorder) == (None, False)
    assert (link.down.jitter, link.down.reorder) == (Jitter(5, "normal"), True)


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"jitter_ms": -1}, "jitter_ms is -1; it must be a number from 1e-06 to 10000"),
    ({"jitter_ms": "5"}, "jitter_ms is '5'; it must be a number"),
    ({"jitter_ms": float("nan")}, "jitter_ms is nan; it must be a number"),
    ({"jitter_ms": False}, "jitter_ms is False; it must be a number"),
    ({"up.jitter_ms": 10_001}, "up.jitter_ms is 10001; it must be a number"),
    (
        {"jitter_ms": 5, "jitter.law": "gauss"},
        "jitter.law is 'gauss'; it must be one of uniform, normal, pareto",
    ),
    ({"jitter.law": "normal"}, "jitter.law: there is no jitter_ms"),
    ({"reorder": 1}, "reorder is 1; it must be true or false"),
]


@pytest.mark.parametrize(("values", "why"), REFUSED, ids=[str(values) for values, _ in REFUSED])
def test_noise_that_cannot_be_is_refused_in_one_line(values: dict[str, Any], why: str) -> None:
    with pytest.raises(TopologyError) as refusal:
        one(**values)
    assert str(refusal.value).startswith(why) and "\n" not in str(refusal.value)


@pytest.mark.parametrize(("name", "value"), [("jitter_ms", 5), ("reorder", True)])
def test_only_wire_and_simulators_have_noise_and_let_frames_overtake(name: str, value: Any) -> None:
    link = one(**{f"down.{name}": value})
    for backend in ("wire", "virtual"):
        check_backend(backend, "internet", link)
    with pytest.raises(TopologyError, match=rf"^internet\.down\.{name}: "):
        check_backend("netem", "internet", link)


@pytest.mark.parametrize(("law", "most"), [("uniform", 10), ("normal", 10), ("pareto", 92.5)])
def test_the_least_delay_is_without_noise_and_the_greatest_with_the_most_of_it(law: str, most: float) -> None:
    link = one(**{"jitter_ms": 5, "jitter.law": law})
    assert (link.up.least_owd_ms, link.up.greatest_owd_ms, link.rtt_ms) == (20, 20 + most, 40)


def test_all_variants_of_a_repetition_meet_the_same_noise_and_each_direction_has_its_own(
    tmp_path: Path,
) -> None:
    path, noise = written(tmp_path), set()
    for repetition in range(2):
        off, rlc = (
            task_of(path, variant, 1, repetition).settings_of("internet") for variant in ("off", "rlc")
        )
        assert off == rlc
        noise |= {off.of(direction).jitter for direction in DIRECTIONS}
    assert len(noise) == 4 and all(each.seed for each in noise)


def test_a_link_without_noise_is_asked_for_as_before_there_was_any(tmp_path: Path) -> None:
    """At a point whose noise is 0, too."""
    task = task_of(written(tmp_path), "off", 0, 0)
    assert "jitter" not in str(task.document()) and "jitter" not in task.seeds.model_dump_json()
    document = LinkTask(settings=one(jitter_ms=0), late_bound_us=1, losses={}).model_dump_json()
    assert "jitter" not in document and "reorder" not in document


needs_build = pytest.mark.skipif(bool(FOUND.missing_programs()), reason="needs make build")


@needs_build
def test_trials_in_virtual_time_meet_noise_that_is_recorded_and_replayed(
    tmp_path: Path, fecbench_here: Any
) -> None:
    path, database = written(tmp_path), tmp_path / "virtual.sqlite"
    for name in ("again", "virtual"):
        fecbench_here("run", path, "--engine", "virtual", "--db", tmp_path / f"{name}.sqlite")
    digests: list[dict[TrialKey, str]] = []
    for name in ("again", "virtual"):
        with Database.open(str(tmp_path / f"{name}.sqlite")) as opened:
            trials = list(opened.trials(opened.campaigns()[0].id))
            digests.append({trial.record.key: trial.record.checks["digest"] for trial in trials})
    assert digests[0] == digests[1] and len(set(digests[0].values())) == 8
    frame = results.open(str(database))["noisy"].trials(["client.dct_s"])
    assert set(frame["state"]) == {"ok"}
    noisy = next(trial for trial in trials if trial.record.key.point == 1)
    asked = task_of(path, noisy.record.key.variant, 1, noisy.record.key.repetition)
    assert seeds_of(noisy.record, {"links": ["internet"]}) == asked.seeds
    replayed = fecbench_here("replay", noisy.id, "--db", database, "--output", tmp_path / "replay")
    assert replayed.returncode == 0, replayed.stdout


@needs_build
@pytest.mark.skipif(os.geteuid() != 0, reason="needs root: makes namespaces")
@pytest.mark.skipif(not (DROPPER.exists() and WIRE.exists()), reason="needs make build")
def test_emulated_the_losses_of_frames_that_overtake_are_the_oracles(tmp_path: Path, fecbench: Any) -> None:
    """The judge compares them: a trial is ok only if packet n, in the order of leaving, has verdict n."""
    path, database = written(tmp_path), tmp_path / "emulated.sqlite"
    fecbench.run_until_ok(
        path, database, "--filter", "variant=off", "--filter", "repetition=0", "--filter", "point=1"
    )
    with Database.open(str(database)) as opened:
        (trial,) = opened.trials(opened.campaigns()[0].id)
    asked = task_of(path, "off", 1, 0).settings_of("internet").down.jitter
    assert asked is not None
    told = trial.record.links["internet"]["configuration"]["down"]
    assert told["jitter"] == {"law": "pareto", "mean_ns": 10_000_000, "seed": asked.seed}
    assert told["reorder"] is True
    assert trial.record.checks["verdicts"]["internet/down"]["dropped"] > 0
