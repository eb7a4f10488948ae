"""The workflow of docs/ci/: its step that compares, run on two revisions of a stack."""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from fecbench.checkout import REPOSITORY
from tests.runners.conftest import MADE_UP

WORKFLOW = REPOSITORY / "docs" / "ci" / "compare.yml"
DESIGN = """
base = "recovery"
name = "quick"
title = "A few networks"
repetitions = 6
without = ["workloads"]
[plan]
points = 6
[[workloads]]
name = "download"
size_bytes = 10_000
"""
FEW_NETWORKS = (
    '#!/bin/sh\nfirst=$1 old=$2 new=$3\nshift 3\nexec {} "$first" "$old" "$new" {} "$@" --no-calibrate\n'
)
"""In the place of the command: the same over fewer networks."""


def steps() -> dict[str, Any]:
    (job,) = yaml.safe_load(WORKFLOW.read_text())["jobs"].values()
    return {step["name"]: step for step in job["steps"] if "name" in step}


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    """What a runner has when it comes to compare: fecbench beside a stack of two revisions."""
    command = tmp_path / "fecbench" / ".venv" / "bin" / "fecbench"
    command.parent.mkdir(parents=True)
    (tmp_path / "quick.toml").write_text(DESIGN)
    command.write_text(FEW_NETWORKS.format(Path(sys.executable).parent / "fecbench", tmp_path / "quick.toml"))
    command.chmod(0o755)
    shutil.copytree(MADE_UP, tmp_path / "stack" / "bench" / "made-up")
    git(tmp_path, "init", "--quiet")
    commit(tmp_path)
    return tmp_path


def git(workspace: Path, *words: str) -> str:
    names = ("-c", "user.name=t", "-c", "user.email=t@localhost", "-c", "commit.gpgsign=false")
    ran = subprocess.run(
        ["git", "-C", str(workspace / "stack"), *names, *words], check=True, capture_output=True, text=True
    )
    return ran.stdout.strip()


def commit(workspace: Path) -> None:
    git(workspace, "add", ".")
    git(workspace, "commit", "--quiet", "--message", "change")


def test_the_step_that_compares_fails_for_a_slower_revision_and_tells_why(workspace: Path) -> None:
    program = workspace / "stack" / "bench" / "made-up" / "simulator.py"
    program.write_text(program.read_text().replace("+ jitter_s\n", "+ jitter_s\n    dct_s *= 1.2\n"))
    commit(workspace)
    step = steps()["Compare"]
    variables = {
        "STACK": "bench/made-up",
        "BASE": git(workspace, "rev-parse", "HEAD~1"),
        "HEAD": git(workspace, "rev-parse", "HEAD"),
        "FECBENCH_BUILDS": str(workspace / "builds"),
        "GITHUB_STEP_SUMMARY": str(workspace / "shown.md"),
    }
    assert step["env"].keys() <= variables.keys()
    done = subprocess.run(
        ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]],
        cwd=workspace / step["working-directory"],
        env=os.environ | variables,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 1, done.stderr
    assert "**slower" in (workspace / "shown.md").read_text()
    for kept in steps()["Keep the report"]["with"]["path"].split():
        assert (workspace / kept).exists()


def test_steps_name_what_is_there() -> None:
    assert "make -C fecbench build" in steps()["Build fecbench"]["run"]
    assert "compare/summary.md" in steps()["Comment on the pull request"]["with"]["script"]
