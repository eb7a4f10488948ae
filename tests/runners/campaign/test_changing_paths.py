"""Two paths whose links change, each by a trace and with noise of its own: in both engines, both are met."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fecbench.results.store.database import Database
from fecbench.results.store.records import TrialKey
from fecbench.runners.implementations.finding import ours
from fecbench.runners.tasks.task import VIRTUAL
from tests.support import needs
from tests.support.designs import downloads, one_of, variant
from tests.support.experiments import experiment_of

FOUND = ours().find("noq-fec", "tests")
pytestmark = needs.built(FOUND)
PATHS = ("path1", "path2")
SIZE_BYTES = 300_000
DESIGN = downloads(
    "changing-paths",
    SIZE_BYTES,
    variant("two paths", scheme="none", paths=2),
    seed=13,
    topology="multipath",
    plan={"method": "grid"},
    factors={"option.http": one_of("hq", "h3")},
    constants={
        "path1": {"trace": "early", "owd_ms": 10},
        "path2": {"trace": "late", "owd_ms": 20, "jitter_ms": 3, "jitter.law": "normal", "reorder": True},
        "trace.offset_s": 0,
        "queue_ms": 100,
        "loss": {"model": "uniform", "p": 0.02},
    },
)
# Each carries 4 Mbit/s for a while, then nothing until 1.5 s, then 4 Mbit/s again.
CARRIES_S = {"early": 0.2, "late": 0.3}
RESUMES_S = 1.5


def written(tmp_path: Path) -> Path:
    (tmp_path / "links").mkdir()
    for name, carries_s in CARRIES_S.items():
        rows = ((carries_s, 4_000_000), (RESUMES_S - carries_s, 0), (60, 4_000_000))
        text = "".join(f"{round(1e6 * lasts_s)},{rate_bps}\n" for lasts_s, rate_bps in rows)
        (tmp_path / "links" / f"{name}.csv").write_text(f"keep_us,rate_bps\n{text}")
    path = tmp_path / "changing-paths.toml"
    path.write_text(DESIGN)
    return path


def trial_in(database: Path) -> Any:
    with Database.open(str(database)) as opened:
        (trial,) = opened.trials(opened.campaigns()[0].id)
    return trial.record


def soonest_s() -> float:
    """Return the shortest time: both paths carry 250,000 bytes at most before they stop, the rest after they
    resume."""
    before = sum(4e6 / 8 * carries_s for carries_s in CARRIES_S.values())
    assert before < SIZE_BYTES
    return RESUMES_S + (SIZE_BYTES - before) / (2 * 4e6 / 8)


WANTED = ("--filter", "point=0")


def test_in_virtual_time_a_download_waits_for_both_paths_and_is_replayed(
    tmp_path: Path, fecbench_here: Any, virtually: Callable[..., Path]
) -> None:
    database = virtually(written(tmp_path), *WANTED)
    record = trial_in(database)
    assert record.state == "ok"
    assert soonest_s() < record.metrics["client"]["dct_s"] < soonest_s() + 1
    assert all(record.links[name]["directions"]["down"]["frames_out"] > 50 for name in PATHS)
    assert {name for name in record.seeds if "jitter" in name} == {"path2/up/jitter", "path2/down/jitter"}
    replayed = fecbench_here("replay", 1, "--db", database, "--output", tmp_path / "replay")
    assert replayed.returncode == 0, replayed.stdout


@pytest.mark.usefixtures("can_run_trials")
def test_emulated_each_path_follows_its_own_trace_and_losses_of_frames_that_overtake_are_the_oracles(
    tmp_path: Path, fecbench: Any
) -> None:
    """The judge compares them: a trial is ok only if packet n, in the order of leaving, has verdict n."""
    path, database = written(tmp_path), tmp_path / "emulated.sqlite"
    fecbench.run_until_ok(path, database, *WANTED)
    record = trial_in(database)
    assert soonest_s() < record.metrics["client"]["dct_s"] < soonest_s() + 1
    assert record.checks["verdicts"]["path2/down"]["dropped"] > 0
    key = TrialKey("two paths", f"download-{SIZE_BYTES}", 0, 0)
    task = experiment_of(path).task(key, VIRTUAL)
    for name in PATHS:
        report, lane = record.links[name], task.settings_of(name).down
        configured = report["configuration"]["down"]
        assert configured["schedule"] == {"steps": 3, "repeat": "loop", "offset_ns": 0}
        assert configured["queue_ns"] == 100_000_000
        assert configured.get("reorder", False) is lane.reorder is (name == "path2")
        noise = lane.jitter and {"law": "normal", "mean_ns": 3_000_000, "seed": lane.jitter.seed}
        assert (configured.get("jitter"), noise is None) == (noise, name == "path1")
        down = report["directions"]["down"]
        assert 0 <= down["schedule_late_ns"]["mean"] <= down["schedule_late_ns"]["max"]
        assert down["frames_out"] > 50 and down["conserved"]
