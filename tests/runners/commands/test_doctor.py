"""doctor tells what is good, and what is missing with the command that mends it."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from runners.commands import doctor
from runners.commands.doctor import Need

FECBENCH = str(Path(sys.executable).parent / "fecbench")


def test_json_and_status_agree() -> None:
    done = subprocess.run([FECBENCH, "doctor", "--json"], capture_output=True, text=True)
    document = json.loads(done.stdout)
    assert document["able"] == all(need["good"] for need in document["needs"] if need["required"])
    assert done.returncode == (0 if document["able"] else 1)
    for need in document["needs"]:
        assert need["good"] or need["mend"], need


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
def test_without_the_tools_trials_cannot_run(tmp_path: Path) -> None:
    """With an empty PATH the tools are missing; the kernel is asked all the same."""
    done = subprocess.run([FECBENCH, "doctor"], capture_output=True, text=True, env={"PATH": str(tmp_path)})
    assert done.returncode == 1
    assert "MISSING  mnexec: not found; mend: apt-get install mininet" in done.stdout


def test_a_need_is_one_line() -> None:
    assert doctor.line_of(Need("x", True, "works")) == "good     x: works"
    assert doctor.line_of(Need("x", False, "no", "make x")) == "MISSING  x: no; mend: make x"
    assert doctor.line_of(Need("x", False, "no", "make x", required=False)).startswith("absent ")


def test_a_probe_that_fails_is_told_and_does_not_raise() -> None:
    def probe() -> None:
        raise OSError("not permitted")

    assert "not permitted" in doctor._problem_of(probe)
