"""A worker runs what is proposed and free, once, and answers what came of it."""

import dataclasses
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from fecbench.results.store.database import Database
from fecbench.results.store.records import Group, TrialKey
from fecbench.runners.campaign import campaign
from fecbench.runners.campaign.request import Request
from fecbench.runners.cluster import proposed_share
from fecbench.runners.cluster.messages import Answer
from fecbench.runners.cluster.proposed_share import ProposedShare
from fecbench.runners.engines.engine import EngineError
from tests.runners.campaign.conftest import Pretence
from tests.runners.cluster.conftest import Proposals, join_to, keys_of, leave, lot_of

Serve = Callable[..., None]


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    with Database.open(str(tmp_path / "x.sqlite"), create=True) as opened:
        yield opened


@pytest.fixture
def serve(
    believed: None,  # noqa: ARG001
    little: Request,
    database: Database,
    proposals: Proposals,
    monkeypatch: pytest.MonkeyPatch,
) -> Serve:
    """Begins the little campaign, and has an engine serve what was proposed until there is nothing more."""
    monkeypatch.setattr(proposed_share, "IDLE_S", 0.2)
    stored = campaign.begun(little, database)

    def serve(engine: Pretence) -> None:
        wanted = dataclasses.replace(little, resume=True)
        start = campaign.started(wanted, database, stored, [], {})
        joined = Answer(host="ada", joined=True, room=2)
        own = join_to("postgresql://ada/x")
        served = ProposedShare(
            wanted,
            engine,
            database,
            start,
            proposals,
            joined,
            own,  # type: ignore[arg-type]
        )
        try:
            served.serve()
        except EngineError as error:
            served.give_back(refused=str(error))

    return serve


def states(database: Database) -> dict[TrialKey, tuple[str, int]]:
    (stored,) = database.campaigns()
    assert database.claims(stored.id) == {}
    return dict(database.states(stored.id))


def groups_of(names: object) -> set[Group]:
    return {name.group for name in names}  # type: ignore[attr-defined]


def test_what_is_proposed_is_run_and_answered(
    serve: Serve, proposals: Proposals, little: Request, database: Database
) -> None:
    lot, rest = lot_of(little, 2), lot_of(little)
    number = proposals.propose(lot)
    engine = Pretence()
    serve(engine)
    answer = proposals.answers[number]
    assert engine.ran == keys_of(lot)
    assert (groups_of(answer.done), answer.held) == ({group.group for group in lot.groups}, [])
    assert [trial.key for trial in answer.trials] == keys_of(lot)
    assert states(database) == dict.fromkeys(keys_of(lot), ("ok", 1))
    number = proposals.propose(rest)
    engine = Pretence()
    serve(engine)
    assert engine.ran == [key for key in keys_of(rest) if key not in keys_of(lot)]
    assert groups_of(proposals.answers[number].done) == {group.group for group in rest.groups}


@pytest.mark.parametrize("deterministic", [True, False])
def test_a_group_that_is_proposed_twice_is_run_once(
    serve: Serve, proposals: Proposals, little: Request, deterministic: bool
) -> None:
    numbers = [proposals.propose(lot_of(little)) for _ in range(2)]
    engine = Pretence(deterministic=deterministic)
    serve(engine)
    assert engine.ran == list(little.keys)
    first, second = (proposals.answers[number] for number in numbers)
    assert len(first.done) == len(lot_of(little).groups)
    # Both were open at once, or the second came when all was done.
    assert groups_of(second.held) | groups_of(second.done) == groups_of(first.done)
    assert second.trials == []


def test_what_another_has_claimed_is_not_run_and_is_answered_as_held(
    serve: Serve, proposals: Proposals, little: Request, database: Database
) -> None:
    (stored,) = database.campaigns()
    other = database.start(stored.id, "bob", {}, {"boot": "another"})
    lot = lot_of(little)
    taken = lot.groups[1].group
    database.claim(stored.id, other.id, taken)
    number = proposals.propose(lot)
    engine = Pretence()
    serve(engine)
    assert {key.group for key in engine.ran} == {group.group for group in lot.groups} - {taken}
    assert groups_of(proposals.answers[number].held) == {taken}
    database.give_up_all(other.id)


def test_an_invalid_trial_is_run_again_and_each_run_is_told(
    serve: Serve, proposals: Proposals, little: Request, database: Database
) -> None:
    lot, seen = lot_of(little, 1), set[TrialKey]()

    def once_invalid(key: TrialKey) -> str:
        state = "ok" if key in seen else "invalid"
        seen.add(key)
        return state

    number = proposals.propose(lot)
    serve(Pretence(once_invalid))
    told = [(trial.state, trial.again) for trial in proposals.answers[number].trials]
    assert sorted(told) == [("invalid", True)] * 2 + [("ok", False)] * 2
    assert set(states(database).values()) == {("ok", 2)}


def test_after_leave_nothing_is_begun(
    serve: Serve, proposals: Proposals, little: Request, database: Database
) -> None:
    lot = lot_of(little, 1)
    first = proposals.propose(lot)
    left, never = proposals.propose(leave()), proposals.propose(lot_of(little))
    engine = Pretence()
    serve(engine)
    assert engine.ran == keys_of(lot)
    assert proposals.answers.keys() == {first}
    (asked,) = [proposals.get()]
    assert asked is not None and asked.number == left  # for whoever listens then, as what came after it
    following = proposals.get()
    assert following is not None and following.number == never
    assert set(states(database)) == set(keys_of(lot))


def test_whoever_asks_to_join_once_more_gets_the_same_answer(
    serve: Serve, proposals: Proposals, little: Request
) -> None:
    again = proposals.propose(join_to("postgresql://ada/x"))
    number = proposals.propose(lot_of(little, 1))
    serve(Pretence())
    assert proposals.answers[again].room == 2
    assert len(proposals.answers[number].done) == 1


def test_an_engine_that_cannot_go_on_gives_back_what_is_left(
    serve: Serve, proposals: Proposals, little: Request, database: Database
) -> None:
    lot = lot_of(little)

    def breaks(key: TrialKey) -> str:
        if key == little.keys[2]:
            raise EngineError("its simulator died ten times")
        return "ok"

    number = proposals.propose(lot)
    serve(Pretence(breaks))
    answer = proposals.answers[number]
    assert answer.refused == "its simulator died ten times"
    assert len(answer.done) + len(answer.held) == len(lot.groups)
    assert {key for key in keys_of(lot) if key.group in groups_of(answer.done)} <= set(states(database))


def test_stream_goes_on_with_the_next_lot() -> None:
    lots = iter([iter(["a"]), iter(["b"]), None])
    room: Any = SimpleNamespace(next_tasks=lambda _: next(lots))
    claims: Any = None
    assert list(proposed_share._Stream(room, claims)) == ["a", "b"]
