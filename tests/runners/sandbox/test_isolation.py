"""A function that runs isolated takes everything with it, however it ends."""

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from fecbench.checkout import REPOSITORY
from fecbench.runners.sandbox.isolation import IsolationError, run_isolated
from tests.support.processes import with_mark
from tests.waiting import wait_until

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="needs root: makes namespaces")


def await_none(mark: str) -> None:
    wait_until(lambda: not with_mark(mark), f"the ends of those with {mark}")


def orphan(mark: str) -> None:
    """Start a process that would outlive everybody, in a session of its own."""
    subprocess.Popen(
        [sys.executable, "-c", f"import time; time.sleep(600)  # {mark}"], start_new_session=True
    )


def test_the_answer_comes_back_and_orphans_are_killed() -> None:
    mark = f"orphan-{os.getpid()}-answer"

    def body() -> bytes:
        orphan(mark)
        return str(os.getpid()).encode()

    assert run_isolated(body, 60) == b"1"
    assert with_mark(mark) == {}


def test_network_and_proc_are_its_own() -> None:
    def body() -> bytes:
        subprocess.run(["ip", "link", "add", "isolated0", "type", "veth"], check=True)
        return " ".join(path.name for path in Path("/proc").iterdir() if path.name.isdigit()).encode()

    assert run_isolated(body, 60) == b"1"
    assert "isolated0" not in subprocess.run(["ip", "link"], capture_output=True, text=True).stdout


def test_signals_do_not_end_the_first_process_and_end_what_it_starts() -> None:
    def body() -> bytes:
        for number in (signal.SIGINT, signal.SIGTERM):
            os.kill(os.getpid(), number)
        child = subprocess.Popen(["sleep", "600"])
        child.terminate()
        another = subprocess.Popen(["sleep", "600"])
        another.send_signal(signal.SIGINT)
        return f"{child.wait(50)} {another.wait(50)}".encode()

    assert run_isolated(body, 60) == f"{-signal.SIGTERM} {-signal.SIGINT}".encode()


def test_a_body_that_fails_is_an_error() -> None:
    def body() -> bytes:
        raise RuntimeError("broken")

    with pytest.raises(IsolationError, match=r"status 1: RuntimeError.*broken"):
        run_isolated(body, 60)


def test_a_body_that_hangs_is_killed_with_what_it_started() -> None:
    mark = f"orphan-{os.getpid()}-hang"

    def body() -> bytes:
        orphan(mark)
        signal.pause()
        return b""

    with pytest.raises(IsolationError, match=r"within 0\.5 s"):
        run_isolated(body, 0.5)
    await_none(mark)


def test_a_caller_that_is_killed_leaves_nothing() -> None:
    mark = f"orphan-{os.getpid()}-caller"
    program = (
        "import subprocess, sys, time\n"
        "from fecbench.runners.sandbox.isolation import run_isolated\n"
        "def body():\n"
        f"    subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)  # {mark}'])\n"
        "    print('up', flush=True)\n"
        "    time.sleep(600)\n"
        "run_isolated(body, 600)\n"
    )
    caller = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE)
    assert caller.stdout
    assert caller.stdout.readline() == b"up\n"
    assert with_mark(mark)
    caller.kill()
    caller.wait()
    await_none(mark)


SLOW = """
import os, sys, time
from fecbench.runners.sandbox import isolation
first = getattr(isolation, sys.argv[1])
def slow(*given):
    print("begun", flush=True)
    time.sleep(1)
    first(*given)
setattr(isolation, sys.argv[1], slow)
def body():
    time.sleep(600)
"""


@pytest.mark.parametrize(
    ("first", "rest"),
    [
        ("_first_process", "isolation.run_isolated(body, 600)"),
        ("_hold_namespace", "isolation.go_on_in_pid_namespace(os.getppid()); body()"),
    ],
)
def test_a_caller_that_is_killed_while_its_first_process_begins_leaves_nothing(first: str, rest: str) -> None:
    """The first process is held up for a second, as by a machine that has more to do."""
    mark = f"orphan-{os.getpid()}-{first}"
    caller = subprocess.Popen([sys.executable, "-c", SLOW + rest, first, mark], stdout=subprocess.PIPE)
    assert caller.stdout
    assert caller.stdout.readline() == b"begun\n"
    caller.kill()
    caller.wait()
    await_none(mark)


# A root directory like the machine's that is no mount point.
CHROOT = """
mount -t tmpfs none "$1" && mkdir "$1/root" && cd "$1/root" || exit 9
for name in /*; do
    if [ -L "$name" ]; then
        cp -P "$name" . || exit 9
    elif [ -d "$name" ]; then
        mkdir ".$name" && mount --rbind "$name" ".$name" || exit 9
    fi
done
shift
exec chroot . "$@"
"""


NO_MOUNT_POINT = "the root directory is no mount point, as in a chroot; mend: enter it by pivot_root"


@pytest.fixture
def in_a_chroot(tmp_path: Path) -> list[str]:
    """The first words of a command that runs in a chroot."""
    (tmp_path / "top").mkdir()
    return ["unshare", "--mount", "sh", "-c", CHROOT, "sh", str(tmp_path / "top")]


@pytest.mark.parametrize(
    ("where", "why"), [("without CAP_SYS_ADMIN", "it needs CAP_SYS_ADMIN"), ("in a chroot", NO_MOUNT_POINT)]
)
def test_a_campaign_is_refused_in_one_line_where_no_trial_could_be_isolated(
    fecbench: Any, little_design: Path, tmp_path: Path, in_a_chroot: list[str], where: str, why: str
) -> None:
    within = in_a_chroot if where == "in a chroot" else ["setpriv", "--bounding-set=-sys_admin"]
    database = tmp_path / "x.sqlite"
    refusal = fecbench("run", little_design, "--db", database, within=within)
    assert refusal.returncode == 2, refusal.stderr
    assert refusal.stderr.count("\n") == 1
    assert "cannot make PID, mount and network namespaces here: " in refusal.stderr
    assert why in refusal.stderr
    assert not database.exists()


@pytest.mark.usefixtures("can_run_trials")
def test_the_demonstration_is_refused_in_one_line_there(
    little_design: Path, tmp_path: Path, in_a_chroot: list[str]
) -> None:
    first = [sys.executable, "-m", "fecbench.runners.campaign.aside", little_design, tmp_path / "x.sqlite"]
    subprocess.run(first, cwd=REPOSITORY, check=True)  # answers of programs are kept, and hide nothing
    refusal = subprocess.run([*in_a_chroot, *first], cwd=REPOSITORY, capture_output=True, text=True)
    assert (refusal.returncode, refusal.stdout, refusal.stderr.count("\n")) == (2, "", 1), refusal.stderr
    assert NO_MOUNT_POINT in refusal.stderr
