"""Campaigns under faults: kills at any moment, full, locked and read-only disks, a clock that is stepped.

FECBENCH_KILLS=50 pytest tests/runners/test_faults.py -k kills    # as many kills as are wanted; by default 4
"""

import json
import os
import random
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import count, product
from pathlib import Path
from typing import Any

import pytest

from fecbench.checkout import REPOSITORY
from fecbench.dropper.command import Attachment, attach
from fecbench.dropper.model import Pattern
from fecbench.runners import scratch
from tests.results.conftest import new_postgresql, postgresql_folder  # noqa: F401 - a fixture
from tests.runners.conftest import MADE_UP, WriteDesign
from tests.support import preloaded
from tests.support.campaigns import only_campaign
from tests.support.designs import workload
from tests.support.processes import descendants, with_mark
from tests.waiting import wait_until

KILLS = int(os.environ.get("FECBENCH_KILLS", "4"))
POWER_CUT = "power cut"
KILL_KINDS = (signal.SIGKILL, signal.SIGTERM, signal.SIGINT, POWER_CUT)
LIMIT_S = 500.0

pytestmark = pytest.mark.usefixtures("can_run_trials", "fecbench")

# Where it is not the little design.
DESIGN = {
    "timeout_s": 20,
    "plan": {"method": "wsp", "points": 2},
    "constants": {"owd_ms": 60, "loss.model": "uniform"},
    "workloads": [workload(size_bytes=1_000)],
}
TRIALS = set(product(("off", "xor, 4/5"), range(2), range(2)))
ONE_TRIAL = ("--filter", "variant=off", "--filter", "point=0", "--filter", "repetition=0")


@pytest.fixture
def design(write_design: Any, tmp_path: Path) -> Path:
    written: Path = write_design(tmp_path, **DESIGN)
    return written


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder for temporary files of this test and of what it starts."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setenv("TMPDIR", str(folder))
    monkeypatch.setattr(tempfile, "tempdir", None)
    return folder


@dataclass(frozen=True)
class Stored:
    """The trials as they lie in the file; none when it has no tables yet."""

    attempts: dict[int, tuple[Any, ...]]  # every run of every trial, whatever its state
    trials: list[tuple[str, int, int]]  # those that count


def stored(database: Path) -> Stored:
    if not database.exists():
        return Stored({}, [])
    # A writer that was killed while it stored may leave a journal, which takes a writer to undo.
    with closing(sqlite3.connect(f"file:{database}?mode=rw", uri=True, timeout=LIMIT_S)) as connection:
        if not connection.execute("SELECT name FROM sqlite_master WHERE name = 'trials'").fetchall():
            return Stored({}, [])
        columns = "id, variant, point, repetition, attempt, state, started_at"
        attempts = {row[0]: row[1:] for row in connection.execute(f"SELECT {columns} FROM trials")}
        counting = "SELECT variant, point, repetition FROM trials WHERE NOT superseded"
        trials = connection.execute(counting).fetchall()
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    return Stored(attempts, trials)


# Kills


def of_the_campaign(mark: str) -> set[int]:
    """The processes whose command line or environment has the mark: the path of its temporary files."""
    return with_mark(mark, ("cmdline", "environ")).keys() - {os.getpid()}


def cut_the_power(harness: subprocess.Popen[str], moments: random.Random) -> None:
    """Kill harness, workers and everything in their trials at once."""
    everything = [harness.pid, *descendants(harness.pid)]
    moments.shuffle(everything)
    for process in everything:
        try:
            os.kill(process, signal.SIGKILL)
        except ProcessLookupError:  # it died with one that was killed before it
            continue


class Foreign:
    """Things of somebody else on this machine, with names like ours."""

    def __init__(self, folder: Path) -> None:
        self.namespace = f"fecbench-foreign-{uuid.uuid4().hex[:8]}"
        self.attachment = Attachment(f"/run/netns/{self.namespace}", "r1-r2", "ingress")
        self.note = folder / f"{scratch.PREFIX}of-somebody-else" / "note"

    def make(self) -> None:
        self.note.parent.mkdir()
        self.note.write_text("keep me")
        self._run("ip", "netns", "add", self.namespace)
        self._inside("ip", "tuntap", "add", "r1-r2", "mode", "tap")
        self._inside("ip", "link", "set", "r1-r2", "up")
        attach(self.attachment, Pattern((3,)), 1)
        self.process = subprocess.Popen(
            ["ip", "netns", "exec", self.namespace, "sleep", "1000"], env={"PATH": os.environ["PATH"]}
        )

    def remove(self) -> None:
        self.process.kill()
        self.process.wait()
        self._run("ip", "netns", "del", self.namespace)

    def view(self) -> list[object]:
        """Return everything visible of them."""
        listings = (
            ("ip", "-j", "link"),
            ("tc", "-j", "qdisc", "show", "dev", "r1-r2"),
            ("tc", "-j", "filter", "show", "dev", "r1-r2", "ingress"),
        )
        return [*(self._inside(*listing) for listing in listings), self.note.read_text(), self.process.poll()]

    def _inside(self, *arguments: str) -> str:
        return self._run("ip", "netns", "exec", self.namespace, *arguments)

    @staticmethod
    def _run(*arguments: str) -> str:
        return subprocess.run(arguments, check=True, capture_output=True, text=True).stdout


@pytest.fixture
def foreign(temporary: Path) -> Iterator[Foreign]:
    things = Foreign(temporary)
    things.make()
    yield things
    things.remove()


def named_namespaces_and_interfaces() -> set[str]:
    """Return names outside of trials, where a trial makes none. Other tests make namespaces with their own
    names."""
    of_tests = ("-test-", "-foreign-")
    names = (path.name for path in Path("/run/netns").iterdir())
    namespaces = {name for name in names if not any(mark in name for mark in of_tests)}
    return namespaces | {path.name for path in Path("/sys/class/net").iterdir()}


def await_no_process(mark: str) -> None:
    wait_until(lambda: not of_the_campaign(mark), f"the ends of those with {mark}")


def started(command: Sequence[object]) -> subprocess.Popen[str]:
    """Start a process whose errors can be read; its output is discarded."""
    words, nobody = [*map(str, command)], subprocess.DEVNULL
    return subprocess.Popen(words, cwd=REPOSITORY, stdout=nobody, stderr=subprocess.PIPE, text=True)


def kill_at_some_moment(
    fecbench: Any, design: Path, database: Path, kind: signal.Signals | str, moments: random.Random
) -> tuple[int, str]:
    """Run the campaign and kill it: while it begins or while it runs; status and last words."""
    jobs = str(moments.choice((1, 2)))
    harness = started([fecbench.path, "run", "--no-calibrate", design, "--db", database, "--jobs", jobs])
    assert harness.stderr
    if moments.random() < 0.75:
        while "trials to run" not in (line := harness.stderr.readline()):
            assert line, "it ended before it began"
    # Not an event that is awaited, but the moment of the kill: anywhere in the campaign.
    time.sleep(moments.uniform(0, 1.5))
    if isinstance(kind, signal.Signals):
        harness.send_signal(kind)
    else:
        cut_the_power(harness, moments)
    _, output = harness.communicate(timeout=LIMIT_S)
    return harness.returncode, output


@pytest.mark.timeout(600 + 60 * KILLS)
def test_kills_at_any_moment_lose_no_trial_and_leave_nothing_and_touch_nothing_foreign(
    fecbench: Any, design: Path, tmp_path: Path, temporary: Path, foreign: Foreign
) -> None:
    moments = random.Random(20260314)
    databases = (tmp_path / f"{number}.sqlite" for number in count())
    database = next(databases)
    finished = stored(database)
    theirs = foreign.view()
    around = named_namespaces_and_interfaces()
    mark = str(temporary)
    for number in range(KILLS):
        if len(finished.trials) == len(TRIALS):
            database = next(databases)
            finished = stored(database)
        left_before = set(temporary.iterdir())
        kind = KILL_KINDS[number % len(KILL_KINDS)]
        status, output = kill_at_some_moment(fecbench, design, database, kind, moments)
        await_no_process(mark)
        if status not in (0, 1):  # it had not ended of itself
            assert status in ((-signal.SIGKILL,) if kind == POWER_CUT else (-kind, 128 + kind)), output
        if status > 128:
            assert "what was finished is kept" in output.splitlines()[-1]
        if status >= 0:
            assert set(temporary.iterdir()) == left_before
        finished = nothing_lost(finished, database)
    resumed = fecbench.run(design, database)
    assert resumed.returncode in (0, 1), resumed.stderr
    assert set(nothing_lost(finished, database).trials) == TRIALS
    assert fecbench("clean").returncode == 0
    assert list(temporary.iterdir()) == [foreign.note.parent]
    assert foreign.view() == theirs
    assert named_namespaces_and_interfaces() == around


NewDatabase = Callable[[], str]


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.slow)])
def new_database(request: pytest.FixtureRequest, tmp_path: Path) -> NewDatabase:
    """Gives the address of a new database each time, of each kind in turn.

    To be asked for before `temporary`: the environment of a server that begins later would have its mark.
    """
    if request.param == "sqlite":
        numbers = count()
        return lambda: str(tmp_path / f"shared-{next(numbers)}.sqlite")
    folder = request.getfixturevalue("postgresql_folder")
    return lambda: new_postgresql(folder)


def some_moment(
    fecbench: Any, design: Path, database: str, kind: signal.Signals | str, moments: random.Random
) -> None:
    """Run the campaign by two harnesses, and kill one at some moment; the other ends by itself."""
    command = [fecbench.path, "run", "--no-calibrate", design, "--db", database]
    harnesses = [started(command) for _ in range(2)]
    # Not an event that is awaited, but the moment of the kill: anywhere in the campaign.
    time.sleep(moments.uniform(0.3, 3.0))
    victim, other = harnesses if moments.random() < 0.5 else reversed(harnesses)
    if isinstance(kind, signal.Signals):
        victim.send_signal(kind)
    else:
        cut_the_power(victim, moments)
    victim.communicate(timeout=LIMIT_S)
    _, output = other.communicate(timeout=LIMIT_S)
    assert other.returncode in (0, 1), output


@pytest.mark.timeout(60 + 30 * 50)
@pytest.mark.parametrize("kills", [1, pytest.param(50, marks=pytest.mark.slow)])
def test_of_two_harnesses_on_one_campaign_one_is_killed_and_the_other_runs_each_trial_once(
    fecbench: Any, design: Path, new_database: NewDatabase, temporary: Path, kills: int
) -> None:
    around = named_namespaces_and_interfaces()
    moments = random.Random(20261122 + kills)
    for number in range(kills):
        address = new_database()
        some_moment(fecbench, design, address, KILL_KINDS[number % len(KILL_KINDS)], moments)
        await_no_process(str(temporary))
        with only_campaign(address) as (database, campaign):
            keys = [trial.record.key for trial in database.trials(campaign.id)]
            assert database.claims(campaign.id) == {}
        trials = [(key.variant, key.point, key.repetition) for key in keys]
        assert sorted(trials) == sorted(TRIALS), "each trial once"
        if "://" not in address:
            assert sorted(stored(Path(address)).trials) == sorted(TRIALS)  # of a file that is whole
    assert fecbench("clean").returncode == 0
    assert list(temporary.iterdir()) == []
    assert named_namespaces_and_interfaces() == around


def nothing_lost(before: Stored, database: Path) -> Stored:
    """Return the database's present content: everything from before, and no trial twice."""
    now = stored(database)
    assert before.attempts.items() <= now.attempts.items(), "a finished trial was lost or changed"
    assert len(now.trials) == len(set(now.trials)), "a trial is there twice"
    return now


# Disks and locks


SMALL_DISK = """
import sys
from pathlib import Path
from fecbench.runners.commands.command_line import main
from fecbench.runners.sandbox import kernel
kernel.unshare(kernel.CLONE_NEWNS, "mount namespace")
kernel.mount("none", "/", "", kernel.MS_REC | kernel.MS_PRIVATE)
kernel.mount("tmpfs", Path({folder!r}), "tmpfs", 0, "size={size}")
sys.argv = {words!r}
"""


def on_a_small_disk(
    size: str, folder: Path, *words: object, program: str = "main()"
) -> subprocess.CompletedProcess[str]:
    """Run `fecbench`, or a program with its words, that sees a disk of that size at `folder`."""
    begin = SMALL_DISK.format(size=size, folder=str(folder), words=["fecbench", *map(str, words)])
    return preloaded.script(begin + program, REPOSITORY, os.environ, LIMIT_S)


FILL = """
import json, os, sqlite3, subprocess
from fecbench.runners.campaign import share
design, implementations, folder = sys.argv[1:]
share.BATCH_TRIALS = 1

def run(*options):
    said = os.path.join(os.environ["TMPDIR"], "said")
    child = os.fork()
    if not child:
        sys.argv = ["fecbench", "run", design, "--engine", "virtual", "--implementations", implementations]
        sys.argv += ["--no-calibrate", "--jobs", "1", "--db", folder + "/x.sqlite", *options]
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        os.dup2(os.open(said, os.O_CREAT | os.O_WRONLY | os.O_TRUNC), 2)
        main()
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    lines = open(said).read().splitlines()
    os.remove(said)
    return {"status": status, "said": lines[-1], "lines": len(lines)}

def trials():
    connection = sqlite3.connect("file:" + folder + "/x.sqlite?mode=ro", uri=True)
    return connection.execute("SELECT count(*) FROM trials WHERE NOT superseded").fetchone()[0]

def remount(option):
    subprocess.run(["mount", "-o", "remount," + option, folder], check=True)

report = {"full": run(), "kept": trials()}
remount("size=16m")
report["resumed"] = run("--resume")
report["complete"] = trials()
remount("ro")
report["read_only"] = run("--campaign", "another")
report["still"] = trials()
print(json.dumps(report))
"""


def test_a_campaign_on_a_full_or_read_only_disk_ends_in_one_line_keeps_all_and_goes_on(
    made_up: WriteDesign, tmp_path: Path, temporary: Path
) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    design = made_up(repetitions=10)
    ran = on_a_small_disk("192k", disk, design, MADE_UP.parent, disk, program=FILL)
    assert ran.returncode == 0, ran.stderr
    report = json.loads(ran.stdout)
    assert report["full"]["status"] == 2
    assert report["full"]["said"] == f"fecbench: {disk}/x.sqlite: cannot be written: the disk is full"
    assert 0 < report["kept"] < 60
    assert report["resumed"]["status"] == 0
    assert report["complete"] == report["still"] == 60
    assert (report["read_only"]["status"], report["read_only"]["lines"]) == (2, 1)
    assert "is read-only" in report["read_only"]["said"]
    assert list(temporary.iterdir()) == []


def test_without_room_for_the_certificates_the_command_fails_in_one_line(
    design: Path, tmp_path: Path, temporary: Path
) -> None:
    command = ("run", "--no-calibrate", design, "--db", tmp_path / "x.sqlite")
    ran = on_a_small_disk("4k", temporary, *command)
    assert ran.returncode == 1
    assert f"No space left on device: '{temporary}/" in ran.stderr.splitlines()[-1]
    assert "Traceback" not in ran.stderr


def test_without_room_for_what_a_trial_leaves_replay_names_the_file(
    fecbench: Any, tmp_path: Path, temporary: Path
) -> None:
    database = tmp_path / "x.sqlite"
    fecbench("run", "smoke", "--engine", "virtual", "--db", database, "--filter", "point=0")
    command = ("replay", "1", "--db", database, "--output", tmp_path / "replayed")
    ran = on_a_small_disk("80k", temporary, *command)
    assert ran.returncode == 1
    assert f"No space left on device: '{temporary}/" in ran.stderr.splitlines()[-1]


def test_without_room_for_a_trial_it_is_invalid_and_says_why_and_is_run_anew_by_resume(
    design: Path, tmp_path: Path, temporary: Path
) -> None:
    database = tmp_path / "x.sqlite"
    command = ("run", "--no-calibrate", design, "--db", database, *ONE_TRIAL)
    for resume, attempts in ((), 4), (("--resume",), 8):
        ran = on_a_small_disk("44k", temporary, *command, *resume)
        assert ran.returncode == 1
        states = [(state, attempt) for _, _, _, attempt, state, _ in stored(database).attempts.values()]
        assert states == [("invalid", attempt) for attempt in range(1, attempts + 1)]
        assert "No space left on device" in ran.stderr


IMPATIENT = (
    "from fecbench.results.store import connector; from fecbench.runners.commands import command_line; "
    "connector.LOCK_WAIT_S = 0.2; command_line.main()"
)


def test_a_database_that_another_process_locks_ends_the_campaign_in_one_line_and_it_goes_on_later(
    fecbench: Any, design: Path, tmp_path: Path, temporary: Path
) -> None:
    database = tmp_path / "x.sqlite"
    harness = started([sys.executable, "-c", IMPATIENT, "run", "--no-calibrate", design, "--db", database])
    assert harness.stderr
    while not (line := harness.stderr.readline()).startswith("[1/"):
        assert line, "it ended before its first trial"
    with closing(sqlite3.connect(database, isolation_level=None, timeout=LIMIT_S)) as holder:
        holder.execute("BEGIN EXCLUSIVE")
        _, output = harness.communicate(timeout=LIMIT_S)
        holder.execute("ROLLBACK")
    assert harness.returncode == 2
    assert "is locked" in output.splitlines()[-1]
    assert "Traceback" not in output
    assert list(temporary.iterdir()) == []
    before = stored(database)
    assert 0 < len(before.trials) < len(TRIALS)
    assert fecbench.run(design, database, "--resume").returncode in (0, 1)
    assert set(nothing_lost(before, database).trials) == TRIALS


# Clocks


@pytest.fixture(scope="module")
def stepped_clock(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A library that steps the real-time clock by up to two hours at every look at it."""
    library = tmp_path_factory.mktemp("clock") / "stepped_clock.so"
    source = Path(__file__).with_name("stepped_clock.c")
    subprocess.run(["gcc", "-O2", "-shared", "-fPIC", "-o", str(library), str(source)], check=True)
    return library


def test_a_clock_that_is_stepped_spoils_no_duration_and_no_limit(
    fecbench: Any, design: Path, tmp_path: Path, stepped_clock: Path
) -> None:
    look = [sys.executable, "-c", "import time; print(time.time() - time.time())"]
    looked = subprocess.run(
        look, env={"LD_PRELOAD": str(stepped_clock)}, check=True, capture_output=True, text=True
    )
    assert abs(float(looked.stdout)) > 1000, "the clock is not stepped"
    database = tmp_path / "x.sqlite"
    start_s = time.monotonic()
    ran = fecbench.run(design, database, "--json", *ONE_TRIAL, LD_PRELOAD=str(stepped_clock))
    taken_s = time.monotonic() - start_s
    assert ran.returncode in (0, 1), ran.stderr
    output = fecbench.trials(database)
    assert len(output) == 1
    assert {trial["state"] for trial in output} <= {"ok", "invalid"}, ran.stderr
    for trial in output:
        assert 0 < trial["duration_s"] < taken_s
        assert all(0 <= seconds < taken_s for seconds in trial["overhead_s"].values())
    assert "left: 0 s" in ran.stderr
