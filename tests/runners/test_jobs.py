"""`fecbench run --jobs auto` with real trials: what it keeps of how many ran at once."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from results.database import Database
from runners.implementations import REPOSITORY, all_of_them
from runners.provenance import DROPPER, WIRE

BUILT = [DROPPER, WIRE, *(program for each in all_of_them().values() for program in each.programs())]

pytestmark = [
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root: makes namespaces"),
    pytest.mark.skipif(not all(path.exists() for path in BUILT), reason="needs make build"),
]


@pytest.mark.parametrize(("jobs", "kept", "most"), [("auto", "auto", 4), ("2", 2, 2)])
def test_how_many_ran_at_once_is_kept(tmp_path: Path, jobs: str, kept: object, most: int) -> None:
    run = [
        str(Path(sys.executable).parent / "fecbench"),
        "run",
        "--no-calibrate",
        "designs/catalog/smoke.toml",
    ]
    file = tmp_path / "x.sqlite"
    done = subprocess.run(
        [*run, "--db", str(file), "--jobs", jobs, "--filter", "workload=download-50000"],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        timeout=200,
    )
    assert done.returncode in (0, 1), done.stderr  # a machine that is busy makes trials invalid
    with Database.open(str(file)) as database:
        (campaign,) = database.campaigns()
        assert campaign.provenance["jobs"] == kept
        counts = [trial.record.checks["trials_at_once"] for trial in database.trials(campaign.id)]
    assert len(counts) == 4
    assert 1 <= min(counts) <= max(counts) <= most
    assert kept == "auto" or max(counts) == 2
