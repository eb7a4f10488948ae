"""Dask's worker, in a process without rights: python -m fecbench.runners.cluster.dask_worker

On standard input come answers, on standard output go proposals.
"""

import asyncio
import itertools
import os
import sys
import threading
from concurrent.futures import Future

from fecbench.runners.cluster import messenger, remote_call, settings
from fecbench.runners.cluster.messenger import Configuration, Message

THREADS = 64
"""Each waits for an answer: the worker says how many proposals it likes to have."""
HEARTBEAT_S = 60.0
"""Heartbeat of an idle worker, so that a scheduler with other settings than ours keeps it."""
CONNECTED = -1
"""The number of the line that says no more than this."""


class Line(Message):
    """A proposal, or its answer."""

    number: int
    text: str


class Answers:
    """Hands proposals to the worker, and waits for what it answers."""

    def __init__(self) -> None:
        self._numbers = itertools.count()
        self._waiting: dict[int, Future[str]] = {}

    @property
    def is_busy(self) -> bool:
        return bool(self._waiting)

    def carry(self, proposal: str) -> str:
        """Called in a thread of its own."""
        number = next(self._numbers)
        answer = self._waiting[number] = Future()
        messenger.say(Line(number=number, text=proposal))
        return answer.result()

    def read(self) -> None:
        """Read lines until standard input ends; this process ends with it."""
        for text in sys.stdin:
            line = Line.model_validate_json(text)
            if answer := self._waiting.pop(line.number, None):
                answer.set_result(line.text)
        os._exit(0)


async def _serve(configuration: Configuration, answers: Answers) -> str:
    """Run the worker; return why it ended."""
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
    messenger.say(Line(number=CONNECTED, text=""))
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
    configuration = messenger.enter()
    answers = Answers()
    remote_call.carry_by(answers.carry)
    threading.Thread(target=answers.read, daemon=True).start()
    # Threads that wait for answers would keep it from ending.
    messenger.end(asyncio.run(_serve(configuration, answers)))


if __name__ == "__main__":
    main()
