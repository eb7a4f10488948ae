"""A simulator whose starter has no rights to give away is kept within its folders, and from the network."""

import errno
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from fecbench.checkout import REPOSITORY
from fecbench.runners.engines.launcher import Order
from fecbench.runners.sandbox import fence, kernel
from tests import ordinary

HOSTILE = Path(__file__).parent / "hostile" / "program.py"
PYTHON = "/usr/bin/python3"
WITHOUT = (sys.executable, "-m", "tests.without_landlock")
QUEUE = 0x0FEC0000 + os.getpid() % 0x10000
"""The key of a queue of System V, which the whole machine shares."""
NEWEST = 1000
needs_landlock = pytest.mark.skipif(not fence.is_offered(), reason="needs a kernel with Landlock")
SCOPES_FROM = 6
"""The version of Landlock from which signals stay within."""

# Has a simulator started by an order, beside things of the user: a queue, a service and another process.
LAUNCHER = """
from fecbench.runners.engines import launcher
from fecbench.runners.sandbox import kernel
known = kernel.landlock_version()
kernel.landlock_version = lambda: min(known, {version})
launcher.main()
"""
USER = """
import ctypes, json, os, socket, subprocess, sys
libc = ctypes.CDLL(None)
queue = libc.msgget(QUEUE, 0o1600)
with socket.socket(socket.AF_UNIX) as service, subprocess.Popen(["sleep", "600"]) as other:
    order = json.loads(sys.argv[1])
    places = json.loads(order["command"][-1])
    service.bind(places["socket"])
    service.listen()
    order["command"][-1] = json.dumps(places | {"process": other.pid})
    order["harness"] = os.getpid()
    try:
        ended = subprocess.run([sys.executable, "-c", LAUNCHER, json.dumps(order)], start_new_session=True)
    finally:
        other.kill()
        libc.msgctl(queue, 0, None)
sys.exit(ended.returncode)
"""


@dataclass
class Home:
    """Things of an ordinary user, with an implementation and the folder of a simulator."""

    folder: Path

    @property
    def places(self) -> dict[str, Any]:
        return {
            "secret": str(self.folder / "secret"),
            "folder": str(self.folder / "private"),
            "socket": str(self.folder / "service"),
            "queue": QUEUE,
        }

    def make(self) -> None:
        for name in ("private", "example", "simulator"):
            (self.folder / name).mkdir(mode=0o700)
        (self.folder / "secret").write_text("precious")
        (self.folder / "private" / "spare").touch()
        (self.folder / "private" / "script").write_text("#!/bin/sh\n")
        (self.folder / "private" / "script").chmod(0o700)
        shutil.copy(HOSTILE, self.folder / "example" / "program.py")
        (self.folder / "example" / "note").write_text("a note")
        if os.geteuid() == 0:
            for path in (self.folder, *self.folder.rglob("*")):
                os.chown(path, ordinary.USER, ordinary.USER)

    def attacked(self, within: Sequence[str] = (), version: int = NEWEST) -> dict[str, dict[str, str]]:
        """Return the report of a hostile simulator that the user runs, with Landlock up to a version."""
        program = self.folder / "example" / "program.py"
        order = Order(
            command=[PYTHON, str(program), json.dumps(self.places)],
            implementation=program.parent,
            folder=self.folder / "simulator",
            cgroup="fecbench-of-tests",
            harness=0,
        )
        user = USER.replace("QUEUE", str(QUEUE)).replace("LAUNCHER", repr(LAUNCHER.format(version=version)))
        ran = subprocess.run(
            [*ordinary.command(), *within, sys.executable, "-c", user, order.model_dump_json()],
            cwd=REPOSITORY,
            env={**os.environ, "HOME": str(self.folder)},
            capture_output=True,
            text=True,
            timeout=200,
        )
        assert ran.returncode == 0, ran.stderr
        report: dict[str, dict[str, str]] = json.loads(ran.stdout)
        return report


@pytest.fixture
def home() -> Iterator[Home]:
    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
        home = Home(Path(folder))
        home.make()
        yield home


def worked(report: dict[str, str]) -> set[str]:
    return {name for name, came_to in report.items() if came_to == "worked"}


# A container without privileges has a root who can become nobody else.
NAMESPACE = ("unshare", "--user", "--map-root-user")


@needs_landlock
@pytest.mark.parametrize("within", [(), NAMESPACE], ids=["a user", "root of a user namespace"])
def test_nothing_that_it_tries_works_and_all_that_it_needs_does(home: Home, within: Sequence[str]) -> None:
    assert_fenced(home, home.attacked(within), kernel.landlock_version())


@needs_landlock
@pytest.mark.parametrize("version", range(1, SCOPES_FROM))
def test_older_versions_of_landlock_leave_signals_open_and_nothing_else(home: Home, version: int) -> None:
    assert_fenced(home, home.attacked(version=version), min(version, kernel.landlock_version()))


def assert_fenced(home: Home, report: dict[str, dict[str, str]], version: int) -> None:
    tries, needs = report["tries"], report["needs"]
    assert worked(tries) == (set() if version >= SCOPES_FROM else {"end a process"})
    refusal = (
        "worked",
        "PermissionError: ",
        f"OSError: [Errno {errno.EXDEV}]",
        f"OSError: [Errno {errno.EPERM}]",
    )
    assert [came_to for came_to in tries.values() if not came_to.startswith(refusal)] == []
    assert worked(needs) == set(needs)
    assert (home.folder / "secret").read_text() == "precious"


def test_without_landlock_it_works_so_that_each_try_is_one(home: Home) -> None:
    report = home.attacked(WITHOUT)
    assert worked(report["tries"]) == set(report["tries"])
    assert worked(report["needs"]) == set(report["needs"])


TRY = """
import os
from fecbench.runners.sandbox import fence
os.setgroups([])
fence.enter([], [])
try:
    os.setgroups([])
except PermissionError:
    print("refused")
"""


@needs_landlock
@pytest.mark.skipif(os.geteuid() != 0, reason="needs root: gives up its capabilities")
def test_root_has_no_capability_behind_the_fence() -> None:
    result = subprocess.run([sys.executable, "-c", TRY], cwd=REPOSITORY, capture_output=True, text=True)
    assert result.stdout == "refused\n", result.stderr
