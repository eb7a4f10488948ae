"""Dask's client, in a process without rights: python -m fecbench.runners.cluster.dask_client

It hands proposals of whoever runs a campaign to the scheduler, and tells what came of them and who is there.
Results and errors are unpickled here, and not in the process that runs the campaign.
"""

import sys
import threading
import time
import uuid
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field, TypeAdapter

from fecbench.runners.cluster import messenger, remote_call, settings
from fecbench.runners.cluster.messenger import LINE_BYTES, Message

if TYPE_CHECKING:
    from distributed import Client, Future

CONNECT_S = 10.0
FETCH_S = 10.0
"""Longest time of an answer from where it lies: with a worker that died it is lost."""
LOOK_S = 1.0
"""Interval between two looks at the workers that are there."""
WHY_CHARACTERS = 1000


class Propose(Message):
    """Has a worker asked something."""

    kind: Literal["propose"] = "propose"
    number: int
    worker: str
    text: str


class Forget(Message):
    """A line: the answer to a proposal is of no interest any more."""

    kind: Literal["forget"] = "forget"
    number: int


class Workers(Message):
    """A line: the workers that are there. It comes once connected, and then every LOOK_S."""

    kind: Literal["workers"] = "workers"
    addresses: list[str]


class Outcome(Message):
    """A line: the answer to a proposal."""

    kind: Literal["outcome"] = "outcome"
    number: int
    text: str | None
    """None: there is no answer, and `why`."""
    why: str = ""
    is_lost: bool = False
    """Whether there may have been an answer that did not come here."""


Request = Propose | Forget
REQUESTS: TypeAdapter[Request] = TypeAdapter(Annotated[Request, Field(discriminator="kind")])
News = Workers | Outcome
NEWS: TypeAdapter[News] = TypeAdapter(Annotated[News, Field(discriminator="kind")])


class Gone(Exception):
    """The connection to the scheduler has ended; says why."""


class Office:
    """The work for the run of a campaign."""

    def __init__(self, client: "Client") -> None:
        self._client = client
        self._connection = client.scheduler_comm
        """Connection of the client, which would make another one by itself, and would not tell."""
        self._futures: dict[int, Future[str]] = {}

    def workers(self) -> Workers:
        """Raises Gone."""
        self._check()
        try:
            addresses = [str(address) for address in self._client.nthreads()]
        except Exception as error:  # whatever it is: Dask has no class for it
            raise Gone(str(error) or type(error).__name__) from error
        self._check()  # still: one that was begun anew knows nobody
        return Workers(addresses=addresses)

    def read(self) -> None:
        """Read lines until standard input ends; this process ends with it."""
        try:
            for line in sys.stdin:
                self._hear(REQUESTS.validate_json(line))
        finally:
            messenger.end("its input ended")

    def _hear(self, request: Request) -> None:
        if isinstance(request, Forget):
            if future := self._futures.pop(request.number, None):
                future.cancel()
            return
        number = request.number
        future = self._client.submit(
            remote_call.carry_out,
            request.text,
            key=f"fecbench-{uuid.uuid4().hex}",
            workers=[request.worker],
            allow_other_workers=False,
            pure=False,
        )
        self._futures[number] = future
        # In a thread of Dask's: an answer that is lost is waited for in vain.
        future.add_done_callback(lambda ended: self._tell(number, ended))

    def _tell(self, number: int, future: "Future[str]") -> None:
        outcome = outcome_of(number, future)
        self._futures.pop(number, None)
        messenger.say(outcome)

    def _check(self) -> None:
        if self._client.status != "running" or self._client.scheduler_comm is not self._connection:
            raise Gone("the connection ended")


def outcome_of(number: int, future: "Future[str]") -> Outcome:
    """Return the answer to a proposal whose future has ended."""
    if future.status != "finished":
        error: Any = future.exception() if future.status == "error" else future.status
        why = " ".join(str(error).split()) or type(error).__name__
        return Outcome(number=number, text=None, why=why[:WHY_CHARACTERS], is_lost=future.status != "error")
    try:
        text = future.result(timeout=FETCH_S)
    except Exception as error:  # of Dask's, as when the worker died with it
        return Outcome(number=number, text=None, why=type(error).__name__, is_lost=True)
    # Half, since a line has some characters twice.
    is_text = isinstance(text, str) and len(text) <= LINE_BYTES // 2
    return Outcome(number=number, text=text if is_text else "")


def main() -> None:
    configuration = messenger.enter()
    from distributed import Client

    try:
        client = Client(
            configuration.address,
            security=settings.security(configuration.papers),
            timeout=CONNECT_S,
            set_as_default=False,
        )
        office = Office(client)
        news = office.workers()
        threading.Thread(target=office.read, daemon=True).start()
        while True:
            messenger.say(news)
            time.sleep(LOOK_S)
            news = office.workers()
    except (OSError, TimeoutError) as error:
        messenger.end(f"no scheduler answers: {error}")
    except Gone as gone:
        messenger.end(str(gone))


if __name__ == "__main__":
    main()
