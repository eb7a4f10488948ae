"""A campaign in virtual time says in a line that simulators cannot be confined."""

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from fecbench.checkout import REPOSITORY
from fecbench.runners import machine
from fecbench.runners.sandbox import fence, rights
from tests import ordinary
from tests.runners.conftest import Fecbench, WriteDesign
from tests.runners.engines.conftest import HERE
from tests.support.campaigns import only_campaign

WITHOUT = (sys.executable, "-m", "tests.without_landlock")
LINE = (
    "note: simulators are not confined here: they can read and change your files, and use the network;"
    " without root it takes a kernel with Landlock\n"
)


@pytest.fixture
def home() -> Iterator[Path]:
    """A home of an ordinary user, who cannot enter pytest's own folders."""
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        if os.geteuid() == 0:
            os.chown(folder, ordinary.USER, ordinary.USER)
        yield Path(folder)


def run(home: Path, design: Path) -> subprocess.CompletedProcess[str]:
    """The design, as an ordinary user of a kernel without Landlock."""
    command = [Fecbench.path, "run", design, "--engine", "virtual", "--implementations", HERE]
    return subprocess.run(
        [*ordinary.command(), *WITHOUT, *map(str, command), "--db", home / "x.sqlite"],
        cwd=REPOSITORY,
        env={**os.environ, "HOME": str(home), "TMPDIR": str(home)},
        capture_output=True,
        text=True,
    )


def confinement(home: Path) -> dict[str, Any]:
    with only_campaign(home / "x.sqlite") as (database, campaign):
        (start,) = database.starts(campaign.id)
        kept: dict[str, Any] = start.provenance["confinement"]
        return kept


def test_a_line_tells_where_simulators_are_not_confined_and_the_campaign_keeps_it(
    home: Path, made_up: WriteDesign
) -> None:
    design = Path(shutil.copy(made_up(), home))
    design.chmod(0o644)
    ran = run(home, design)
    assert ran.returncode == 0, ran.stderr
    assert ran.stderr.count("not confined") == 1
    assert LINE in ran.stderr
    assert confinement(home)["file_system"] == "the harness's"


def test_doctor_tells_it_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rights, "own_user", lambda _: None)
    monkeypatch.setattr(fence, "is_offered", lambda: False)
    need = machine.confinement_of_simulators()
    assert (need.good, need.required) == (False, False)
    assert need.found in LINE
