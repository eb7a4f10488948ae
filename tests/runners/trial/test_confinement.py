"""An endpoint that is hostile harms its own trial only: nothing that it tries to reach beyond it works."""

import json
import os
import shutil
import socket
import stat
import subprocess
import sys
import tempfile
import uuid
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from fecbench.dropper.command import COMMAND as DROPPER
from fecbench.results.store.records import TrialKey
from fecbench.runners.engines.engine import Finished
from fecbench.runners.engines.namespaces import NamespaceEngine
from fecbench.runners.sandbox import rights, view
from fecbench.runners.tasks.task import EndpointTask, Task
from fecbench.runners.trial import cgroup, logs
from fecbench.runners.trial.judge import Judgement, judge
from fecbench.topologies.link import LinkSettings
from tests.support import needs, processes, tasks

pytestmark = needs.TRIALS

PYTHON = "/usr/bin/python3"
HOSTILE = Path(__file__).parent / "hostile" / "endpoint.py"
IPC_KEY = 0x0FECBE0C
KEY = TrialKey("variant", "download-1000", 0, 0)


def task(options: dict[str, Any], timeout_s: float = 120) -> Task:
    """Return a task of a hostile endpoint. It takes the CPU as well, so its trial may be late."""
    end = EndpointTask(implementation="hostile", options=options)
    loss = {"model": "uniform", "p": 0.2}
    link = tasks.link(LinkSettings.symmetric(10, 5), loss, late_bound_us=10_000_000)
    return tasks.task(link, tasks.pair(client=end, server=end), timeout_s=timeout_s)


@dataclass
class Outside:
    """Things that an endpoint could harm, and their state."""

    implementation: Path
    folders: list[Path]
    options: dict[str, Any]
    services: list[socket.socket]

    def seen(self) -> dict[str, Any]:
        network = [["ip", "-j", "link"], ["ip", "-j", "route"]]
        sysctls = ("net/core/rmem_max", "kernel/panic", "vm/swappiness")
        return {
            "files": {path: self._stat(path) for folder in self.folders for path in folder.rglob("*")},
            "etc": [Path("/etc/passwd").read_bytes(), sorted(Path("/etc").iterdir())],
            "network": [subprocess.run(command, capture_output=True).stdout for command in network],
            "sysctls": [Path("/proc/sys", name).read_text() for name in sysctls],
            "calls": [self._called(service) for service in self.services],
        }

    @staticmethod
    def _stat(path: Path) -> tuple[int, ...]:
        status = path.lstat()
        return status.st_mode, status.st_uid, status.st_nlink, status.st_size, status.st_mtime_ns

    @staticmethod
    def _called(service: socket.socket) -> bool:
        try:
            service.accept()
        except BlockingIOError:
            return False
        return True


@pytest.fixture(scope="module")
def outside() -> Iterator[Outside]:
    """Things that every user of the machine may write, or call, were it not for the confinement."""
    with ExitStack() as stack:
        # A folder that endpoints see, and one for temporary files, of which they have their own.
        seen, folder = (
            Path(stack.enter_context(tempfile.TemporaryDirectory(dir=where))) for where in ("/var", "/tmp")
        )
        for path in (seen, folder, seen / "shared", implementation := folder / "example"):
            path.mkdir(exist_ok=True)
            path.chmod(0o777)
        database, secret = seen / "campaign.sqlite", folder / "secret"
        for path in (database, secret):
            path.write_text("precious")
            path.chmod(0o666)
        shutil.copy(HOSTILE, implementation / "endpoint.py")
        shutil.copy("/usr/bin/id", implementation / "id")
        (implementation / "id").chmod(0o4755)
        os.mknod(implementation / "null", stat.S_IFCHR | 0o666, os.makedev(1, 3))
        (implementation / "null").chmod(0o666)
        name = f"fecbench-test-{uuid.uuid4().hex[:8]}"
        addresses = [str(folder / "service"), f"/run/{name}", f"\0{name}"]
        services = [stack.enter_context(socket.socket(socket.AF_UNIX)) for _ in addresses]
        for service, address in zip(services, addresses, strict=True):
            service.bind(address)
            service.listen()
            service.setblocking(False)
            if not address.startswith("\0"):
                stack.callback(os.unlink, address)
                Path(address).chmod(0o777)
        options = {
            "database": str(database),
            "secret": str(secret),
            "shared": str(seen / "shared"),
            "setuid_id": str(implementation / "id"),
            "device": str(implementation / "null"),
            "dropper": str(DROPPER),
            "sockets": addresses,
            "ipc_key": IPC_KEY,
            "mark": name,
        }
        yield Outside(implementation, [seen, folder], options, services)


@dataclass
class Attack:
    """A trial of hostile endpoints, and what they report."""

    finished: Finished
    judgement: Judgement
    report: dict[str, str]
    amounts: dict[str, int]
    before: dict[str, Any]
    after: dict[str, Any]
    kept: Path
    """The files that the engine had in the trial's folder before it was removed."""


@pytest.fixture(scope="module")
def attack(outside: Outside, tmp_path_factory: pytest.TempPathFactory) -> Attack:
    command = [PYTHON, str(outside.implementation / "endpoint.py")]
    commands: Any = {"hostile": {"client": command, "server": command}}
    folders = {"hostile": outside.implementation}
    before = outside.seen()
    with NamespaceEngine(1, commands, folders) as engine:
        trial_task = task(outside.options | {"private_key": str(engine._folder / "server.key")})
        (finished,) = engine.run([(KEY, trial_task)])
        assert finished.folder is not None
        kept = tmp_path_factory.mktemp("kept") / "trial"
        shutil.move(finished.folder, kept)
    client = kept / "client"
    assert (client / "report.json").exists(), finished.outcome.endpoints
    return Attack(
        finished,
        judge(trial_task, finished.outcome),
        json.loads((client / "report.json").read_text()),
        json.loads((client / "amounts.json").read_text()),
        before,
        outside.seen(),
        kept,
    )


def test_nothing_that_it_tries_works_and_each_try_is_kept_off_by_the_kernel(attack: Attack) -> None:
    assert len(attack.report) >= 40
    mistakes = ("NameError", "TypeError", "AttributeError", "KeyError", "ValueError", "StopIteration")
    for wrong in ("worked", mistakes):
        assert {name: line for name, line in attack.report.items() if line.startswith(wrong)} == {}


def test_nothing_outside_has_changed_and_nothing_that_it_started_is_left(
    attack: Attack, outside: Outside
) -> None:
    assert (attack.judgement.state, attack.judgement.reason) == ("ok", "")
    assert attack.before == attack.after
    assert processes.with_mark(outside.options["mark"]) == {}


MOST = {
    "log_bytes": logs.SIZE_BYTES,
    "temporary_bytes": view.TEMPORARY_BYTES,
    "log_files": view.INODES,
    "processes": 512,
    "open_files": 4096,
    "memory_bytes": cgroup.MEMORY_BYTES,
}


def test_what_it_can_take_is_bounded(attack: Attack) -> None:
    assert attack.amounts.keys() == MOST.keys()
    for name, amount in attack.amounts.items():
        assert 0 < amount <= MOST[name], name


def test_what_is_kept_of_its_log_folder_are_regular_files_and_folders_of_root(attack: Attack) -> None:
    client = attack.kept / "client"
    kinds = {path: path.lstat().st_mode for path in client.rglob("*")}
    assert all(stat.S_ISREG(mode) or stat.S_ISDIR(mode) for mode in kinds.values())
    assert (client / "folder" / "kept").read_text() == "kept"
    names = {path.name for path in kinds}
    assert not {name for name in names if name.startswith("trap-")}
    assert not names & {"one-name", "other-name"}  # a file with two names
    assert sum(path.lstat().st_size for path in kinds) <= logs.SIZE_BYTES + len(kinds) * 4096
    assert max(len(path.relative_to(client).parts) for path in kinds) <= logs.DEPTH
    assert {path.lstat().st_uid for path in attack.kept.rglob("*")} == {0}


def test_trials_at_once_have_users_of_their_own() -> None:
    largest = 1 << 22  # no Linux gives a process a higher number
    users = [rights.first_user(process) for process in (1, 2, largest)]
    assert all(later - earlier >= rights.USERS for earlier, later in pairwise(users))
    assert users[-1] + rights.USERS < 1 << 31


WRITES_WITHOUT_END = "import os\nwhile True: os.write({}, b'x' * (1 << 20))"
FORKS_WITHOUT_END = """
import os
while True:
    try:
        os.fork()
    except OSError:
        pass
"""
IGNORES_SIGNALS = "import signal, time\nfor n in (2, 15): signal.signal(n, signal.SIG_IGN)\ntime.sleep(600)"


@pytest.mark.parametrize(
    ("client", "state"),
    [
        (WRITES_WITHOUT_END.format(1), "failed"),
        (WRITES_WITHOUT_END.format(2), "timeout"),
        (IGNORES_SIGNALS, "timeout"),
        (FORKS_WITHOUT_END, "timeout"),
    ],
)
def test_one_that_never_ends_is_ended(client: str, state: str) -> None:
    """An attack of any kind is reported in its own trial, and the next trial runs."""
    server = 'import time; print(\'{"event": "ready"}\', flush=True); time.sleep(600)'
    limit_s = 1 if state == "timeout" else 60
    _, judgement = run([PYTHON, "-c", client], [PYTHON, "-c", server], limit_s)
    assert judgement.state == state, judgement.reason


def run(
    client: list[str], server: list[str], timeout_s: float = 120, **folders: Path
) -> tuple[Finished, Judgement]:
    """A trial of these commands; its implementation's folder is `hostile`."""
    trial_task = task({}, timeout_s)
    with NamespaceEngine(1, {"hostile": {"client": client, "server": server}}, folders) as engine:
        (finished,) = engine.run([(KEY, trial_task)])
    return finished, judge(trial_task, finished.outcome)


# Says what it sees on standard error.
LOOK = """
import json, os, signal, sys
task = json.load(open(sys.argv[1]))
open(os.path.join(task["log_folder"], "mine"), "w").close()
open(os.environ["HOME"] + "/home", "w").close()
import note
print(note.TEXT, file=sys.stderr)
if task["role"] == "server":  # whose client may end as soon as it is ready
    open(task["private_key"]).close()
    signal.signal(signal.SIGINT, lambda *_: (print('{"event": "done"}', flush=True), os._exit(0)))
print('{"event": "ready"}', flush=True)
if task["role"] == "server":
    signal.pause()
open(task["authority"]).close()
print('{"event": "done", "metrics": {"dct_s": 1}}', flush=True)
"""


@pytest.mark.parametrize("mode", [0o755, 0o700])
def test_an_implementation_is_read_wherever_it_lies(mode: int) -> None:
    """One place is a home that nobody else may enter."""
    with tempfile.TemporaryDirectory(dir="/root") as home:
        folder = Path(home) / "mine" / "example"
        folder.mkdir(parents=True)
        (folder / "note.py").write_text("TEXT = 'a note from home'")
        (folder / "endpoint.py").write_text(LOOK)
        Path(home).chmod(mode)
        command = [sys.executable, str(folder / "endpoint.py")]
        finished, judgement = run(command, command, hostile=folder)
    assert finished.outcome.failure == ""
    for endpoint in finished.outcome.endpoints.values():
        assert (endpoint.exit_code, endpoint.stderr) == (0, "a note from home\n"), judgement


def test_a_program_that_cannot_be_executed_is_a_failure_with_its_name(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    program = tmp_path / "program"
    program.write_text("no program")
    program.chmod(0o755)
    _, judgement = run([str(program)], [str(program)], hostile=tmp_path)
    assert judgement.state == "failed"
    assert judgement.reason == f"server ended with 126: {program} cannot be started: Exec format error"


def test_a_program_that_its_user_may_not_execute_is_the_harness_s_fault(tmp_path: Path) -> None:
    """The check before showed that everybody may execute it, so the stack did not take this right away."""
    tmp_path.chmod(0o755)
    program = tmp_path / "program"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o700)
    finished, judgement = run([str(program)], [str(program)], hostile=tmp_path)
    assert judgement.state == "invalid"
    assert f"the server may not execute {program}: Permission denied" in finished.outcome.failure


def test_cgroups_end_with_the_harness() -> None:
    commands: Any = {"hostile": {"client": [PYTHON, "-c", "pass"], "server": [PYTHON, "-c", "pass"]}}
    with NamespaceEngine(1, commands) as engine:
        list(engine.run([(KEY, task({}))]))
        cgroups = [list(place.folder.glob(f"{engine._folder.name}.*/")) for place in cgroup.usable()]
        assert all(len(folders) == 1 for folders in cgroups)
    assert not [folder for folders in cgroups for folder in folders if folder.exists()]
