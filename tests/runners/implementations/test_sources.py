"""A simulator that was built from other sources than the endpoints runs nothing."""

import shutil
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fecbench.runners.implementations.implementation import Implementation, load
from fecbench.runners.refusal import Refusal
from tests.runners.conftest import WriteDesign
from tests.runners.engines.conftest import HERE

Built = Callable[[str, str], Implementation]


@pytest.fixture
def built(tmp_path: Path) -> Built:
    """The made-up implementation, whose endpoint and simulator say this when they are asked for sources."""

    def built(endpoint: str, simulator: str) -> Implementation:
        folder = tmp_path / "implementations" / "made-up"
        shutil.copytree(HERE / "made-up", folder, dirs_exist_ok=True)
        declared = folder / "impl.toml"
        text = declared.read_text().replace('\nsimulator = ["/usr/bin/python3", "simulator.py"]', "")
        for name, sources in (("endpoint", endpoint), ("simulator", simulator)):
            program = folder / name
            program.write_text(
                f'#!/bin/sh\n[ "$1" = tell ] && {{ {sources}; exit; }}\nexec python3 simulator.py\n'
            )
            program.chmod(program.stat().st_mode | stat.S_IXUSR | stat.S_IXGRP | stat.S_IXOTH)
        text = text.replace('["/usr/bin/python3", "simulator.py"]', '["/bin/sh", "endpoint"]')
        declared.write_text(f'sources = "tell"\nsimulator = ["/bin/sh", "simulator"]\n{text}')
        return load(folder)

    return built


def test_a_simulator_of_other_sources_is_refused_in_virtual_time_alone(built: Built) -> None:
    implementation = built("echo abc", "echo old")
    with pytest.raises(Refusal, match=r"different sources, .*endpoint from abc, .*simulator from old; mend:"):
        implementation.check_built("virtual")
    implementation.check_built("local")


def test_a_program_that_does_not_tell_its_sources_is_refused(built: Built) -> None:
    built("echo abc", "echo abc").check_built("virtual")
    for silent in ("true", "echo", "echo two words", "echo abc; false"):
        with pytest.raises(Refusal, match=r"simulator does not tell with tell what it was built from"):
            built("echo abc", silent).check_built("virtual")


def test_a_campaign_with_a_stale_simulator_is_refused_in_one_line(
    built: Built, made_up: WriteDesign, fecbench_here: Callable[..., Any], tmp_path: Path
) -> None:
    folder = built("echo abc", "echo old").folder.parent
    database = tmp_path / "x.sqlite"
    words = ("run", made_up(), "--engine", "virtual", "--db", database, "--implementations", folder)
    assert "different sources" in fecbench_here(*words).refusal()
    assert not database.exists()
