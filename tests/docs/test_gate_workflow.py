"""The workflow of docs/ci/: its commands, run one after another on two revisions of a stack.

Nothing is installed and nothing is built here: `apt-get` and `make` note how they are called."""

import json
import os
import re
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


ARMS = {"base": "HEAD~1", "head": "HEAD"}
NOTES = '#!/bin/sh\necho "${0##*/} $*" >> "$CALLS"\n'


def workflow() -> dict[str, Any]:
    parsed: dict[str, Any] = yaml.safe_load(WORKFLOW.read_text())
    return parsed


def steps() -> dict[str, Any]:
    (job,) = workflow()["jobs"].values()
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
    for name in ("fecbench", "stack"):
        subprocess.run(["git", "init", "--quiet", tmp_path / name], check=True)
    git(tmp_path, "commit", "--quiet", "--allow-empty", "--message", "fecbench", tree="fecbench")
    commit(tmp_path)
    for name in ("apt-get", "make"):
        program = tmp_path / "bin" / name
        program.parent.mkdir(exist_ok=True)
        program.write_text(NOTES)
        program.chmod(0o755)
    return tmp_path


def git(workspace: Path, *words: str, tree: str = "stack") -> str:
    names = ("-c", "user.name=t", "-c", "user.email=t@localhost", "-c", "commit.gpgsign=false")
    ran = subprocess.run(
        ["git", "-C", str(workspace / tree), *names, *words], check=True, capture_output=True, text=True
    )
    return ran.stdout.strip()


def commit(workspace: Path) -> None:
    git(workspace, "add", ".")
    git(workspace, "commit", "--quiet", "--message", "change")


class Runner:
    """What runs the steps: GitHub's files and variables, with its expressions filled in."""

    def __init__(self, workspace: Path, change: dict[str, str]) -> None:
        self.workspace = workspace
        self._known = {
            "github.workspace": str(workspace),
            "github.event.pull_request.base.sha": change["base"],
            "github.event.pull_request.head.sha": change["head"],
        }
        self.calls = workspace / "calls"
        self.shown = workspace / "shown.md"
        self.output = workspace / "output"

    def run(self, step: dict[str, Any]) -> "subprocess.CompletedProcess[str]":
        named = workflow()["env"] | {"STACK": "bench/made-up"} | step.get("env", {})
        variables = {name: self._filled(value) for name, value in named.items()}
        given = {
            "HOME": str(self.workspace),  # git's settings of all trees are here
            "PATH": f"{self.workspace / 'bin'}:{os.environ['PATH']}",
            "CALLS": str(self.calls),
            "GITHUB_OUTPUT": str(self.output),
            "GITHUB_STEP_SUMMARY": str(self.shown),
        }
        return subprocess.run(
            ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", self._filled(step["run"])],
            cwd=self.workspace / step.get("working-directory", "."),
            env=os.environ | given | variables,
            capture_output=True,
            text=True,
        )

    def _filled(self, text: str) -> str:
        """Raises KeyError for an expression that nobody knows here."""
        return re.sub(r"\$\{\{ *(.*?) *\}\}", lambda found: self._known[found[1]], text)


def test_the_steps_one_by_one_fail_for_a_slower_revision_and_tell_why(workspace: Path) -> None:
    program = workspace / "stack" / "bench" / "made-up" / "simulator.py"
    program.write_text(program.read_text().replace("+ jitter_s\n", "+ jitter_s\n    dct_s *= 1.2\n"))
    commit(workspace)
    runner = Runner(workspace, {arm: git(workspace, "rev-parse", commit) for arm, commit in ARMS.items()})
    done = {name: runner.run(step) for name, step in steps().items() if "run" in step}
    failed = {name: ran.stderr for name, ran in done.items() if ran.returncode}
    assert failed.keys() == {"Compare"}, failed
    assert done["Compare"].returncode == 1, failed
    assert "**slower" in runner.shown.read_text()
    assert "make -C fecbench build" in runner.calls.read_text().splitlines()
    assert any(call.startswith("apt-get install -y") for call in runner.calls.read_text().splitlines())
    of_fecbench = git(workspace, "rev-parse", "HEAD", tree="fecbench")
    assert runner.output.read_text() == f"commit={of_fecbench}\n"
    assert (workspace / ".gitconfig").read_text().split() == ["[safe]", "directory", "=", "*"]
    for kept in steps()["Keep the report"]["with"]["path"].split():
        assert (workspace / kept).exists()


def test_the_cache_has_what_is_built() -> None:
    cached = steps()["Cache of what is built"]["with"]["path"].split()
    builds = workflow()["env"]["FECBENCH_BUILDS"].rpartition("/")[2]
    assert {"fecbench", builds} <= set(cached)
    assert "steps.which.outputs.commit" in steps()["Cache of what is built"]["with"]["key"]
    assert steps()["Which fecbench"]["id"] == "which"


@pytest.mark.skipif(shutil.which("node") is None, reason="needs node")
@pytest.mark.parametrize(("comments", "done"), [([], "createComment"), (["<!-- fecbench"], "updateComment")])
def test_the_comment_has_the_summary_and_takes_the_place_of_an_older_one(
    tmp_path: Path, comments: list[str], done: str
) -> None:
    (tmp_path / "compare").mkdir()
    (tmp_path / "compare" / "summary.md").write_text("**slower**")
    script = steps()["Comment on the pull request"]["with"]["script"]
    before = [{"id": 7, "body": f"{body} compare -->\nold"} for body in comments]
    program = f"""
        const say = name => async given => console.log(JSON.stringify([name, given.body]));
        const issues = {{ createComment: say("createComment"), updateComment: say("updateComment") }};
        const github = {{ rest: {{ issues }}, paginate: async () => {json.dumps(before)} }};
        const context = {{ repo: {{ owner: "o", repo: "r" }}, issue: {{ number: 1 }} }};
        (async () => {{ {script} }})();
    """
    ran = subprocess.run(["node", "-e", program], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert json.loads(ran.stdout) == [done, "<!-- fecbench compare -->\n**slower**"]
