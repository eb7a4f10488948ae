"""`fecbench run --jobs auto` with real trials: what it keeps of how many ran at once."""

from pathlib import Path
from typing import Any

import pytest

from fecbench.results.store.database import Database

pytestmark = pytest.mark.usefixtures("can_run_trials")


@pytest.mark.parametrize(("jobs", "kept", "most"), [("auto", "auto", 4), ("2", 2, 2)])
def test_how_many_ran_at_once_is_kept(
    fecbench: Any, tmp_path: Path, jobs: str, kept: object, most: int
) -> None:
    file = tmp_path / "x.sqlite"
    chosen = ("--filter", "workload=download-50000")
    done = fecbench.run("designs/catalog/smoke.toml", file, "--jobs", jobs, *chosen)
    assert done.returncode in (0, 1), done.stderr  # a machine that is busy makes trials invalid
    with Database.open(str(file)) as database:
        (campaign,) = database.campaigns()
        assert campaign.provenance["jobs"] == kept
        counts = [trial.record.checks["trials_at_once"] for trial in database.trials(campaign.id)]
    assert len(counts) == 4
    assert 1 <= min(counts) <= max(counts) <= most
    assert kept == "auto" or max(counts) == 2
