"""A campaign ends whole, with one --resume at most, whatever ends, stands still or is cut off in a cluster.

Hosts are namespaces with names of their own. In virtual time the digest is that of a single host.
"""

import contextlib
import itertools
import os
import random
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from fecbench.checkout import REPOSITORY
from fecbench.results.store.database import Database
from fecbench.runners.campaign.share import LOT_GROUPS
from tests.runners.cluster.hosts import Command, Host, PostgreSQL
from tests.runners.conftest import Fecbench, WriteDesign
from tests.runners.engines.conftest import HERE

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(3600),
    pytest.mark.skipif(os.geteuid() != 0, reason="makes namespaces"),
    pytest.mark.skipif(
        not list(Path("/usr/lib/postgresql").glob("*/bin")), reason="needs PostgreSQL's server"
    ),
]
FOLDER = ("--implementations", HERE)
HOSTS = ("ada", "bob", "cyd", "dan", "eve", "fay", "gil", "hal")
COUNT = int(os.environ.get("FECBENCH_WORKERS", "3"))
assert 2 <= COUNT <= len(HOSTS), f"FECBENCH_WORKERS={COUNT}: must be from 2 to {len(HOSTS)}"
WORKERS = HOSTS[:COUNT]
PORT = 8786
REPETITIONS = int(os.environ.get("FECBENCH_REPETITIONS", "3334"))
"""Repetitions of six trials each: 20,000 trials."""
KILLS, STOPS, STOP_S, RESTARTS, CUT_S, FULL_S = 30, 3, 60.0, 3, 90.0, 20.0
LIMIT_S = 1800.0


class Cluster:
    """A database, a scheduler and workers, each on a host of its own."""

    def __init__(self, folder: Path) -> None:
        self._resources = contextlib.ExitStack()
        self._logs = folder
        self._begun = itertools.count()
        numbers = itertools.count(1)
        self._switch = self._host("switch", None, next(numbers))
        self._hosts = {
            name: self._host(name, self._switch, next(numbers))
            for name in ("db", "scheduler", "client", *WORKERS)
        }
        self.papers = folder / "papers"
        subprocess.run(
            [Fecbench.path, "cluster", "certificates", self.papers], check=True, capture_output=True
        )
        self.address = f"tls://{self._hosts['scheduler'].address}:{PORT}"
        self.postgresql = PostgreSQL(self._hosts["db"])
        self._resources.callback(self.postgresql.close)
        self.begin_scheduler()
        self._resources.callback(lambda: self.scheduler.end())
        self.workers: dict[str, Command] = {}
        for name in WORKERS:
            self.begin_worker(name)
        self._resources.callback(lambda: [worker.end() for worker in self.workers.values()])
        for worker in self.workers.values():
            worker.until("connected")

    def _host(self, name: str, switch: Host | None, number: int) -> Host:
        host = Host(name, switch, number)
        self._resources.callback(host.close)
        return host

    def host(self, name: str) -> Host:
        return self._hosts[name]

    def begin_scheduler(self) -> None:
        reach = (self.address, "--certificates", self.papers)
        self.scheduler = Command(
            self._hosts["scheduler"], self._logs / "scheduler", "cluster", "scheduler", *reach
        )
        self.scheduler.until("listens")

    def begin_worker(self, name: str, *options: object) -> None:
        reach = ("worker", self.address, "--certificates", self.papers, "--jobs", 1)
        log = self._logs / f"{name}-{next(self._begun)}"
        self.workers[name] = Command(self._hosts[name], log, *reach, *FOLDER, *options)

    def run(self, design: Path, url: str, log: str, *options: object) -> Command:
        cluster = ("--cluster", self.address, "--certificates", self.papers)
        return Command(
            self._hosts["client"], self._logs / log, "run", design, "--db", url, *cluster, *FOLDER, *options
        )

    def words(self) -> str:
        return "\n".join(
            f"{path.name}: {path.read_text()}" for path in self._logs.iterdir() if path.is_file()
        )

    def strange_lines(self) -> list[str]:
        """Return the lines of workers and schedulers that are not ours."""
        logs = [path for path in self._logs.iterdir() if path.is_file() and not path.name.startswith("run-")]
        lines = [line for path in logs for line in path.read_text().splitlines()]
        return [line for line in lines if line and not line.startswith(("note: ", "fecbench: "))]

    def close(self) -> None:
        self._resources.close()


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    made = Cluster(tmp_path_factory.mktemp("cluster"))
    yield made
    made.close()


@pytest.fixture
def design(made_up: WriteDesign) -> Path:
    return made_up(repetitions=REPETITIONS)


_single_host: dict[int, str] = {}


def digest_of_one_host(design: Path, folder: Path) -> str:
    """Return the digest of the campaign without a cluster."""
    if REPETITIONS not in _single_host:
        path = folder / "alone.sqlite"
        command = [Fecbench.path, "run", design, "--engine", "virtual", "--jobs", "2", "--db", path, *FOLDER]
        subprocess.run(command, cwd=REPOSITORY, check=True, capture_output=True)
        with Database.open(str(path)) as database:
            _single_host[REPETITIONS] = database.digest(database.campaigns()[0].id)
    return _single_host[REPETITIONS]


Happen = Callable[[Command], None]
Outlast = Callable[[str, Happen], None]


@pytest.fixture
def outlast(cluster: Cluster, design: Path, tmp_path: Path) -> Outlast:
    """Runs a campaign while something happens, and holds what it came to against that of one host."""

    def outlast(name: str, happen: Happen) -> None:
        url = cluster.postgresql.url(name)
        running = cluster.run(design, url, f"run-{name}", "--engine", "virtual")
        try:
            running.until("takes part")
            happen(running)
            status = running.process.wait(LIMIT_S)
        finally:
            running.end()
        print(running.words[-3000:])
        if status != 0:
            assert "fecbench: " in running.words.splitlines()[-1]
            again = cluster.run(design, url, f"run-{name}-again", "--engine", "virtual", "--resume")
            assert again.process.wait(LIMIT_S) == 0, again.words
        assert "Traceback" not in cluster.words()
        assert cluster.strange_lines() == []
        with Database.open(cluster.postgresql.local_url(name)) as database:
            (campaign,) = database.campaigns()
            states = database.states(campaign.id)
            assert (len(states), set(states.values())) == (6 * REPETITIONS, {("ok", 1)})
            assert database.digest(campaign.id) == digest_of_one_host(design, tmp_path)

    return outlast


def test_nothing_happens(outlast: Outlast) -> None:
    outlast("nothing", lambda _: None)


def test_workers_are_killed(cluster: Cluster, outlast: Outlast) -> None:
    chance, killed = random.Random(18), itertools.count()
    kills = 0

    def kill(running: Command) -> None:
        nonlocal kills
        while running.is_running() and kills < KILLS:
            time.sleep(0.1)
            taking_part = [name for name in WORKERS if cluster.workers[name].has_joined()]
            if taking_part:
                time.sleep(chance.uniform(0.0, 2.0))
                name = chance.choice(taking_part)
                cluster.workers[name].process.kill()
                cluster.workers[name].process.wait()
                cluster.begin_worker(name)
                kills += 1

    while kills < KILLS:
        outlast(f"killed_{next(killed)}", kill)
    print(f"{kills} kills in {next(killed)} campaigns")


def test_machines_join_a_campaign_and_half_of_all_are_lost(cluster: Cluster, outlast: Outlast) -> None:
    late, lost = WORKERS[len(WORKERS) // 2 :], WORKERS[: len(WORKERS) // 2]
    for name in late:
        cluster.workers[name].end()

    def lose(running: Command) -> None:
        for name in late:
            cluster.begin_worker(name)
        for name in late:
            cluster.workers[name].until("takes part")
        assert running.is_running()
        for name in lost:
            cluster.workers[name].process.kill()
        for name in lost:
            cluster.workers[name].process.wait()
        with Database.open(cluster.postgresql.local_url("half")) as database:
            (campaign,) = database.campaigns()
            done = database.trial_count(campaign.id)
            hosts = {start.id: start.host for start in database.starts(campaign.id)}
            held = Counter(hosts[claim.start_id] for claim in database.claims(campaign.id).values())
        print(f"lost after {done} trials: {', '.join(f'{name} with {held[name]} groups' for name in lost)}")
        assert done < 6 * REPETITIONS
        assert all(held[name] <= 2 * LOT_GROUPS for name in lost)

    outlast("half", lose)
    for name in lost:
        cluster.begin_worker(name)
        cluster.workers[name].until("connected")


def test_a_worker_stands_still(cluster: Cluster, outlast: Outlast) -> None:
    chance = random.Random(18)

    def stop(running: Command) -> None:
        worker = cluster.workers[chance.choice(WORKERS)]
        worker.process.send_signal(signal.SIGSTOP)
        time.sleep(STOP_S)
        worker.process.send_signal(signal.SIGCONT)
        print("still running" if running.is_running() else "had ended")

    for number in range(STOPS):
        outlast(f"stopped_{number}", stop)


def test_the_scheduler_is_killed_and_begun_again(cluster: Cluster, outlast: Outlast) -> None:
    def restart(running: Command) -> None:
        for number in range(1, RESTARTS + 1):
            time.sleep(5)
            cluster.scheduler.process.kill()
            cluster.scheduler.process.wait()
            time.sleep(2)
            cluster.begin_scheduler()
            running.until_count("the scheduler is gone", number)
            running.until_count("the scheduler is there again", number)
            time.sleep(5)

    outlast("scheduler", restart)


def test_postgresql_is_stopped_and_started(cluster: Cluster, outlast: Outlast) -> None:
    def restart(_: Command) -> None:
        for _ in range(RESTARTS):
            time.sleep(5)
            cluster.postgresql.stop()
            time.sleep(3)
            cluster.postgresql.start()

    outlast("postgresql", restart)


def test_the_network_of_a_worker_is_cut(cluster: Cluster, outlast: Outlast) -> None:
    def cut(_: Command) -> None:
        time.sleep(3)
        cluster.host("bob").plug("down")
        time.sleep(CUT_S)
        cluster.host("bob").plug("up")

    outlast("cut", cut)


def test_the_disk_of_the_database_is_full_for_a_while(cluster: Cluster, outlast: Outlast) -> None:
    def fill(_: Command) -> None:
        time.sleep(3)
        with cluster.postgresql.full_disk():
            time.sleep(FULL_S)
        if not cluster.postgresql.is_running():
            cluster.postgresql.start()

    outlast("full", fill)


def test_emulated_trials_on_three_workers_meet_the_losses_of_one_host(
    cluster: Cluster, write_design: Callable[..., Path], tmp_path: Path, fecbench: Fecbench
) -> None:
    repetitions = 34
    design = write_design(tmp_path, repetitions=repetitions)
    url = cluster.postgresql.url("emulated")
    for number in range(4):
        running = cluster.run(
            design,
            url,
            f"run-emulated-{number}",
            "--engine",
            "local",
            "--no-calibrate",
            *["--resume"] * (number > 0),
        )
        status = running.process.wait(LIMIT_S)
        if status == 0:
            break
    print(running.words[-3000:])
    alone = tmp_path / "alone.sqlite"
    fecbench.run_until_ok(design, alone, "--filter", "repetition=0")
    with (
        Database.open(cluster.postgresql.local_url("emulated")) as database,
        Database.open(str(alone)) as single,
    ):
        (campaign,), (of_one,) = database.campaigns(), single.campaigns()
        states = database.states(campaign.id)
        assert len(states) == 6 * repetitions
        assert {state for state, _ in states.values()} <= {"ok", "invalid"}
        hosts = {start.host for start in database.starts(campaign.id)}
        assert hosts == set(WORKERS)
        for trial in single.trials(of_one.id):
            other = database.trial_of(campaign.id, trial.record.key)
            assert other is not None
            if other.record.state == "ok":
                assert trial.record.met_the_losses_of(other.record)


def test_a_host_without_tun_is_refused_in_one_line(
    cluster: Cluster, write_design: Callable[..., Path], tmp_path: Path
) -> None:
    for worker in cluster.workers.values():
        worker.end()
    host = cluster.host("ada")
    hidden = host.within(
        "unshare",
        "--mount",
        "sh",
        "-c",
        'mount --bind /dev/null /dev/net/tun && exec "$@"',
        "sh",
        Fecbench.path,
    )
    log = tmp_path / "without-tun"
    reach = ["worker", cluster.address, "--certificates", str(cluster.papers), *map(str, FOLDER)]
    with log.open("w") as words:
        worker = subprocess.Popen([*hidden, *reach], cwd=REPOSITORY, stderr=words)
    try:
        url = cluster.postgresql.url("without_tun")
        running = cluster.run(write_design(tmp_path), url, "run-without-tun", "--engine", "local")
        assert running.process.wait(300) == 1
        assert "worker on ada takes no group: this host lacks TUN/TAP" in running.words
        assert running.words.splitlines()[-1].startswith("fecbench: no worker takes groups")
    finally:
        worker.terminate()  # type: ignore[attr-defined]
        worker.wait()  # type: ignore[attr-defined]
