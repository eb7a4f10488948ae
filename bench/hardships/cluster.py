"""A cluster of one worker on this machine. The worker is killed, or the command that has the campaign.

The campaign has to come to what it comes to undisturbed, each trial once, with nothing left claimed.
"""

import os
import random
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path

import psycopg

from bench.cluster_parts import FECBENCH, free_address, new_database, running, server_in
from bench.hardships.judging import traceback
from bench.hardships.surroundings import await_no_process, processes_of
from fecbench.results.store.database import Database

LIMIT_S = 600.0
FOLDERS_AT = Path("/tmp")
"""The server's user has to reach its folder."""


@dataclass(frozen=True)
class Outcome:
    """Result of a campaign."""

    trials: int
    attempts: int
    """Digest of all trials together."""
    digest: str
    claims: int


def outcome(url: str) -> Outcome:
    with Database.open(url) as database:
        (campaign,) = database.campaigns()
        states = database.states(campaign.id)
        attempts = sum(attempt for _, attempt in states.values())
        claims = len(database.claims(campaign.id))
        return Outcome(len(states), attempts, database.digest(campaign.id), claims)


class Beside:
    """A command that runs beside this program; its words are in a file, its temporary files in a folder."""

    def __init__(self, folder: Path, *words: object) -> None:
        self.temporary = folder / "temporary"
        self.temporary.mkdir(parents=True)
        self._words = folder / "words"
        with self._words.open("w") as log:
            self.process = subprocess.Popen(
                [FECBENCH, *map(str, words)],
                env={**os.environ, "TMPDIR": str(self.temporary)},
                stdout=subprocess.DEVNULL,
                stderr=log,
            )

    def words(self) -> str:
        return self._words.read_text()

    def until(self, words: str) -> None:
        """Wait until it has said so. Raises RuntimeError when it ends before."""
        while words not in self.words():
            if self.process.poll() is not None:
                raise RuntimeError(f"it ended before it said {words!r}: {self.words()}")
            time.sleep(0.05)

    def kill(self) -> list[str]:
        """Kill it; a line for each process that it leaves."""
        self.process.kill()
        self.process.wait()
        return await_no_process(self.temporary)

    def end(self) -> None:
        self.process.terminate()
        self.process.wait(LIMIT_S)


class Cluster:
    """A server, a scheduler, and a worker that is begun anew when it has been killed."""

    def __init__(self, folder: Path, server: Path, design: Path, reach: list[str]) -> None:
        self._folder, self._server, self._design, self._reach = folder, server, design, reach
        self._numbers = count(1)
        self.worker = self.begin_worker()
        url, begun_s = self.new_database(), time.monotonic()
        run = self.run(url)
        status = run.process.wait(LIMIT_S)
        self.seconds = time.monotonic() - begun_s
        if status != 0:
            raise RuntimeError(f"undisturbed: status {status}: {run.words()}")
        self.undisturbed = outcome(url)

    def begin_worker(self) -> Beside:
        worker = Beside(self._new_folder("worker"), "worker", *self._reach, "--jobs", 1)
        worker.until("connected")
        return worker

    def new_database(self) -> str:
        return new_database(self._server, f"campaign_{next(self._numbers)}")

    def run(self, url: str) -> Beside:
        options = ("--engine", "virtual", "--db", url, "--cluster", *self._reach)
        return Beside(self._new_folder("run"), "run", self._design, *options)

    def _new_folder(self, name: str) -> Path:
        return self._folder / f"{name}-{next(self._numbers)}"

    def problems(self, url: str, run: Beside) -> list[str]:
        """Return what is wrong when the campaign has ended."""
        status = run.process.wait(LIMIT_S)
        wrong = traceback(run.words()) + traceback(self.worker.words())
        if status != 0:
            return [*wrong, f"status {status}: {run.words()}"]
        came_to = outcome(url)
        if came_to != self.undisturbed:
            wrong.append(f"it came to {came_to}, not to {self.undisturbed}")
        return wrong


def kill_worker(cluster: Cluster, chance: random.Random) -> list[str]:
    """SIGKILL for the worker while the campaign runs; another takes its place."""
    url, run = _in_its_midst(cluster, chance)
    left = cluster.worker.kill()
    cluster.worker = cluster.begin_worker()
    return [*left, *cluster.problems(url, run)]


def kill_storing_worker(cluster: Cluster, chance: random.Random) -> list[str]:
    """SIGKILL for the worker in a transaction: its trials are written, and their metrics are not."""
    while True:
        url, run = _in_its_midst(cluster, chance)
        with psycopg.connect(url) as connection:
            await_true(lambda: _has_tables(connection), run)
            connection.execute("LOCK TABLE metrics IN SHARE MODE")
            if await_true(lambda: _somebody_waits(connection), run):
                left = cluster.worker.kill()
                break  # otherwise the campaign had ended before
    cluster.worker = cluster.begin_worker()
    return [*left, *cluster.problems(url, run)]


def _in_its_midst(cluster: Cluster, chance: random.Random) -> tuple[str, Beside]:
    """A new campaign at any moment of it: its database, and the command that has it."""
    while True:
        url = cluster.new_database()
        run = cluster.run(url)
        time.sleep(chance.uniform(0, cluster.seconds))
        if run.process.poll() is None:
            return url, run


def await_true(condition: Callable[[], bool], run: Beside) -> bool:
    """Whether it holds before the campaign has ended."""
    while not (holds := condition()) and run.process.poll() is None:
        time.sleep(0.005)
    return holds


def _has_tables(connection: psycopg.Connection[tuple[object]]) -> bool:
    row = connection.execute("SELECT to_regclass('metrics') IS NOT NULL").fetchone()
    connection.rollback()
    return row == (True,)


def _somebody_waits(connection: psycopg.Connection[tuple[object]]) -> bool:
    return connection.execute("SELECT count(*) > 0 FROM pg_locks WHERE NOT granted").fetchone() == (True,)


def kill_run(cluster: Cluster, chance: random.Random) -> list[str]:
    """SIGKILL for the command that has the campaign; then it is given again."""
    url, run = _in_its_midst(cluster, chance)
    left = run.kill()
    return [*left, *cluster.problems(url, cluster.run(url))]


KILLS: Mapping[str, Callable[[Cluster, random.Random], list[str]]] = {
    "worker": kill_worker,
    "worker-storing": kill_storing_worker,
    "run-cluster": kill_run,
}


@contextmanager
def cluster(design: Path) -> Iterator[Cluster]:
    """Run a cluster; at the end, remove all its processes and files."""
    with ExitStack() as stack:
        name = stack.enter_context(tempfile.TemporaryDirectory(prefix="hardships-", dir=FOLDERS_AT))
        folder = Path(name)
        server = stack.enter_context(server_in(folder))
        papers = folder / "papers"
        subprocess.run([FECBENCH, "cluster", "certificates", papers], check=True, capture_output=True)
        reach = [free_address(), "--certificates", str(papers)]
        stack.enter_context(running("listens", "cluster", "scheduler", *reach))
        made = Cluster(folder, server, design, reach)
        try:
            yield made
        finally:
            made.worker.end()
        if left := processes_of(made.worker.temporary):
            raise RuntimeError(f"the last worker left {left}")
