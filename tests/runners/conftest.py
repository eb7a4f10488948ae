"""What tests of whole campaigns share: the command, and whether trials can run here."""

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from runners.implementations import REPOSITORY, all_of_them
from runners.provenance import DROPPER, WIRE

LIMIT_S = 200


class Fecbench:
    """The installed command, run in the repository."""

    path = str(Path(sys.executable).parent / "fecbench")

    def __call__(
        self, *arguments: object, within: Sequence[str] = (), **environment: str
    ) -> subprocess.CompletedProcess[str]:
        """`within` is a command that runs the one after it, such as `nice`."""
        return subprocess.run(
            [*within, self.path, *map(str, arguments)],
            cwd=REPOSITORY,
            env={**os.environ, **environment},
            capture_output=True,
            text=True,
            timeout=LIMIT_S,
        )

    def run(
        self, design: Path | str, database: Path, *options: object, **environment: str
    ) -> subprocess.CompletedProcess[str]:
        """A campaign without its calibration, which other tests are about."""
        return self("run", "--no-calibrate", design, "--db", database, *options, **environment)

    def trials(self, database: Path) -> list[dict[str, Any]]:
        """What `show` tells of each trial, by key."""
        shown = self("show", "--db", database, "--json")
        assert shown.returncode == 0, shown.stderr
        trials: list[dict[str, Any]] = json.loads(shown.stdout)["trials"]
        return sorted(trials, key=lambda trial: json.dumps(trial["key"]))


@pytest.fixture(scope="session")
def fecbench() -> Fecbench:
    return Fecbench()


@pytest.fixture(scope="session")
def can_run_trials() -> None:
    """Skips the test where a trial of rquic cannot run."""
    if os.geteuid() != 0:
        pytest.skip("needs root: makes namespaces")
    for program in (DROPPER, WIRE, *all_of_them()["rquic"].programs()):
        if not program.exists():
            pytest.skip(f"needs {program}: make build")
