"""Whole campaigns by the command, with real endpoints: results and resumption."""

import json
import platform
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fecbench import results
from fecbench.checkout import REPOSITORY
from fecbench.results import metrics
from tests.support.campaigns import only_campaign

pytestmark = pytest.mark.usefixtures("can_run_trials")

TRIALS = 2 * 2 * 2
POINTS = {"plan": {"method": "wsp", "points": 2}}
ONE_POINT = ("--filter", "point=0")


def assert_complete(fecbench: Any, database: Path) -> list[dict[str, Any]]:
    trials = fecbench.trials(database)
    keys = {json.dumps(trial["key"]) for trial in trials}
    assert len(trials) == len(keys) == TRIALS
    assert {trial["state"] for trial in trials} == {"ok"}
    return trials


@pytest.fixture(scope="module")
def complete(
    fecbench: Any, write_design: Callable[..., Path], tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """The database of a campaign that is complete, run in two parts, to be read or copied."""
    folder = tmp_path_factory.mktemp("complete")
    design, database = write_design(folder, **POINTS), folder / "x.sqlite"
    fecbench.run_until_ok(design, database, *ONE_POINT)
    first = {trial["id"] for trial in fecbench.trials(database)}
    fecbench.run_until_ok(design, database)
    assert first < {trial["id"] for trial in assert_complete(fecbench, database)}
    return database


@pytest.fixture
def copied(complete: Path, tmp_path: Path) -> Path:
    return Path(shutil.copy(complete, tmp_path))


def test_fec_recovers_packets_and_its_baseline_sends_no_repair(fecbench: Any, complete: Path) -> None:
    counts = {"off": [0, 0], "xor, 4/5": [0, 0]}
    for trial in assert_complete(fecbench, complete):
        count = counts[trial["key"]["variant"]]
        count[0] += trial["metrics"]["server"]["repair_sent"]
        count[1] += trial["metrics"]["client"]["packets_recovered"]
    assert counts["off"] == [0, 0]
    assert counts["xor, 4/5"][0] > 0
    assert counts["xor, 4/5"][1] > 0


def test_every_column_of_what_was_measured_is_described(complete: Path) -> None:
    described = {column.name for column in metrics.COLUMNS}
    with results.open(str(complete)) as opened:
        campaign = opened[opened.campaigns()["campaign"][0]]
        own = {*campaign.points(), *campaign.info.workloads[0]["parameters"]}
        columns = {
            re.sub(r"^seed\.\w+\.(up|down)$", "seed.LINK.DIRECTION", name) for name in campaign.trials()
        }
    assert {"seed.LINK.DIRECTION", "internet.up.lost", "server.packets_lost", "stalled_s"} <= columns
    assert {name for name in columns - own - described if not metrics.of(name).meaning} == set()


def test_a_complete_campaign_is_not_run_again_and_not_with_another_design(
    fecbench: Any, write_design: Callable[..., Path], copied: Path, tmp_path: Path
) -> None:
    design, before = write_design(tmp_path, **POINTS), copied.read_bytes()
    for options in ([], ["--resume"]):
        again = fecbench.run(design, copied, *options)
        assert again.returncode == 0
        assert "0 trials to run" in again.stderr
    design.write_text(design.read_text().replace("seed = 5", "seed = 6"))
    refusal = fecbench.run(design, copied, "--resume")
    assert (refusal.returncode, refusal.stderr.count("\n")) == (2, 1)
    assert "another design" in refusal.stderr
    assert copied.read_bytes() == before


def test_there_must_be_a_database_to_resume_and_only_states_that_are_results_are_run_again(
    fecbench_here: Any, little_design: Path, tmp_path: Path
) -> None:
    run = ("run", little_design, "--db", tmp_path / "mistyped.sqlite")
    for option in (["--resume"], ["--retry", "failed"]):
        assert "mistyped.sqlite: no such database" in fecbench_here(*run, *option).refusal()
    for states in ("ok", "failed,ok", ""):
        refusal = fecbench_here(*run, "--retry", states).refusal()
        assert "must be one of failed, timeout, unsupported, invalid" in refusal
    assert list(tmp_path.glob("*.sqlite")) == []


def test_replay_meets_the_same_losses_and_records_everything(
    fecbench: Any, copied: Path, tmp_path: Path
) -> None:
    trial = next(trial for trial in fecbench.trials(copied) if trial["key"]["point"] == 1)
    before = copied.read_bytes()
    artefacts = tmp_path / "artefacts"
    replayed = fecbench.replay_until_ok(trial["id"], copied, artefacts, "--json")
    document = json.loads(replayed.stdout)
    assert document["same"]
    assert document["recorded"]["key"] == document["replayed"]["key"] == trial["key"]
    assert copied.read_bytes() == before
    for host in ("client", "server"):
        assert (artefacts / f"{host}.pcap").stat().st_size > 1000
        assert list((artefacts / host).glob("*.sqlog")) or list((artefacts / host).glob("*.qlog"))
    assert (artefacts / "client" / "keys.log").read_text().strip()


def test_a_trial_knows_its_start_and_its_task(complete: Path) -> None:
    with only_campaign(complete) as (database, campaign):
        starts = {start.id: start for start in database.starts(campaign.id)}
        trials = list(database.trials(campaign.id))
    assert {start.host for start in starts.values()} == {platform.node()}
    assert {start.provenance["link"] for start in starts.values()} == {"wire"}
    first, second = ({t.start_id for t in trials if t.record.key.point == point} for point in range(2))
    assert first | second <= set(starts)
    assert not first & second
    tasks: dict[tuple[str, int], list[Any]] = {}
    for trial in trials:
        tasks.setdefault((trial.record.key.variant, trial.record.key.point), []).append(trial.record.task)
    assert len(tasks) == 4
    assert all(len(repetitions) == 2 and repetitions[0] == repetitions[1] for repetitions in tasks.values())
    assert tasks["xor, 4/5", 0][0]["pairs"][0]["client"]["options"]["code_rate"] == 0.8
    assert str(REPOSITORY) not in json.dumps(list(tasks.values()))
