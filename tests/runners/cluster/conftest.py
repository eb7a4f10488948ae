"""Fixtures of clusters: a place that proposals come from, and campaigns into a database."""

import queue
import threading
from typing import Any

import pytest

from fecbench import __version__
from fecbench.results.store.records import Group, TrialKey
from fecbench.runners.campaign.request import Request
from fecbench.runners.cluster.inbox import Asked
from fecbench.runners.cluster.messages import Answer, GroupTrials, Join, Leave, Lot, Proposal
from tests.runners.campaign.conftest import believed, little  # noqa: F401 - fixtures


class Proposals:
    """An inbox without a scheduler."""

    def __init__(self) -> None:
        self._asked: queue.Queue[Asked] = queue.Queue()
        self._put_back: list[Asked] = []
        self.answers: dict[int, Answer] = {}
        self._proposed = 0
        self._answered = threading.Condition()

    def propose(self, proposal: Proposal) -> int:
        self._proposed += 1
        process: Any = None
        self._asked.put(Asked(proposal, self._proposed, process))
        return self._proposed

    def get(self, wait_s: float | None = 0.0) -> Asked | None:
        if self._put_back:
            return self._put_back.pop()
        try:
            return self._asked.get(timeout=wait_s) if wait_s != 0 else self._asked.get_nowait()
        except queue.Empty:
            return None

    def put_back(self, asked: Asked) -> None:
        self._put_back.append(asked)

    def answer(self, asked: Asked, answer: Answer) -> None:
        with self._answered:
            self.answers[asked.number] = answer
            self._answered.notify_all()

    def until_answered(self, number: int) -> Answer:
        with self._answered:
            assert self._answered.wait_for(lambda: number in self.answers, 60)
        return self.answers[number]


@pytest.fixture
def proposals() -> Proposals:
    return Proposals()


HERE = "postgresql://ada/x"
"""The database that proposals name."""


def lot_of(request: Request, groups: int | None = None, name: str = "", database: str = HERE) -> Lot:
    """The first groups of what is wanted; None: all of them."""
    trials: dict[Group, dict[str, int]] = {}
    for key in request.keys:
        trials.setdefault(key.group, {})[key.variant] = 0
    chosen = list(trials.items())[:groups]
    return Lot(
        database=database,
        campaign=name or request.name,
        groups=[
            GroupTrials(
                workload=group.workload, point=group.point, repetition=group.repetition, attempts=attempts
            )
            for group, attempts in chosen
        ],
    )


def keys_of(lot: Lot) -> list[TrialKey]:
    return [key for group in lot.groups for key in group.due]


def join_to(database: str, campaign: str = "little", **changes: Any) -> Join:
    fields = {
        "fecbench": __version__,
        "database": database,
        "campaign": campaign,
        "retry": [],
        "calibrate": False,
    }
    return Join(**{**fields, **changes})


def leave(campaign: str = "little") -> Leave:
    return Leave(database=HERE, campaign=campaign)
