"""Programs that run ahead of others do so while it is asked for, and where it is allowed."""

import os
import subprocess
import sys

import pytest

from fecbench.runners.sandbox.priority import PRIORITY, ahead_of_others, is_granted

TELL = "import os; print(os.sched_getscheduler(0) == os.SCHED_RR, os.sched_getparam(0).sched_priority)"


def of_a_child() -> str:
    return subprocess.run([sys.executable, "-c", TELL], capture_output=True, text=True, check=True).stdout


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root: takes real-time priority")
def test_what_is_started_meanwhile_runs_ahead_and_nothing_afterwards() -> None:
    before = os.sched_getscheduler(0)
    assert is_granted()
    with ahead_of_others():
        assert of_a_child() == f"True {PRIORITY}\n"
    assert os.sched_getscheduler(0) == before
    assert of_a_child().startswith("False") or before == os.SCHED_RR


def test_where_it_is_not_allowed_nothing_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError

    before = os.sched_getscheduler(0)
    monkeypatch.setattr(os, "sched_setscheduler", refuse)
    assert not is_granted()
    with ahead_of_others():
        assert os.sched_getscheduler(0) == before
