"""The workers at a scheduler, as the one who runs a campaign sees them: by Dask's client."""

import itertools
import queue
import time
import uuid
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from pydantic import ValidationError

from runners.cluster import address, errand, settings
from runners.cluster.address import Place
from runners.cluster.messages import Answer, Proposal
from runners.refusal import first_problem

if TYPE_CHECKING:
    from distributed import Client, Future

CONNECT_S = 10.0
RECONNECT_S = 120.0
FETCH_S = 10.0
"""How long an answer may take from where it lies: with a worker that died it is lost."""
LOOK_S = 1.0
"""How often is looked who is there."""


class SchedulerGone(Exception):
    """The connection to the scheduler has ended; says why."""


@dataclass(frozen=True)
class Reply:
    """What came of a proposal."""

    worker: str
    number: int
    answer: Answer | None
    """None: there is no answer, and `why`."""
    why: str = ""
    is_lost: bool = False
    """Whether there may have been an answer that did not come here."""


class Crew:
    """A context manager: at its end nothing is proposed any more."""

    def __init__(self, place: Place) -> None:
        self._place = place
        self._client: Client | None = None
        self._connection: object = None
        """Of the client, which would make another one by itself, and would not tell."""
        self._futures: dict[int, Future[str]] = {}
        self._numbers = itertools.count()
        self._ended: queue.Queue[Reply] = queue.Queue()
        self._workers: set[str] = set()
        self._looked_at = 0.0

    def __enter__(self) -> Self:
        settings.apply()
        self.connect()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._close()

    def connect(self) -> None:
        """Raises OSError that says in one line why nobody answers."""
        from distributed import Client

        address.call(self._place)
        try:
            self._client = Client(
                self._place.address,
                security=settings.security(self._place.papers),
                timeout=CONNECT_S,
                set_as_default=False,
            )
        except (OSError, TimeoutError) as error:
            raise OSError(f"{self._place.address}: no scheduler answers: {error}") from error
        self._connection = self._client.scheduler_comm

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
        now = time.monotonic()
        if now - self._looked_at >= LOOK_S:
            client = self._connected()
            try:
                self._workers = set(client.nthreads())
            except Exception as error:  # whatever it is: Dask has no class for it
                raise SchedulerGone(str(error) or type(error).__name__) from error
            self._connected()  # still: one that was begun anew knows nobody
            self._looked_at = now
        return self._workers

    def propose(self, worker: str, proposal: Proposal) -> int:
        """The number of its reply."""
        number = next(self._numbers)
        future = self._connected().submit(
            errand.carry_out,
            proposal.model_dump_json(),
            key=f"fecbench-{uuid.uuid4().hex}",
            workers=[worker],
            allow_other_workers=False,
            pure=False,
        )
        self._futures[number] = future
        # In a thread of Dask's: an answer that is lost is waited for in vain.
        future.add_done_callback(lambda ended: self._ended.put(reply_of(number, worker, ended)))
        return number

    def forget(self, number: int) -> None:
        """Its reply is not waited for any more."""
        if kept := self._futures.pop(number, None):
            kept.cancel()

    def reply(self, wait_s: float) -> Reply | None:
        """The next reply; None when there is none within that time. Raises SchedulerGone."""
        until = time.monotonic() + wait_s
        while True:
            self._connected()
            try:
                reply = self._ended.get(timeout=max(0.0, until - time.monotonic()))
            except queue.Empty:
                return None
            if self._futures.pop(reply.number, None):
                return reply

    def dismiss(self, proposals: dict[str, Proposal], wait_s: float) -> None:
        """Propose to each worker what ends the campaign, and wait a little until they know."""
        try:
            numbers = {self.propose(worker, proposal) for worker, proposal in proposals.items()}
            until = time.monotonic() + wait_s
            while numbers and (reply := self.reply(max(0.0, until - time.monotonic()))):
                numbers.discard(reply.number)
        except SchedulerGone:
            pass  # they find out by themselves that nothing is proposed any more

    def _connected(self) -> "Client":
        client = self._client
        if client is None or client.status != "running" or client.scheduler_comm is not self._connection:
            raise SchedulerGone("the connection ended")
        return client

    def _close(self) -> None:
        self._futures.clear()
        if self._client is not None:
            self._client.close(timeout=2)
            self._client = None


def reply_of(number: int, worker: str, future: "Future[str]") -> Reply:
    """What came of a proposal whose future has ended."""
    if future.status != "finished":
        error: Any = future.exception() if future.status == "error" else future.status
        why = " ".join(str(error).split()) or type(error).__name__
        return Reply(worker, number, None, why, is_lost=future.status != "error")
    try:
        text = future.result(timeout=FETCH_S)
    except Exception as error:  # of Dask's, as when the worker died with it
        return Reply(worker, number, None, type(error).__name__, is_lost=True)
    try:
        answer = Answer.model_validate_json(text)
    except ValidationError as error:  # it would be the same again
        answer = Answer(host=worker, refused=f"its answer cannot be read: {first_problem(error)}")
    return Reply(worker, number, answer)
