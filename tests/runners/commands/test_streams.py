"""Terminals that lack characters, and closed standard streams: the work is done, and the status says so."""

import io
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fecbench.checkout import REPOSITORY
from fecbench.runners.commands.command_line import COMMANDS, main
from tests.runners.conftest import WriteDesign
from tests.runners.engines.conftest import HERE

FECBENCH = str(Path(sys.executable).parent / "fecbench")
TEXTS = [*((name, "--help") for name in COMMANDS), ("list", "topologies"), ("list", "workloads")]
CLOSED = ["<&- >&- 2>&-", *(pytest.param(one, marks=pytest.mark.slow) for one in (">&-", "2>&-"))]


def ran(*words: object, closing: str = "", **environment: str) -> "subprocess.CompletedProcess[bytes]":
    return subprocess.run(
        ["sh", "-c", f'exec "$@" {closing}', "sh", FECBENCH, *map(str, words)],
        cwd=REPOSITORY,
        env={**os.environ, **environment},
        capture_output=True,
        timeout=120,
    )


def database_of(design: Path, folder: Path, *options: object, closing: str = "", **environment: str) -> Path:
    """A campaign that is run with standard streams such as these."""
    path = folder / "x.sqlite"
    words = ("run", design, "--engine", "virtual", "--db", path, "--implementations", HERE, *options)
    result = ran(*words, closing=closing, **environment)
    assert (result.returncode, b"Traceback" in result.stderr) == (0, False), result.stderr
    return path


@pytest.mark.parametrize("encoding", ["latin-1", "ascii"])
@pytest.mark.parametrize("words", TEXTS, ids=" ".join)
def test_text_that_a_terminal_lacks_is_replaced(
    monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], encoding: str
) -> None:
    terminal = io.BytesIO()
    monkeypatch.setattr(sys, "argv", ["fecbench", *words])
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(terminal, encoding))
    with pytest.raises(SystemExit) as result:
        main()
    sys.stdout.flush()
    assert result.value.code == 0
    assert len(terminal.getvalue().decode(encoding)) > 100


def test_a_design_and_its_results_are_read_as_utf_8_whatever_the_terminal_has(
    made_up: WriteDesign, fecbench_here: Callable[..., Any], tmp_path: Path
) -> None:
    design = made_up()
    design.write_text(design.read_text().replace('label = "other"', 'label = "ö→“x”"'), encoding="utf-8")
    database = database_of(design, tmp_path, PYTHONIOENCODING="latin-1:strict")
    output = ran("show", "--db", database, PYTHONIOENCODING="latin-1:strict")
    assert (output.returncode, "ö??x?".encode("latin-1") in output.stdout) == (0, True)
    assert "ö→“x”" in fecbench_here("show", "--db", database).stdout


@pytest.mark.parametrize("closing", CLOSED)
def test_a_campaign_is_run_and_its_status_is_right_with_closed_streams(
    made_up: WriteDesign, fecbench_here: Callable[..., Any], tmp_path: Path, closing: str
) -> None:
    database = database_of(made_up(), tmp_path, closing=closing)
    assert database.read_bytes().startswith(b"SQLite format 3\0"), "text went to it, as to a stream"
    (campaign,) = json.loads(fecbench_here("show", "--db", database, "--json").stdout)["campaigns"]
    assert campaign["planned_trials"] == 12
    output = ran("show", "--db", database, closing=closing)
    assert (output.returncode, output.stderr) == (0, b"")
    refusal = ran("show", "--db", tmp_path / "absent.sqlite", closing=closing)
    assert refusal.returncode == 2
