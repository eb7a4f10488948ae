"""What the command loads before it knows which command is meant."""

import subprocess
import sys

import pytest

from fecbench.checkout import REPOSITORY
from fecbench.runners.commands.command_line import COMMANDS, MODULES


def module_of(command: str) -> str:
    return f"fecbench.runners.commands.{MODULES.get(command, command)}"


@pytest.mark.parametrize("option", ["--help", "--version"])
def test_what_needs_no_command_loads_none_and_no_library_of_theirs(option: str) -> None:
    script = f"""
import sys
from fecbench.runners.commands.command_line import main
sys.argv = ["fecbench", "{option}"]
try:
    main()
except SystemExit as ended:
    assert ended.code == 0, ended.code
print("loaded:", *sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", script], cwd=REPOSITORY, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    loaded = done.stdout.rpartition("loaded:")[2].split()
    assert "typer" in loaded
    assert not {"numpy", "pandas", "sqlalchemy", "pydantic", "matplotlib"} & set(loaded)
    assert not {module_of(name) for name in COMMANDS} & set(loaded)
