"""`git bisect run fecbench compare --bisect` names the slower commit of a real repository, and the file of
--history has every verdict on the way."""

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.runners.commands.test_compare import DESIGN
from tests.runners.conftest import MADE_UP, Done, Fecbench

NAMES = {f"GIT_{who}_{what}": "a@b.example" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}


def git(repository: Path, *words: str, at: int = 0) -> str:
    dates = {f"GIT_{who}_DATE": f"2026-01-01T00:00:{at:02}Z" for who in ("AUTHOR", "COMMITTER")}
    command = ["git", "-c", "init.defaultBranch=main", *words]
    environment = {**os.environ, **NAMES, **dates, "FECBENCH_BUILDS": str(repository.parent / "builds")}
    ran = subprocess.run(command, cwd=repository, capture_output=True, text=True, env=environment)
    assert ran.returncode == 0, ran
    return ran.stdout


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """Six commits of a stack: the third lacks its impl.toml, and the fifth makes it slower."""
    top = tmp_path / "repository"
    shutil.copytree(MADE_UP, top / "made-up")
    declared, program = top / "made-up" / "impl.toml", top / "made-up" / "simulator.py"
    git(top, "init", "--quiet")
    whole, text = declared.read_text(), program.read_text()
    slow = text.replace("+ jitter_s\n", "+ jitter_s\n    dct_s *= 1.2\n")
    assert slow != text
    for number in range(1, 7):
        declared.unlink() if number == 3 else declared.write_text(whole)
        program.write_text(slow if number >= 5 else text)
        (top / "notes.md").write_text(f"{number}\n")
        git(top, "add", "--all")
        git(top, "commit", "--quiet", "--message", f"change {number}", at=number)
    (tmp_path / "few.toml").write_text(DESIGN)
    return top


def test_bisect_names_the_slower_commit_and_history_draws_what_it_looked_at(
    repository: Path, tmp_path: Path, fecbench_here: Any
) -> None:
    good, *_ = git(repository, "rev-list", "--reverse", "HEAD").split()
    history, db = tmp_path / "gate.jsonl", tmp_path / "x.sqlite"
    command = [Fecbench.path, "compare", f"made-up@{good}", "made-up", str(tmp_path / "few.toml"), "--bisect"]
    command += ["--db", str(db), "--history", str(history), "--no-calibrate", "--jobs", "1"]
    git(repository, "bisect", "start", "HEAD", good)
    output = git(repository, "bisect", "run", *command)
    bad = git(repository, "rev-parse", "refs/bisect/bad")
    assert git(repository, "log", "-1", "--format=%s", bad.strip()) == "change 5\n"
    assert "is the first bad commit" in output
    entries = [json.loads(line) for line in history.read_text().splitlines()]
    verdicts = {entry["new"]["commit"]: entry["verdict"] for entry in entries}
    assert verdicts[bad.strip()] == "slower"
    assert all(entry["old"]["commit"] == good and entry["new"]["changed"] == 0 for entry in entries)
    figure = tmp_path / "history.svg"
    result: Done = fecbench_here("history", history, "--plot", figure)
    assert result.returncode == 0 and f"all networks: slower since {bad[:12]} (not yet in " in result.stdout
    assert ": 1.200 [1.200, 1.200]" in result.stdout
    assert bad[:12] in figure.read_text()
    document = json.loads(fecbench_here("history", history, "--json").stdout)
    assert {change["commit"] for change in document["changes"]} == {bad.strip()}


def test_bisect_leaves_out_what_cannot_be_built_and_ends_for_what_no_commit_can_mend(
    repository: Path, tmp_path: Path, fecbench_here: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FECBENCH_BUILDS", str(tmp_path / "builds"))
    git(repository, "checkout", "--quiet", "HEAD~3")  # the third
    folder = repository / "made-up"
    words = ("compare", f"{folder}@HEAD~2", folder, tmp_path / "few.toml", "--db", tmp_path / "x.sqlite")
    broken = fecbench_here(*words, "--bisect")
    assert broken.returncode == 125 and "has no impl.toml in revision" in broken.stderr
    assert fecbench_here(*words).returncode == 2
    for wrong in (("--option", "x"), ("--output", tmp_path / "few.toml"), ("--history", tmp_path / "x.csv")):
        assert fecbench_here(*words, "--bisect", *wrong).returncode == 128
    absent = fecbench_here(*words[:1], f"{folder}@none", *words[2:], "--bisect")
    assert absent.returncode == 128 and "has no revision 'none'" in absent.stderr


def test_a_file_that_compare_did_not_write_is_refused(fecbench_here: Any, tmp_path: Path) -> None:
    (tmp_path / "x.jsonl").write_text('{"at": 1}\n')
    assert "x.jsonl:1: " in fecbench_here("history", tmp_path / "x.jsonl").refusal()
    assert "cannot be read" in fecbench_here("history", tmp_path / "none.jsonl").refusal()
