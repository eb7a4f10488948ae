"""The workflow of docs/ci/, as GitHub's runner runs it: what its steps are given, and the comment at the end.

In a container the runner rewrites its own paths in the values of variables, and in nothing else
(github.com/actions/runner, src/Runner.Worker/Handlers/StepHost.cs).
"""

import json
import re
import subprocess
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

from fecbench.checkout import REPOSITORY

WORKFLOW = REPOSITORY / "docs" / "ci" / "compare.yml"
OUTSIDE = "/home/runner/work/my-stack/my-stack"
"""The workspace by the path that it has outside of the container."""
BASH = ("bash", "--noprofile", "--norc", "-eo", "pipefail")
"""The command that `shell: bash` means."""

Ran = subprocess.CompletedProcess[str]
Execute = Callable[[Path, Mapping[str, str], list[str]], Ran]
"""Runs a command in a folder of the machine, with these variables."""


def workflow() -> dict[str, Any]:
    parsed: dict[str, Any] = yaml.safe_load(WORKFLOW.read_text())
    return parsed


def steps() -> dict[str, Any]:
    (job,) = workflow()["jobs"].values()
    return {step["name"]: step for step in job["steps"] if "name" in step}


class Job:
    """The job for one pull request or push, on a machine that can execute commands."""

    def __init__(
        self,
        execute: Execute,
        workspace: Path,
        stack: str,
        change: Mapping[str, str],
        root: Path = Path("/"),
        *,
        pushed: bool = False,
    ) -> None:
        """`stack`: what a maintainer writes into `env`; `change`: the commits `base` and `head`, of a pull
        request or, `pushed`, of main before and after.

        `workspace` is a path of the machine, whose files lie below `root` here.
        """
        self._execute, self._workspace, self._stack = execute, workspace, stack
        names = (
            {"base": "github.event.before", "head": "github.sha"}
            if pushed
            else {end: f"github.event.pull_request.{end}.sha" for end in change}
        )
        self._known = {names[end]: commit for end, commit in change.items()}
        self._known["github.workspace"] = OUTSIDE
        self._files = {name: workspace / name for name in ("GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY")}
        self._root = root

    def run(self, written: Callable[[str], str] = str) -> Iterator[tuple[str, Ran]]:
        """Run every `run` step in order until one fails; `written` may rewrite the text of each."""
        for name, step in steps().items():
            if "run" in step:
                ran = self._run(step, written(step["run"]))
                yield name, ran
                if ran.returncode != 0:
                    return

    def filled(self, text: str) -> str:
        """The text with its expressions' values: of several, the first that has one. Raises KeyError for an
        expression that has none."""

        def value(match: re.Match[str]) -> str:
            names = match[1].split(" || ")
            return self._known[next((name for name in names if name in self._known), names[0])]

        return re.sub(r"\$\{\{ *(.*?) *\}\}", value, text)

    @property
    def summary(self) -> str:
        """Return the page of the run."""
        return self._here(self._files["GITHUB_STEP_SUMMARY"]).read_text()

    def _run(self, step: Mapping[str, Any], script: str) -> Ran:
        named = workflow()["env"] | {"FECBENCH_STACK": self._stack} | step.get("env", {})
        variables = {
            name: self.filled(value).replace(OUTSIDE, str(self._workspace)) for name, value in named.items()
        }
        variables |= {name: str(path) for name, path in self._files.items()}
        variables |= {"CI": "true", "GITHUB_ACTIONS": "true", "GITHUB_WORKSPACE": str(self._workspace)}
        folder = self._workspace / step.get("working-directory", ".")
        ran = self._execute(folder, variables, [*BASH, "-c", self.filled(script)])
        if "id" in step:
            for line in self._here(self._files["GITHUB_OUTPUT"]).read_text().splitlines():
                name, _, value = line.partition("=")
                self._known[f"steps.{step['id']}.outputs.{name}"] = value
        return ran

    def _here(self, path: Path) -> Path:
        return self._root / path.relative_to("/")


def comment(workspace: Path, before: list[dict[str, Any]]) -> tuple[str, str]:
    """Return the method of GitHub's that the step calls which comments, and the comment.

    `before`: the comments that are there. Needs node.
    """
    script = steps()["Comment on the pull request"]["with"]["script"]
    program = f"""
        const say = name => async given => console.log(JSON.stringify([name, given.body]));
        const issues = {{ createComment: say("createComment"), updateComment: say("updateComment") }};
        const github = {{ rest: {{ issues }}, paginate: async () => {json.dumps(before)} }};
        const context = {{ repo: {{ owner: "o", repo: "r" }}, issue: {{ number: 1 }} }};
        (async () => {{ {script} }})();
    """
    ran = subprocess.run(["node", "-e", program], cwd=workspace, capture_output=True, text=True, check=True)
    deed, body = json.loads(ran.stdout)
    return deed, body
