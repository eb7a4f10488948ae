"""Faults of a path one by one: a NAT that rebinds, another address, another route, a limit, a full disk."""

import contextlib
import dataclasses
import socket
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from fecbench.results.store.records import TrialKey
from fecbench.runners import authority
from fecbench.runners.engines.engine import EngineError
from fecbench.runners.field.client_session import Train
from fecbench.runners.field.connection import Place, context
from fecbench.runners.field.field_engine import Block, FieldEngine
from fecbench.runners.implementations.finding import ours
from fecbench.runners.tasks.demand import Demand
from fecbench.runners.tasks.outcome import Outcome
from fecbench.runners.tasks.task import EndpointTask, PairTask, Task
from fecbench.runners.trial.judge import judge
from tests.runners.field.nat import HOME, Nat
from tests.support import needs
from tests.support.designs import over_a_path
from tests.support.patience import patiently
from tests.support.tasks import ANY_MACHINE

NOQ = ours().find("noq-fec", "")
pytestmark = [*needs.TRIALS, needs.built(NOQ)]

FECBENCH = str(Path(sys.executable).with_name("fecbench"))
GROUP = [TrialKey(variant, "download", 0, 0) for variant in ("off", "rlc", "xor")]


@dataclass(frozen=True)
class Far:
    """A host that serves at this machine's own address."""

    place: Place
    papers: Path

    def engine(self, place: Place | None = None) -> FieldEngine:
        tls = context(self.papers, server=False)
        return FieldEngine(
            place or self.place, tls, "home", {"noq-fec": NOQ}, print, train_s=0.3, reconnect_s=5
        )


@contextlib.contextmanager
def serving(folder: Path, *limits: str) -> Iterator[Far]:
    if not (folder / "papers").exists():
        authority.write(folder / "papers")
    with socket.create_server((HOME, 0)) as free:
        place = Place(HOME, free.getsockname()[1])
    words = ["field", "serve", "--listen", str(place), "--certificates", str(folder / "papers"), *limits]
    process = subprocess.Popen([FECBENCH, *words], stderr=subprocess.PIPE, text=True)
    try:
        assert process.stderr and "listens at" in process.stderr.readline()
        yield Far(place, folder / "papers")
    finally:
        process.terminate()
        process.communicate(timeout=20)


@pytest.fixture(scope="module")
def far(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Far]:
    with serving(tmp_path_factory.mktemp("far")) as far:
        yield far


def task(size_bytes: int = 1000) -> Task:
    options = NOQ.with_defaults({"scheme": "none"})
    end = EndpointTask(implementation="noq-fec", options=options, fec=False)
    workload = {"name": "download", "size_bytes": size_bytes}
    pair = PairTask(client=end, server=end, workload=workload, demand=Demand(down_bytes=size_bytes))
    return Task(
        **{"topology": "field", "backend": "field", "links": {}, "seeds": {"content": 1}},
        **{"pairs": [pair], "completion": "dct_s", "timeout_s": 20.0, "validity": ANY_MACHINE},
    )


def downloaded(outcome: Outcome) -> bool:
    assert "client" in outcome.endpoints, outcome.endpoints
    metrics = outcome.endpoints["client"].metrics
    return metrics is not None and metrics["dct_s"] > 0


def test_a_nat_that_rebinds_in_the_middle_of_a_transfer_costs_nothing(far: Far) -> None:
    def attempt(_: int) -> tuple[Nat, Outcome]:
        with Nat(far.place, rebinds_after=15) as nat, far.engine(nat.place) as engine:
            (finished,) = engine.run([(GROUP[0], task(size_bytes=300_000))])
        return nat, finished.outcome

    # On a busy machine the next port comes before the last one is validated, and the server goes back to it.
    nat, outcome = patiently(attempt, lambda result: not downloaded(result[1]))
    assert len(nat.ports) > 10
    assert downloaded(outcome), outcome
    assert outcome.path is not None and outcome.path.changes == []


def test_another_address_or_route_within_a_block_is_noticed_and_the_transfers_go_on(far: Far) -> None:
    with Nat(far.place) as nat, far.engine(nat.place) as engine:
        outcomes = list[Outcome]()
        for key, outward, ttl in zip(GROUP, (HOME, "127.0.0.2", HOME), (64, 64, 50), strict=True):
            nat.outward, nat.ttl = outward, ttl
            outcomes += [finished.outcome for finished in engine.run([(key, task())])]
    assert all(map(downloaded, outcomes))
    changes = [outcome.path.changes for outcome in outcomes if outcome.path is not None]
    assert changes == [
        [],
        ["this host's address as the server sees it changed within the block from 127.0.0.1 to 127.0.0.2"],
        ["the route up, by the TTL, changed within the block from 64 to 50"],
    ]
    assert [judge(task(), outcome).state for outcome in outcomes[1:]] == ["invalid", "invalid"]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (
            {"address": "192.0.2.9"},
            "this host's address changed within the block from 192.0.2.1 to 192.0.2.9",
        ),
        ({"mtu": 1400}, "the MTU of the path changed within the block from 1500 to 1400"),
        (
            {"ttl": {"up": 60, "down": 61}},
            "the route down, by the TTL, changed within the block from 60 to 61",
        ),
        ({"address": "", "outside": "", "mtu": 0, "ttl": {}}, None),
    ],
)
def test_each_change_of_a_path_is_named(change: dict[str, object], words: str | None) -> None:
    block = Block(GROUP[0].group, "b", [], [])
    train = Train(address="192.0.2.1", outside="198.51.100.1", mtu=1500, ttl={"up": 60, "down": 60})
    assert block.changes(train) == []
    changed = dataclasses.replace(train, **change)  # type: ignore[arg-type]
    assert block.changes(changed) == ([] if words is None else [words])
    assert block.changes(train) == []


def test_a_campaign_beyond_the_hourly_limit_ends_in_one_line_that_names_it(tmp_path: Path) -> None:
    with serving(tmp_path, "--hourly", "3") as far, far.engine() as engine:
        trials = engine.run([(key, task()) for key in GROUP])
        assert downloaded(next(trials).outcome)  # the warm-up is the first of three
        assert downloaded(next(trials).outcome)
        with pytest.raises(EngineError, match="3 transfers within an hour are the most") as refusal:
            next(trials)
    assert "what was finished is kept" in str(refusal.value)


ON_A_SMALL_DISK = """
mount -t tmpfs -o size=$2 none "$1"
shift 2
"$@" >/dev/null 2>first; echo $? >first.status
cp disk/over.sqlite first.sqlite
mount -o remount,size=16m disk
"$@" >/dev/null 2>second; echo $? >second.status
cp disk/over.sqlite second.sqlite
"""


@pytest.mark.slow
def test_a_full_disk_ends_a_campaign_in_one_line_and_the_same_command_goes_on(
    far: Far, tmp_path: Path
) -> None:
    (tmp_path / "disk").mkdir()
    (tmp_path / "over.toml").write_text(over_a_path("over", 6, 5000))
    run = [FECBENCH, "run", "over.toml", "--engine", "field", "--server", str(far.place), "--path", "home"]
    run += ["--certificates", str(far.papers), "--db", "disk/over.sqlite"]
    command = ["unshare", "--mount", "sh", "-c", ON_A_SMALL_DISK, "sh", "disk", "200k", *run]
    subprocess.run(command, cwd=tmp_path, check=True, timeout=200)

    def said_lines(name: str) -> tuple[int, list[str]]:
        return int((tmp_path / f"{name}.status").read_text()), (tmp_path / name).read_text().splitlines()

    status, lines = said_lines("first")
    assert status == 2 and "Traceback" not in "\n".join(lines)
    assert lines[-1] == "fecbench: disk/over.sqlite: cannot be written: the disk is full", lines[-3:]
    first, second = (set(stored(tmp_path / f"{name}.sqlite")) for name in ("first", "second"))
    assert 0 < len(first) < 12 and first <= second and len(second) == 12
    status, lines = said_lines("second")
    assert status in (0, 1), lines[-3:]


def stored(path: Path) -> list[tuple[object, ...]]:
    with contextlib.closing(sqlite3.connect(path)) as database:
        query = "SELECT variant, repetition, state, started_at FROM trials WHERE NOT superseded"
        return database.execute(query).fetchall()
