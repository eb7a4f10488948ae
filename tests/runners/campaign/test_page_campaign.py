"""Campaigns that load a web page, with real endpoints."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.designs import one_of, workload

pytestmark = pytest.mark.usefixtures("can_run_trials")

# Where it is not the little design.
DESIGN = {
    "repetitions": 1,
    "plan": {"method": "grid"},
    "factors": {"loss.p": one_of(0.02, 0.05)},
    "constants": {"bandwidth_mbps": 20, "owd_ms": 5, "loss.model": "uniform", "option.http": "h3"},
    "workloads": [workload("page", graph="small", connections=["one", "per_origin"])],
}


@pytest.fixture
def design(write_design: Any, tmp_path: Path) -> Path:
    """A design and, beside it, a page whose objects take 150 ms to be processed."""
    (tmp_path / "pages").mkdir()
    objects = [
        {"name": "photo", "origin": "photos", "size_bytes": 30_000, "parents": ["document"]},
        {"name": "document", "origin": "www", "size_bytes": 8_000, "processing_ms": 100},
        {"name": "script", "origin": "www", "size_bytes": 5_000, "parents": ["photo"], "processing_ms": 50},
    ]
    page = {"title": "a small page", "made_by": "hand", "objects": objects}
    (tmp_path / "pages" / "small.json").write_text(json.dumps(page))
    written: Path = write_design(tmp_path, **DESIGN)
    return written


def test_pages_load_are_not_resumed_with_another_and_are_replayed_without_the_file(
    design: Path, tmp_path: Path, fecbench: Any
) -> None:
    database, file = tmp_path / "x.sqlite", tmp_path / "pages" / "small.json"
    fecbench.run(design, database)
    trials = fecbench.trials(database)
    assert len(trials) == 8
    for trial in trials:
        # On a busy machine trials are slow, and invalid; their pages have arrived whole all the same.
        assert trial["state"] in ("ok", "invalid"), trial["reason"]
        metrics = trial["metrics"]["client"]
        assert metrics["objects"] == 3
        assert metrics["connections"] == (2 if "per_origin" in trial["key"]["workload"] else 1)
        assert 0.15 < metrics["dct_s"] < 30
        assert 0.02 < metrics["first_object_s"] < metrics["dct_s"] - 0.1

    page = file.read_text()
    file.write_text(page.replace("30000", "30001"))
    refusal = fecbench.run(design, database, "--resume")
    assert refusal.returncode == 2
    assert "other pages" in refusal.stderr
    assert fecbench.trials(database) == trials

    file.unlink()
    replayed = fecbench(
        *("replay", trials[0]["id"], "--db", database, "--output", tmp_path / "again", "--json")
    )
    assert json.loads(replayed.stdout)["replayed"]["metrics"]["client"]["objects"] == 3, replayed.stderr
