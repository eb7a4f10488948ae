"""The run of a campaign asks workers to take part, and believes the database alone of what they have done."""

import dataclasses
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from fecbench.results.store.database import Database
from fecbench.runners.campaign import campaign
from fecbench.runners.campaign.claims import present
from fecbench.runners.campaign.request import Request
from fecbench.runners.cluster import address, dask_side, joint_run, messenger
from fecbench.runners.cluster.address import Place
from fecbench.runners.cluster.messages import Answer, Join, Message, Outcome
from fecbench.runners.engines.engine import EngineError
from tests.runners.campaign.conftest import Pretence, Told
from tests.runners.cluster.conftest import join_to, messenger_of
from tests.waiting import wait_until

NOWHERE = Place("tcp://ada:1", None)


@dataclass
class Watched:
    """Calls that a watcher got."""

    notes: list[str] = field(default_factory=list)
    counts: list[dict[str, int]] = field(default_factory=list)

    def begun(self, campaign: str, planned: int, done: int) -> None: ...

    def more(self, trials: int, why: str) -> None: ...

    def counted(self, states: Mapping[Any, int]) -> None:
        self.counts.append(dict(states))

    def note(self, line: str) -> None:
        self.notes.append(line)


Run = Callable[[str], None]


@pytest.fixture
def watched() -> Watched:
    return Watched()


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    with Database.open(str(tmp_path / "x.sqlite"), create=True) as opened:
        yield opened


@pytest.fixture
def run(
    believed: None,  # noqa: ARG001
    monkeypatch: pytest.MonkeyPatch,
    little: Request,
    database: Database,
    watched: Watched,
) -> Run:
    """Runs the little campaign with a messenger of this manner, at a scheduler that is not called."""
    monkeypatch.setattr(address, "call", lambda _: None)
    monkeypatch.setattr(joint_run, "LOOK_S", 0.1)

    def run(manner: str) -> None:
        joint_run.run(little, NOWHERE, database, "postgresql://ada/x", watched, messenger_of(manner))

    return run


def share(little: Request, tmp_path: Path, state: str = "ok") -> None:
    """Run the campaign as a worker does: it is in the database."""
    with Database.open(str(tmp_path / "x.sqlite")) as own:
        wanted = dataclasses.replace(little, resume=True)
        campaign.run(wanted, Pretence(lambda _: state), own, Told())


@pytest.mark.parametrize("manner", ["deaf", "lies"])
def test_a_campaign_is_over_when_the_database_has_it_whatever_workers_say(
    run: Run, little: Request, tmp_path: Path, watched: Watched, database: Database, manner: str
) -> None:
    def work() -> None:
        wait_until(lambda: len(watched.counts) > 3, "several looks")
        share(little, tmp_path)

    worker = threading.Thread(target=work)
    worker.start()
    run(manner)
    worker.join()
    assert watched.counts[0] == {}
    assert watched.counts[-1] == {"ok": len(little.keys)}
    (stored,) = database.campaigns()
    (start,) = database.starts(stored.id)
    assert f"{start.host} takes part" in watched.notes
    assert "workers at the scheduler: 1" in watched.notes


def test_trials_that_somebody_still_holds_are_waited_for(
    run: Run, little: Request, tmp_path: Path, watched: Watched, database: Database
) -> None:
    """Invalid trials are run again by whoever has claimed them."""
    stored = campaign.begun(little, database)
    with present() as holder:
        other = database.start(stored.id, "bob", {}, {**holder, "boot": "another"})

        def work() -> None:
            wait_until(lambda: watched.counts, "a look")
            share(little, tmp_path, "invalid")
            database.claim(stored.id, other.id, little.keys[0].group)
            looks = len(watched.counts)
            wait_until(lambda: len(watched.counts) > looks + 3, "more looks")
            database.give_up_all(other.id)

        database.claim(stored.id, other.id, little.keys[0].group)
        worker = threading.Thread(target=work)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("fecbench.runners.campaign.claims.DEAD_AFTER_S", 3.0)
            worker.start()
            run("deaf")
        worker.join()
    assert sum(watched.counts[-1].values()) == len(little.keys)


def test_when_every_worker_refuses_the_campaign_ends_in_one_line(run: Run, watched: Watched) -> None:
    with pytest.raises(EngineError, match="no worker takes groups of campaign little"):
        run("refuses")
    assert "worker on ada takes no group: has other binaries" in watched.notes


# Dask's client


class Scheduled:
    """Dask's client, with workers that do as a test says."""

    status = "running"
    scheduler_comm = object()

    def __init__(self) -> None:
        self.there = {"one": 64}
        self.asked: list[tuple[str, Future]] = []

    def nthreads(self) -> dict[str, int]:
        return self.there

    def submit(self, *_: object, workers: list[str], **__: object) -> "Future":
        future = Future()
        self.asked.append((workers[0], future))
        return future


@dataclass
class Future:
    """A future that has ended when it has a result."""

    text: object = None
    status: str = "pending"
    is_cancelled: bool = False

    def done(self) -> bool:
        return self.status != "pending"

    def cancel(self) -> None:
        self.is_cancelled = True

    def exception(self) -> BaseException:
        return RuntimeError("this is no worker\nof fecbench")

    def result(self, timeout: float) -> object:  # noqa: ARG002
        if isinstance(self.text, Exception):
            raise self.text
        return self.text


@pytest.fixture
def lines(monkeypatch: pytest.MonkeyPatch) -> list[Message]:
    """The lines that the messenger says."""
    said: list[Message] = []
    monkeypatch.setattr(messenger, "say", said.append)
    return said


def invitations(client: Any, join: Join | None = None) -> dask_side.Invitations:
    return dask_side.Invitations(client, (join or join_to()).model_dump_json())


def answered(state: str) -> str:
    return f'{{"host": "ada", "state": "{state}"}}'


ENDS: list[tuple[Future, str, str]] = [
    (Future(answered("done"), "finished"), "done", ""),
    (Future(answered("left"), "finished"), "left", ""),
    (Future(answered("refused"), "finished"), "refused", ""),
    (Future(TimeoutError(), "finished"), "left", "TimeoutError"),
    (Future(None, "error"), "refused", "this is no worker of fecbench"),
    *(
        (Future(text, "finished"), "refused", "its answer cannot be read")
        for text in ("", "null", "{}", 7, b"\x80", ["{}"], answered("bored"))
    ),
]


@pytest.mark.parametrize(("end", "state", "why"), ENDS)
def test_a_worker_is_asked_again_unless_it_refuses(
    end: Future, state: str, why: str, lines: list[Message], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dask_side, "AGAIN_S", 0.0)
    client = Scheduled()
    invited = invitations(client)
    for _ in range(2):
        assert invited.look().addresses == ["one"]
    assert len(client.asked) == 1
    client.asked[0][1].__dict__.update(end.__dict__)
    for _ in range(2):
        invited.look()
    (outcome,) = lines
    assert isinstance(outcome, Outcome)
    assert (outcome.worker, outcome.answer.state) == ("one", state)
    assert why in outcome.answer.why
    assert len(client.asked) == (1 if state == "refused" else 2)


def test_a_long_answer_is_cut(lines: list[Message]) -> None:
    client = Scheduled()
    invited = invitations(client)
    invited.look()
    text = Answer(host="x" * 10_000, state="left", why="y" * 10_000_000).model_dump_json()
    client.asked[0][1].__dict__.update(Future(text, "finished").__dict__)
    invited.look()
    assert len(lines[0].model_dump_json()) < 2000


def test_one_that_comes_is_asked_and_one_that_has_gone_is_not_waited_for(lines: list[Message]) -> None:
    client = Scheduled()
    invited = invitations(client)
    invited.look()
    client.there = {"two": 64}
    assert invited.look().addresses == ["two"]
    assert [(worker, future.is_cancelled) for worker, future in client.asked] == [
        ("one", True),
        ("two", False),
    ]
    client.there = {"one": 64, "two": 64}
    invited.look()
    assert [worker for worker, _ in client.asked] == ["one", "two", "one"]
    assert lines == []


def test_a_scheduler_that_was_begun_anew_while_it_was_asked_was_gone() -> None:
    """Dask's client connects again by itself."""

    class Reconnects(Scheduled):
        def nthreads(self) -> dict[str, int]:
            self.scheduler_comm = object()
            return {}

    with pytest.raises(dask_side.Gone, match="the connection ended"):
        invitations(Reconnects()).look()
