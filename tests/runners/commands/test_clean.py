"""`fecbench clean` beside a campaign: from another PID namespace, whose numbers of processes are its own."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.runners.conftest import WriteDesign
from tests.runners.engines.conftest import HERE

FECBENCH = str(Path(sys.executable).parent / "fecbench")
ELSEWHERE = ("unshare", "--pid", "--mount", "--fork", "--kill-child", "--mount-proc")
"""Command that runs another like a container that shares cgroups and the folder for temporary files."""


ENOUGH = 3
"""The most times that `clean` is run beside a campaign."""


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root: makes namespaces")
@pytest.mark.parametrize(
    ("runs", "cleans"), [((), ELSEWHERE), (ELSEWHERE, ())], ids=["seen from another", "in another"]
)
def test_a_campaign_is_left_alone_by_a_clean_that_does_not_see_its_processes(
    made_up: WriteDesign, tmp_path: Path, runs: tuple[str, ...], cleans: tuple[str, ...]
) -> None:
    words = ("run", made_up(repetitions=15), "--engine", "virtual", "--db", tmp_path / "x.sqlite")
    command = [*runs, FECBENCH, *map(str, (*words, "--implementations", HERE, "--json"))]
    cleaned = []
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as campaign:
        while campaign.poll() is None and len(cleaned) < ENOUGH:
            cleaned.append(subprocess.run([*cleans, FECBENCH, "clean"], capture_output=True, text=True))
        assert campaign.stdout
        states = json.loads(campaign.stdout.read())["states"]
    assert campaign.returncode == 0
    assert states == {"ok": 3 * 2 * 15}
    assert [clean.returncode for clean in cleaned] == [0] * len(cleaned)
    assert len(cleaned) > 1
