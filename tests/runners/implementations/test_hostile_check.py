"""A program that is asked about options harms nobody, and one that does not answer is told in one line."""

import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from fecbench.checkout import REPOSITORY
from fecbench.runners import scratch
from fecbench.runners.sandbox import kernel
from fecbench.runners.sandbox.rights import FIRST_USER
from tests import ordinary
from tests.support.processes import with_mark

PASSWORD = "postgresql://u:secretpw@h/db"
Refused = Callable[..., str]

# With the program's folder and its limit as arguments.
ASK = """
import sys
from pathlib import Path
from fecbench.runners.implementations import implementation
from fecbench.runners.refusal import Refusal
implementation.CHECK_LIMIT_S = float(sys.argv[2])
try:
    implementation.load(Path(sys.argv[1])).check_together({}, "x")
except Refusal as refusal:
    print(refusal)
"""


def as_harness(user: str) -> list[str]:
    """Return the first words of a command that runs a harness with a user's rights."""
    if user == "root" and not kernel.may_administer():
        pytest.skip("needs root: gives rights away")
    return ordinary.command() if user == "ordinary" else []


@pytest.fixture(params=["root", "ordinary"])
def refused(request: pytest.FixtureRequest, folder: Path) -> Iterator[Refused]:
    """The refusal of a harness whose implementation has this Python program as its `check`."""
    harness = as_harness(request.param)
    with tempfile.TemporaryDirectory(dir="/tmp") as shared:
        implementation = Path(shared) / "example"
        implementation.mkdir()
        declared = (folder / "impl.toml").read_text()
        (implementation / "impl.toml").write_text(
            declared.replace("workloads =", 'check = ["check"]\nworkloads =')
        )
        for path in (implementation.parent, implementation):
            path.chmod(0o755)

        def refused(program: str, limit_s: float = 100) -> str:
            (implementation / "check").write_text(f"#!/usr/bin/python3\n{program}")
            (implementation / "check").chmod(0o755)
            result = subprocess.run(
                [*harness, sys.executable, "-c", ASK, str(implementation), str(limit_s)],
                cwd=REPOSITORY,
                env={**os.environ, "FECBENCH_DB": PASSWORD, "PYTHONDONTWRITEBYTECODE": "1"},
                capture_output=True,
                text=True,
            )
            assert result.returncode == 0, result.stderr
            return result.stdout

        yield refused


def reported(refusal: str) -> dict[str, Any]:
    """Return the JSON document in the last line of a `check`."""
    _, _, text = refusal.partition("the defaults: ")
    report: dict[str, Any] = json.loads(text)
    return report


LOOK = """
import json, os, socket, sys
status = dict(line.split(":", 1) for line in open("/proc/self/status"))
def worked(deed):
    try:
        deed()
    except OSError:
        return False
    return True
def connect():
    socket.create_connection(("127.0.0.1", PORT), 2)
print(json.dumps({
    "users": os.getresuid() + os.getresgid(),
    "groups": os.getgroups(),
    "capabilities": {name: int(status[name], 16) for name in status if name.startswith("Cap")},
    "no_new_privs": int(status["NoNewPrivs"]),
    "environment": dict(os.environ),
    "here": os.getcwd(),
    "writes": [path for path in PATHS if worked(lambda: open(path, "w"))],
    "connects": worked(connect),
    "processes": sum(name.isdigit() for name in os.listdir("/proc")),
}), file=sys.stderr)
sys.exit(2)
"""


@pytest.mark.parametrize("refused", ["root"], indirect=True)
def test_one_that_root_asks_has_no_rights(refused: Refused) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        name = f"fecbench-test-{uuid.uuid4().hex[:8]}"
        forbidden = [f"{place}/{name}" for place in ("/etc", "/var", "/root", REPOSITORY)]
        of_its_own = [f"/tmp/{name}", name]
        values = f"PATHS = {forbidden + of_its_own}\nPORT = {server.getsockname()[1]}\n"
        report = reported(refused(values + LOOK))
    remains = [path for path in map(Path, forbidden + of_its_own) if path.exists()]
    for path in remains:
        path.unlink()
    assert remains == []
    assert report["writes"] == of_its_own
    assert len(set(report["users"])) == 1
    assert report["users"][0] >= FIRST_USER
    assert report["groups"] == []
    assert set(report["capabilities"].values()) == {0}
    assert report["no_new_privs"] == 1
    assert not report["connects"]
    assert report["processes"] == 2  # itself, and who awaits it


def test_its_environment_is_that_of_endpoints_and_it_gains_no_rights(refused: Refused) -> None:
    report = reported(refused(f"PATHS, PORT = [], 9\n{LOOK}"))
    assert set(report["environment"]) == {"PATH", "LANG", "HOME"}
    assert report["environment"]["HOME"] == report["here"]
    assert not Path(report["here"]).exists()
    assert scratch.OF_PROCESS.fullmatch(Path(report["here"]).name), "clean removes it after a kill"
    assert report["no_new_privs"] == 1


@pytest.mark.parametrize("ends", [True, False])
def test_nothing_that_it_started_is_left(refused: Refused, ends: bool) -> None:
    """Processes in sessions of their own end, too; nobody waits for them, even if one holds the outputs."""
    mark = f"fecbench-test-{uuid.uuid4().hex[:8]}"
    program = f"""
import subprocess, sys, time
sleep = "import time; time.sleep(3000)"
for output in (None, subprocess.DEVNULL):
    started = [sys.executable, "-c", sleep, "{mark}"]
    subprocess.Popen(started, stdout=output, stderr=output, start_new_session=True)
time.sleep(0 if {ends} else 3000)
sys.exit("no")
"""
    refusal = refused(program, 100 if ends else 1)
    assert ("the defaults: no" if ends else "did not answer within 1 s") in refusal
    assert with_mark(mark) == {}


@pytest.mark.parametrize(("refused", "output"), [("root", 1), ("ordinary", 2)], indirect=["refused"])
def test_what_it_writes_is_bounded(refused: Refused, output: int) -> None:
    program = f"import os\nfor _ in range(100): os.write({output}, b'x' * 1_000_000)"
    assert refused(program).endswith("/check wrote more than 65536 bytes\n")


def test_one_that_never_ends_is_ended_and_named_in_one_line(refused: Refused) -> None:
    program = """
import os, signal
for number in range(1, 32):
    if number not in (signal.SIGKILL, signal.SIGSTOP):
        signal.signal(number, signal.SIG_IGN)
print("busy", flush=True)
while True: pass
"""
    refusal = refused(program, 0.5)
    assert refusal.startswith("x: /tmp/")
    assert refusal.endswith("/example/check did not answer within 0.5 s\n")


def test_one_that_a_signal_ends_is_said_to_have_ended_so(refused: Refused) -> None:
    refusal = refused("import os, signal\nos.kill(os.getpid(), signal.SIGKILL)")
    assert refusal == f"x: the defaults: refused with {-signal.SIGKILL}\n"
