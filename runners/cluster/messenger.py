"""The process between a scheduler and a worker: python -m runners.cluster.messenger

Dask runs in it, and nothing else: whoever controls the scheduler controls this process. So it has no rights
where the worker is root, and the worker takes nothing of it but lines of JSON. On standard input come its
configuration and the answers, on standard output go proposals; it ends with either, with its worker, and with
its connection to the scheduler.
"""

import asyncio
import itertools
import os
import sys
import threading
from concurrent.futures import Future
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from runners.cluster import errand, settings
from runners.cluster.address import Papers
from runners.sandbox import kernel
from runners.sandbox.isolation import die_with_parent

THREADS = 64
"""Each waits for an answer: the worker says how many proposals it likes to have."""
HEARTBEAT_S = 60.0
"""Of one that has nothing to do, so that a scheduler with other settings than ours keeps it."""
CONNECTED = "connected"


class Configuration(BaseModel):
    """The first line on standard input."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    address: str
    authority: str
    certificate: str
    key: str
    """All three empty: without TLS."""
    name: str
    folder: Path
    """Its own."""
    user: int | None
    """Whom it becomes; None: stays who it is."""
    worker: int
    """The process with which it ends."""

    @property
    def papers(self) -> Papers | None:
        return Papers(self.authority, self.certificate, self.key) if self.key else None


class Line(BaseModel):
    """A proposal, or its answer."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    number: int
    text: str


class Answers:
    """Hands proposals to the worker, and waits for what it answers."""

    def __init__(self) -> None:
        self._numbers = itertools.count()
        self._waiting: dict[int, Future[str]] = {}
        self._writing = threading.Lock()

    @property
    def is_busy(self) -> bool:
        return bool(self._waiting)

    def carry(self, proposal: str) -> str:
        """Called in a thread of its own."""
        number = next(self._numbers)
        answer = self._waiting[number] = Future()
        say(Line(number=number, text=proposal).model_dump_json(), self._writing)
        return answer.result()

    def read(self) -> None:
        """Until standard input ends; this process ends with it."""
        for text in sys.stdin:
            line = Line.model_validate_json(text)
            if answer := self._waiting.pop(line.number, None):
                answer.set_result(line.text)
        os._exit(0)


def say(text: str, writing: threading.Lock) -> None:
    with writing:
        print(text, flush=True)


async def _serve(configuration: Configuration, answers: Answers) -> str:
    """Why it ended."""
    from distributed import Worker

    try:
        worker = await Worker(
            configuration.address,
            nthreads=THREADS,
            name=configuration.name,
            security=settings.security(configuration.papers),
            local_directory=str(configuration.folder),
            memory_limit=0,
            death_timeout=30,
            dashboard=False,
            metrics={},
            startup_information={},
        )
    except (OSError, TimeoutError) as error:
        return str(error) or "it does not answer"
    # Nothing of it may run beside a trial: what it would do by itself is stopped.
    for callback in worker.periodic_callbacks.values():
        callback.stop()
    worker.http_server.stop()
    say(CONNECTED, threading.Lock())
    beating = asyncio.create_task(_beat(worker, answers))
    await worker.finished()
    beating.cancel()
    return "the connection ended"


async def _beat(worker: "object", answers: Answers) -> None:
    while True:
        await asyncio.sleep(HEARTBEAT_S)
        if not answers.is_busy:
            await worker.heartbeat()  # type: ignore[attr-defined]


def main() -> None:
    configuration = Configuration.model_validate_json(sys.stdin.readline())
    die_with_parent(configuration.worker)
    settings.apply()
    os.chdir(configuration.folder)
    if configuration.user is not None:
        kernel.become(configuration.user)
        die_with_parent(configuration.worker)  # a change of user forgets it
    answers = Answers()
    errand.carry_by(answers.carry)
    threading.Thread(target=answers.read, daemon=True).start()
    why = asyncio.run(_serve(configuration, answers))
    # Threads that wait for answers would keep it from ending.
    print(why, file=sys.stderr, flush=True)
    os._exit(1)


if __name__ == "__main__":
    main()
