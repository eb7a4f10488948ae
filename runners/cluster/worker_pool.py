"""The workers at a scheduler, as whoever runs a campaign sees them: by a messenger, where Dask's client is.

This process may hold the database's password, so it unpickles nothing: what a scheduler or a worker sends is
unpickled in the messenger, and here come lines of JSON of bounded length.
"""

import itertools
import time
from collections import deque
from dataclasses import dataclass
from types import TracebackType
from typing import Self

from pydantic import ValidationError

from fecbench.complaint import complaint
from fecbench.runners.cluster import address
from fecbench.runners.cluster.address import Place
from fecbench.runners.cluster.dask_client import (
    LOOK_S,
    NEWS,
    WHY_CHARACTERS,
    Forget,
    Outcome,
    Propose,
    Workers,
)
from fecbench.runners.cluster.messages import Answer, Proposal
from fecbench.runners.cluster.messenger import Broken, Ended, Messenger, Quarters
from fecbench.runners.engines.engine import EngineError

READY_S = 60.0
"""Longest time of a messenger to connect: it loads Dask, which takes long on a busy machine."""
SILENT_S = 60.0
"""A messenger says who is there each second. One that is silent for so long is no use."""
RECONNECT_S = 120.0


class SchedulerGone(Exception):
    """The connection to the scheduler has ended; says why."""


@dataclass(frozen=True)
class Reply:
    """The reply to a proposal."""

    worker: str
    number: int
    answer: Answer | None
    """None: there is no answer, and `why`."""
    why: str = ""
    is_lost: bool = False
    """Whether there may have been an answer that did not come here."""


class WorkerPool:
    """A context manager: at its end nothing is proposed any more.

    A messenger that does what none of ours does ends the campaign: EngineError says in one line what it did.
    """

    def __init__(self, place: Place, module: str = "fecbench.runners.cluster.dask_client") -> None:
        """`module` is the program of the messenger."""
        self._place = place
        self._quarters = Quarters(place, module)
        self._messenger: Messenger | None = None
        self._asked: dict[int, str] = {}
        """Worker of each proposal without a reply."""
        self._numbers = itertools.count()
        self._ended: deque[Reply] = deque()
        self._workers: set[str] | None = None
        """None: the messenger has not said yet who is there."""

    def __enter__(self) -> Self:
        self._quarters.__enter__()
        try:
            self.connect()
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._close()
        self._quarters.__exit__(kind, error, trace)

    def connect(self) -> None:
        """Raises OSError that says in one line why nobody answers."""
        address.call(self._place)
        self._messenger = Messenger(self._quarters.start(""))
        self._workers = None
        until = time.monotonic() + READY_S
        try:
            while self._workers is None:
                if time.monotonic() >= until:
                    self._close()
                    raise SchedulerGone(f"the messenger is not connected within {READY_S:g} s")
                self._listen(until - time.monotonic())
        except SchedulerGone as gone:
            raise OSError(f"{self._place.address}: {gone}") from gone

    def connect_again(self) -> None:
        """Try for RECONNECT_S. Raises OSError."""
        self._close()
        until = time.monotonic() + RECONNECT_S
        while True:
            try:
                self.connect()
            except OSError:
                if time.monotonic() >= until:
                    raise
                time.sleep(LOOK_S)
            else:
                return

    def workers(self) -> set[str]:
        """The addresses of those who are there. Raises SchedulerGone."""
        self._listen(0.0)
        return self._workers or set()

    def propose(self, worker: str, proposal: Proposal) -> int:
        """The number of its reply. Raises SchedulerGone."""
        number = next(self._numbers)
        self._send(Propose(number=number, worker=worker, text=proposal.model_dump_json()))
        self._asked[number] = worker
        return number

    def forget(self, number: int) -> None:
        """Stop waiting for its reply. Raises SchedulerGone."""
        self._ended = deque(reply for reply in self._ended if reply.number != number)
        if self._asked.pop(number, None):
            self._send(Forget(number=number))

    def reply(self, wait_s: float) -> Reply | None:
        """The next reply; None when there is none within that time. Raises SchedulerGone."""
        until = time.monotonic() + wait_s
        while True:
            if self._ended:
                return self._ended.popleft()
            if (left_s := until - time.monotonic()) < 0:
                return None
            self._listen(left_s)

    def dismiss(self, proposals: dict[str, Proposal], wait_s: float) -> None:
        """Propose to each worker what ends the campaign, and wait a little until they know."""
        try:
            numbers = {self.propose(worker, proposal) for worker, proposal in proposals.items()}
            until = time.monotonic() + wait_s
            while numbers and (reply := self.reply(max(0.0, until - time.monotonic()))):
                numbers.discard(reply.number)
        except SchedulerGone:
            pass  # they find out by themselves that nothing is proposed any more

    def _send(self, request: Propose | Forget) -> None:
        try:
            self._connected().send(request)
        except Broken as problem:
            raise self._broken(problem) from problem

    def _listen(self, wait_s: float) -> None:
        """Hear what the messenger says within that time."""
        messenger = self._connected()
        try:
            for line in messenger.lines(min(wait_s, LOOK_S)):
                self._hear(line)
        except Ended as ended:
            self._messenger = None
            self._close()
            raise SchedulerGone(str(ended)) from ended
        except Broken as problem:
            raise self._broken(problem) from problem
        if messenger.silent_s > SILENT_S:
            self._close()
            raise SchedulerGone(f"the messenger has been silent for {SILENT_S:g} s")

    def _hear(self, line: bytes) -> None:
        try:
            news = NEWS.validate_json(line)
        except ValidationError as error:
            raise Broken(f"said {line[:80]!r}, which is no news of a scheduler") from error
        if isinstance(news, Workers):
            self._workers = set(news.addresses)
        elif worker := self._asked.pop(news.number, None):  # one that was forgotten may have been on its way
            self._ended.append(reply_of(worker, news))

    def _broken(self, problem: Broken) -> EngineError:
        self._close()
        return EngineError(f"the messenger to {self._place.address} is broken: it {problem}")

    def _connected(self) -> Messenger:
        if self._messenger is None:
            raise SchedulerGone("the connection ended")
        return self._messenger

    def _close(self) -> None:
        self._asked.clear()
        self._ended.clear()
        if self._messenger is not None:
            self._messenger.close()
            self._messenger = None


def reply_of(worker: str, outcome: Outcome) -> Reply:
    """Return the reply to a proposal to this worker."""
    if outcome.text is None:
        return Reply(worker, outcome.number, None, outcome.why, outcome.is_lost)
    try:
        answer = Answer.model_validate_json(outcome.text)
    except ValidationError as error:  # it would be the same again
        why = complaint(error)[:WHY_CHARACTERS]
        answer = Answer(host=worker, refused=f"its answer cannot be read: {why}")
    return Reply(worker, outcome.number, answer)
