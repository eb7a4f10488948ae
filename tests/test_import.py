"""`import fecbench` is the door for scripts, and nothing in the folder of a script hides it."""

import subprocess
import sys
from pathlib import Path

import pytest

import fecbench
from fecbench.checkout import is_whole
from tests.support import samples

PARTS = ("dropper", "topologies", "designs", "runners", "results")


def test_a_checkout_is_whole() -> None:
    assert is_whole()


def test_a_folder_named_as_a_part_of_ours_hides_nothing(tmp_path: Path) -> None:
    for part in PARTS:
        (tmp_path / part).mkdir()
        (tmp_path / part / "__init__.py").touch()
    program = (
        "from fecbench import designs, dropper, results, runners, topologies; designs.load; results.open"
    )
    subprocess.run([sys.executable, "-c", program], cwd=tmp_path, check=True)


def test_commands_need_mininet_only_where_they_make_networks() -> None:
    program = """
import importlib, sys
from fecbench.runners.commands.command_line import COMMANDS, MODULES
sys.modules["mininet"] = None
for name in COMMANDS:
    importlib.import_module(f"fecbench.runners.commands.{MODULES.get(name, name)}")
"""
    subprocess.run([sys.executable, "-c", program], check=True)


def test_fecbench_opens_a_database_and_tells_its_version(shared_folder: Path) -> None:
    with fecbench.open(str(samples.database_of("demo", shared_folder))) as database:
        assert len(database["demo"].trials(["client.dct_s"])) == 14400
    assert fecbench.__version__[0].isdigit()
    with pytest.raises(AttributeError, match="opne"):
        _ = fecbench.opne  # type: ignore[attr-defined]
