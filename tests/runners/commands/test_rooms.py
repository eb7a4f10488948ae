"""The room of the commands: who may import whom, and what is loaded when."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from fecbench.checkout import REPOSITORY
from fecbench.runners.commands.command_line import COMMANDS, MODULES

FOLDER = REPOSITORY / "runners" / "commands"
PACKAGES = ("fecbench", "dropper", "topologies", "designs", "results", "runners")


def imports_of(path: Path) -> Iterator[str]:
    """The modules that a file imports, as it names them."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def module_of(command: str) -> str:
    return f"fecbench.runners.commands.{MODULES.get(command, command)}"


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.py")), ids=lambda path: path.stem)
def test_no_file_of_the_commands_imports_a_command(path: Path) -> None:
    commands = tuple(f"{module_of(name)}." for name in COMMANDS)
    assert [name for name in imports_of(path) if f"{name}.".startswith(commands)] == []


def test_only_the_commands_know_typer_and_rich() -> None:
    outside = [
        path
        for package in PACKAGES
        for path in (REPOSITORY / package).rglob("*.py")
        if FOLDER not in path.parents and "build" not in path.parts
    ]
    assert len(outside) > 50
    knowing = [
        str(path.relative_to(REPOSITORY))
        for path in outside
        if {name.partition(".")[0] for name in imports_of(path)} & {"typer", "rich"}
    ]
    assert knowing == []


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
