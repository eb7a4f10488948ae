"""The run of a campaign proposes each group until somebody has done it, whatever becomes of workers."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

from fecbench.results.store.records import Group, TrialKey
from fecbench.runners.campaign.request import Request
from fecbench.runners.cluster import dask_client, messenger, proposer
from fecbench.runners.cluster import worker_pool as worker_pools
from fecbench.runners.cluster.messages import Answer, Join, Lot, Proposal, RunTrial, name_of
from fecbench.runners.cluster.proposer import Proposer
from fecbench.runners.cluster.worker_pool import Reply, SchedulerGone, WorkerPool
from fecbench.runners.engines.engine import EngineError
from fecbench.runners.trial.judge import Judgement

Does = Callable[[str, Lot], Answer | None]


def done(lot: Lot) -> Answer:
    return Answer(
        host="ada",
        joined=True,
        room=2,
        done=[name_of(group.group) for group in lot.groups],
        trials=[
            RunTrial(
                variant=key.variant,
                workload=key.workload,
                point=key.point,
                repetition=key.repetition,
                state="ok",
                reason="",
                completion_s=1.0,
                again=False,
            )
            for group in lot.groups
            for key in group.due
        ],
    )


class MadeUp(WorkerPool):
    """Workers who do as a test says: None is no answer."""

    def __init__(self, does: Does, names: set[str], joins: Callable[[str], Answer] | None = None) -> None:
        self.does = does
        self.names = names
        self.joins = joins or (lambda name: Answer(host=name, joined=True, room=2))
        self.proposed: list[tuple[str, Lot]] = []
        self.dismissed: set[str] = set()
        self.connected = 0
        self._replies: list[Reply] = []
        self._count = 0

    def workers(self) -> set[str]:
        return set(self.names)

    def propose(self, worker: str, proposal: Proposal) -> int:
        self._count += 1
        if isinstance(proposal, Join):
            self._replies.append(Reply(worker, self._count, self.joins(worker)))
        elif isinstance(proposal, Lot):
            self.proposed.append((worker, proposal))
            if answer := self.does(worker, proposal):
                self._replies.append(Reply(worker, self._count, answer))
        return self._count

    def forget(self, number: int) -> None:
        self._replies = [reply for reply in self._replies if reply.number != number]

    def reply(self, wait_s: float) -> Reply | None:  # noqa: ARG002
        return self._replies.pop(0) if self._replies else None

    def connect_again(self) -> None:
        self.connected += 1
        self._replies.clear()

    def dismiss(self, proposals: dict[str, Proposal], wait_s: float) -> None:  # noqa: ARG002
        self.dismissed |= proposals.keys()


@dataclass
class Watched:
    """Calls that a watcher got."""

    keys: list[TrialKey] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    others: int = 0

    def begun(self, campaign: str, planned: int, done: int) -> None: ...

    def ended(self, key: TrialKey, judgement: Judgement, completion_s: float, again: bool) -> None:
        assert (judgement.state, completion_s) == ("ok", 1.0)
        if not again:
            self.keys.append(key)

    def more(self, trials: int, why: str) -> None: ...

    def elsewhere(self, trials: int) -> None:
        self.others += trials

    def waiting(self, trials: int) -> None: ...

    def dropped(self, key: TrialKey, why: str) -> None: ...

    def note(self, line: str) -> None:
        self.notes.append(line)


Propose = Callable[[MadeUp], Watched]


@pytest.fixture
def propose(little: Request, monkeypatch: pytest.MonkeyPatch) -> Propose:
    """Runs all trials of the little design with made-up workers: each is told once, or run elsewhere."""
    monkeypatch.setattr(proposer, "HELD_S", 0.0)
    monkeypatch.setattr(proposer, "SLOW_S", 0.0)

    def propose(pool: MadeUp) -> Watched:
        watched = Watched()
        Proposer(little, pool, "postgresql://ada/x", watched, dict.fromkeys(little.keys, 0)).run()
        assert watched.others in (0, len(little.keys))
        assert len(set(watched.keys)) == len(watched.keys) == len(little.keys) - watched.others
        return watched

    return propose


def test_each_trial_is_told_once_and_workers_are_dismissed(propose: Propose) -> None:
    pool = MadeUp(lambda _, lot: done(lot), {"one", "two"})
    assert propose(pool).others == 0
    assert {worker for worker, _ in pool.proposed} == pool.dismissed == {"one", "two"}


def test_what_was_proposed_to_one_who_is_gone_is_proposed_to_others(propose: Propose) -> None:
    def does(worker: str, lot: Lot) -> Answer | None:
        if worker == "one":
            pool.names.discard("one")
            return None
        return done(lot)

    pool = MadeUp(does, {"one", "two"})
    watched = propose(pool)
    assert "worker on one is gone" in watched.notes


def test_what_was_proposed_to_one_who_does_not_answer_is_offered_to_who_has_nothing_to_do(
    propose: Propose,
) -> None:
    pool = MadeUp(lambda worker, lot: None if worker == "one" else done(lot), {"one", "two"})
    propose(pool)


def test_a_group_that_another_holds_is_proposed_again(propose: Propose) -> None:
    refused: set[Group] = set()

    def does(_: str, lot: Lot) -> Answer:
        new = {group.group for group in lot.groups} - refused
        refused.update(new)
        if new:
            return Answer(host="ada", joined=True, held=[name_of(group.group) for group in lot.groups])
        return done(lot)

    propose(MadeUp(does, {"one"}))


def test_groups_that_were_run_elsewhere_are_counted_as_such(propose: Propose, little: Request) -> None:
    watched = propose(MadeUp(lambda _, lot: done(lot).model_copy(update={"trials": []}), {"one"}))
    assert (watched.keys, watched.others) == ([], len(little.keys))


def test_a_worker_that_has_left_is_asked_to_join_again(propose: Propose) -> None:
    left = [Answer(host="ada")]
    watched = propose(MadeUp(lambda _, lot: left.pop() if left else done(lot), {"one"}))
    assert watched.notes == ["worker on one takes part"] * 2


def test_a_host_that_refuses_is_told_once_and_gets_nothing(propose: Propose) -> None:
    def joins(name: str) -> Answer:
        return (
            Answer(host=name, refused="other binaries")
            if name == "one"
            else Answer(host=name, joined=True, room=1)
        )

    pool = MadeUp(lambda _, lot: done(lot), {"one", "two"}, joins)
    watched = propose(pool)
    assert {worker for worker, _ in pool.proposed} == pool.dismissed == {"two"}
    assert watched.notes.count("worker on one takes no group: other binaries") == 1
    with pytest.raises(EngineError, match="no worker takes groups"):
        propose(MadeUp(lambda _, lot: done(lot), {"one"}, joins))


def test_a_host_that_cannot_go_on_keeps_what_it_has_done(propose: Propose) -> None:
    def does(worker: str, lot: Lot) -> Answer:
        if worker == "one":
            return Answer(
                host=worker, joined=True, refused="died", held=[name_of(each.group) for each in lot.groups]
            )
        return done(lot)

    propose(MadeUp(does, {"one", "two"}))


def test_a_scheduler_that_was_gone_is_reached_again_and_everything_is_proposed_anew(propose: Propose) -> None:
    gone = [SchedulerGone("the connection ended")]

    class Breaks(MadeUp):
        def reply(self, wait_s: float) -> Reply | None:
            if gone and len(self.proposed) > 1:
                raise gone.pop()
            return super().reply(wait_s)

    pool = Breaks(lambda _, lot: done(lot), {"one"})
    watched = propose(pool)
    assert pool.connected == 1
    assert [note for note in watched.notes if "scheduler" in note] == [
        "the scheduler is gone (the connection ended): trying to reach it again",
        "the scheduler is there again",
    ]


def test_a_scheduler_that_was_begun_anew_while_it_was_asked_was_gone() -> None:
    """Dask's client connects again by itself."""

    class Reconnects:
        status = "running"
        scheduler_comm = object()

        def nthreads(self) -> dict[str, int]:
            self.scheduler_comm = object()
            return {}

    client: Any = Reconnects()
    with pytest.raises(dask_client.Gone, match="the connection ended"):
        dask_client.Office(client).workers()


def reply_to(future: Any, worker: str = "ada", number: int = 3) -> Reply:
    """Return the reply that the run of a campaign has of a future that has ended in its messenger."""
    said = dask_client.outcome_of(number, future).model_dump_json()
    outcome = dask_client.NEWS.validate_json(said)
    assert isinstance(outcome, dask_client.Outcome)
    return worker_pools.reply_of(worker, outcome)


@dataclass
class Answered:
    """A future that ended with what its worker answered."""

    said: object
    status: str = "finished"

    def result(self, timeout: float) -> object:  # noqa: ARG002
        return self.said


def test_an_answer_that_was_lost_with_its_worker_has_a_reason_though_the_error_has_none() -> None:
    class Lost:
        status = "finished"

        def result(self, timeout: float) -> str:  # noqa: ARG002
            raise TimeoutError

    assert reply_to(Lost()) == Reply("ada", 3, None, "TimeoutError", is_lost=True)


def test_a_result_that_is_no_text_or_too_long_is_an_answer_that_cannot_be_read() -> None:
    for result in (7, None, b"{}", ["{}"], "x" * (messenger.LINE_BYTES // 2 + 1)):
        reply = reply_to(Answered(result))
        assert reply.answer is not None, str(result)[:20]
        assert reply.answer.refused.startswith("its answer cannot be read"), str(result)[:20]


@pytest.mark.parametrize("text", ["", "null", "{}", '{"host": "ada", "room": "much"}'])
def test_a_worker_whose_answer_cannot_be_read_is_proposed_nothing_more(propose: Propose, text: str) -> None:
    class Talks(MadeUp):
        def reply(self, wait_s: float) -> Reply | None:
            reply = super().reply(wait_s)
            # To be asked to join, it answers well.
            return reply_to(Answered(text), reply.worker, reply.number) if reply and reply.number else reply

    pool = Talks(lambda _, lot: done(lot), {"one"})
    with pytest.raises(EngineError):
        propose(pool)
    assert len(pool.proposed) < 10


@pytest.mark.parametrize("is_lost", [True, False])
def test_a_worker_whose_answer_was_lost_is_asked_again_and_what_is_no_worker_is_not(
    propose: Propose, is_lost: bool
) -> None:
    broken = [Reply("one", 1, None, "this is no worker of fecbench", is_lost)]

    class Loses(MadeUp):
        def reply(self, wait_s: float) -> Reply | None:
            reply = super().reply(wait_s)
            return broken.pop() if reply and broken else reply

    pool = Loses(lambda _, lot: done(lot), {"one"})
    if is_lost:
        assert propose(pool).others == 0
    else:
        with pytest.raises(EngineError):
            propose(pool)


def test_a_lot_whose_answer_was_lost_is_proposed_again(propose: Propose) -> None:
    lost = [True]

    class Loses(MadeUp):
        def reply(self, wait_s: float) -> Reply | None:
            reply = super().reply(wait_s)
            if reply and reply.answer and reply.answer.done and lost:
                lost.pop()
                return Reply(reply.worker, reply.number, None, "TimeoutError")
            return reply

    propose(Loses(lambda _, lot: done(lot), {"one"}))


def test_groups_at_whose_proposal_the_scheduler_was_gone_are_proposed_again(propose: Propose) -> None:
    gone = [SchedulerGone("the connection ended")]

    class Breaks(MadeUp):
        def propose(self, worker: str, proposal: Proposal) -> int:
            if gone and isinstance(proposal, Lot):
                raise gone.pop()
            return super().propose(worker, proposal)

    propose(Breaks(lambda _, lot: done(lot), {"one"}))


def test_what_is_due_after_a_round_is_proposed_then(little: Request) -> None:
    first, *rounds = (dict.fromkeys([key], 0) for key in little.keys)
    pool, watched, left = MadeUp(lambda _, lot: done(lot), {"one"}), Watched(), list(rounds)
    Proposer(little, pool, "postgresql://ada/x", watched, first, lambda: left.pop(0) if left else {}).run()
    assert watched.keys == little.keys
    assert len(pool.proposed) == len(little.keys)
