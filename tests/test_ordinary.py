"""Programs that tests run as an ordinary user work in a checkout whose parent folder he may not enter."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from fecbench.checkout import REPOSITORY
from fecbench.runners.sandbox import kernel, view
from tests import ordinary

SHARED = {Path("/"), Path("/tmp"), Path("/var/tmp")}
"""Folders that nobody closes."""
HOSTILE_CHECK = "tests/runners/implementations/test_hostile_check.py"
VIRTUAL_CAMPAIGN = "tests/runners/campaign/test_virtual_campaign.py"
TESTS = [
    f"{HOSTILE_CHECK}::test_what_it_writes_is_bounded[ordinary-2]",
    f"{VIRTUAL_CAMPAIGN}::test_a_user_without_rights_runs_and_replays_a_campaign[here]",
    "tests/runners/cluster/test_hostile.py::test_whoever_runs_a_campaign_does_not_load_dask",
    "tests/runners/cluster/test_cluster.py::test_a_campaign_of_two_workers_comes_to_the_same_as_at_home",
]

pytestmark = [
    pytest.mark.skipif(not kernel.may_administer(), reason="needs CAP_SYS_ADMIN: makes mount namespaces"),
    pytest.mark.skipif(REPOSITORY.parent in SHARED, reason="needs a checkout in a folder that can be closed"),
]


def close_the_folder_above() -> None:
    """Close the folder above for this process, which gets a mount namespace for it: like a clone in /root."""
    kernel.unshare(kernel.CLONE_NEWNS, "mount namespace")
    kernel.mount("none", "/", "", kernel.MS_REC | kernel.MS_PRIVATE)
    checkout = view.open_path(REPOSITORY)
    kernel.mount("tmpfs", REPOSITORY.parent, "tmpfs", 0, "mode=700")
    REPOSITORY.mkdir(0o755)
    kernel.mount(f"/proc/self/fd/{checkout}", REPOSITORY, "", kernel.MS_BIND | kernel.MS_REC)
    os.chdir(REPOSITORY)


Run = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def run() -> Run:
    """Runs a command below the closed folder."""

    def run(*words: str) -> "subprocess.CompletedProcess[str]":
        environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
        return subprocess.run(
            words, preexec_fn=close_the_folder_above, env=environment, capture_output=True, text=True
        )

    return run


WHO = """
import os; from fecbench import runners
print(os.getuid(), os.getcwd(), runners.__path__[0])
"""


def test_a_user_comes_to_a_checkout_that_is_closed_to_him(run: Run) -> None:
    python = [sys.executable, "-P", "-c", WHO]
    as_user = ["setpriv", f"--reuid={ordinary.USER}", f"--regid={ordinary.USER}", "--clear-groups", "--"]
    refusal = run(*as_user, "env", *python)
    assert "Permission denied" in refusal.stderr
    let_in = run(*ordinary.command(), *python)
    assert let_in.stderr == ""
    assert let_in.stdout.split() == [
        str(ordinary.USER),
        str(REPOSITORY),
        str(REPOSITORY / "fecbench" / "runners"),
    ]


@pytest.mark.timeout(1200)
@pytest.mark.parametrize("tests", [TESTS[:2], pytest.param(TESTS[2:], marks=pytest.mark.slow)])
def test_tests_that_become_him_pass_there(run: Run, tests: list[str]) -> None:
    tested = run(sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *tests)
    assert tested.returncode == 0, tested.stdout
    assert f"{len(tests)} passed" in tested.stdout
