"""The side of Dask.distributed: its settings, the scheduler, and the two programs of messengers.

Nothing else loads Dask.

Dask carries one task per worker, `take_part`: "join this campaign of that database". The programs run in
processes without rights (`messenger`), since Dask unpickles what comes over the network.
"""

import asyncio
import importlib.util
import itertools
import logging
import math
import os
import sys
import threading
import time
import uuid
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from fecbench.complaint import complaint
from fecbench.runners import scratch
from fecbench.runners.cluster import messenger
from fecbench.runners.cluster.address import Papers, Place
from fecbench.runners.cluster.messages import (
    WHY_CHARACTERS,
    Answer,
    Asked,
    Connected,
    Join,
    Outcome,
    Reply,
    Withdrawn,
    Workers,
)
from fecbench.runners.refusal import Refusal

if TYPE_CHECKING:
    from distributed import Client, Future, Security

# Nothing measures, moves or shows anything by itself. Modules of Dask read some of this as they are loaded.
SETTINGS: dict[str, object] = {
    "distributed.scheduler.work-stealing": False,
    "distributed.scheduler.worker-ttl": None,  # a worker that runs trials tells nothing meanwhile
    "distributed.scheduler.allowed-failures": 1000,
    "distributed.scheduler.active-memory-manager.start": False,
    "distributed.scheduler.http.routes": [],
    "distributed.worker.http.routes": [],
    "distributed.worker.profile.enabled": False,
    "distributed.worker.memory.target": False,
    "distributed.worker.memory.spill": False,
    "distributed.worker.memory.pause": False,
    "distributed.worker.memory.terminate": False,
    "distributed.admin.system-monitor.interval": "1h",
    "distributed.admin.system-monitor.disk": False,
    "distributed.admin.system-monitor.host-cpu": False,
    "distributed.admin.system-monitor.gil.enabled": False,
    "distributed.admin.tick.interval": "1h",
    "distributed.admin.tick.cycle": "1h",
    "distributed.admin.event-loop": "asyncio",
    "distributed.diagnostics.nvml": False,
}
THREADS = 64
"""Most requests at a time."""
HEARTBEAT_S = 60.0
"""Heartbeat of an idle worker, so that a scheduler with other settings than ours keeps it."""
CONNECT_S = 10.0
LOOK_S = 0.5
"""Interval between two looks of the client at the workers that are there."""
AGAIN_S = 3.0
"""Time after which a worker that has left, or whose answer was lost, is asked again."""


def require() -> None:
    """Raises Refusal where Dask.distributed is missing; loads nothing of it."""
    if importlib.util.find_spec("distributed") is None:
        raise Refusal("Dask.distributed is missing: pip install distributed, or `make build` in a checkout")


def apply() -> None:
    """Load Dask.distributed with these settings. Raises Refusal where it is missing."""
    require()
    import dask.config

    dask.config.set(SETTINGS)
    import distributed  # noqa: F401 - it sets its own loggers up as it is loaded

    # We report a connection that ended ourselves, in one line.
    for name in ("tornado", "asyncio", *logging.root.manager.loggerDict):
        if name.partition(".")[0] in ("distributed", "tornado", "asyncio"):
            logging.getLogger(name).setLevel(logging.CRITICAL + 1)


def security(papers: Papers | None) -> "Security":
    """Return the security of the connections: without papers, there is no TLS."""
    from distributed import Security

    if papers is None:
        return Security(require_encryption=False)
    pairs = {
        f"tls_{role}_{what}": text
        for role in ("client", "scheduler", "worker")
        for what, text in (("cert", papers.certificate), ("key", papers.key))
    }
    return Security(require_encryption=True, tls_ca_file=papers.authority, **pairs)


# The scheduler: it hands the task on from who runs a campaign to workers, and keeps nothing


def serve(place: Place, tell: Callable[[str], None]) -> None:
    """Serve until a signal ends it. Raises OSError where it cannot listen."""
    apply()
    import dask.config

    # Dask makes a folder there, and does not remove it.
    with scratch.folder() as folder, dask.config.set({"temporary-directory": str(folder)}):
        asyncio.run(_serve(place, tell))


async def _serve(place: Place, tell: Callable[[str], None]) -> None:
    from distributed import Scheduler

    scheduler = await Scheduler(
        host=f"{place.address.partition('://')[0]}://{place.host}",
        port=place.port,
        security=security(place.papers),
        dashboard=False,
        dashboard_address="127.0.0.1:0",
    )
    scheduler.http_server.stop()
    tell(f"listens at {scheduler.address}")
    await scheduler.finished()


# The messenger of `fecbench worker`


async def take_part(join: str, key: str) -> str:
    """The task: return the worker's answer to a line of JSON. `key` is that of the task."""
    if _desk is None:
        raise RuntimeError("this is no worker of fecbench: fecbench worker starts one")
    return await _desk.take_part(join, key)


class Desk:
    """Hands requests to the worker, and waits for its answers."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._numbers = itertools.count()
        self._open: dict[str, tuple[int, asyncio.Future[str]]] = {}

    @property
    def is_busy(self) -> bool:
        return bool(self._open)

    async def take_part(self, text: str, key: str) -> str:
        try:
            join = Join.model_validate_json(text)
        except ValidationError as error:
            why = f"the request cannot be read, as one of another version: {complaint(error)}"
            answer = Answer(host="", state="refused", why=why[:WHY_CHARACTERS])
            return answer.model_dump_json()
        number, answered = next(self._numbers), self._loop.create_future()
        self._open[key] = number, answered
        messenger.say(Asked(number=number, join=join))
        text_of_answer: str = await answered
        return text_of_answer

    def transition(self, key: Any, start: str, finish: str, **_: object) -> None:
        """Called by Dask at each change of a task: one that is released while it runs is withdrawn."""
        if (start, finish) == ("executing", "released") and (request := self._open.pop(key, None)):
            messenger.say(Withdrawn(number=request[0]))

    def read(self) -> None:
        """Read answers until standard input ends; this process ends with it."""
        for line in sys.stdin:
            self._loop.call_soon_threadsafe(self._answer, Reply.model_validate_json(line))
        os._exit(0)

    def _answer(self, reply: Reply) -> None:
        for key, (number, answered) in list(self._open.items()):
            if number == reply.number:
                del self._open[key]
                answered.set_result(reply.answer.model_dump_json())


_desk: Desk | None = None


def work() -> None:
    """Run the messenger of `fecbench worker`."""
    messenger.end(asyncio.run(_work(messenger.enter(apply))))


async def _work(configuration: messenger.Configuration) -> str:
    """Run Dask's worker; return why it ended."""
    global _desk
    from distributed import Worker, WorkerPlugin

    desk = _desk = Desk()
    plugin = WorkerPlugin()
    plugin.transition = desk.transition  # type: ignore[method-assign]
    threading.Thread(target=desk.read, daemon=True).start()
    try:
        worker = await Worker(
            configuration.address,
            nthreads=THREADS,
            name=configuration.name,
            security=security(configuration.papers),
            local_directory=str(configuration.folder),
            memory_limit=0,
            death_timeout=30,
            dashboard=False,
            metrics={},
            startup_information={},
            plugins=(plugin,),
        )
    except (OSError, TimeoutError) as error:
        return str(error) or "it does not answer"
    # Nothing of it may run beside a trial: what it would do by itself is stopped.
    for callback in worker.periodic_callbacks.values():
        callback.stop()
    worker.http_server.stop()
    messenger.say(Connected())
    beating = asyncio.create_task(_beat(worker, desk))
    await worker.finished()
    beating.cancel()
    return "the connection ended"


async def _beat(worker: Any, desk: Desk) -> None:
    while True:
        await asyncio.sleep(HEARTBEAT_S)
        if not desk.is_busy:
            await worker.heartbeat()


# The messenger of `fecbench run`


class Gone(Exception):
    """The connection to the scheduler has ended; says why."""


class Invitations:
    """Asks every worker to take part, and asks again whoever has left."""

    def __init__(self, client: "Client", join: str) -> None:
        self._client, self._join = client, join
        self._connection = client.scheduler_comm
        """Connection of the client, which would make another one by itself, and would not tell."""
        self._asked: dict[str, Future[str]] = {}
        self._not_before: dict[str, float] = {}
        """Moment at which a worker may be asked again; infinite for one that has refused."""

    def look(self) -> Workers:
        """Ask workers that are new, tell answers, and return who is there. Raises Gone."""
        workers = self._workers()
        there, now = set(workers.addresses), time.monotonic()
        for worker in self._asked.keys() - there:
            self._asked.pop(worker).cancel()
        for worker in self._not_before.keys() - there:
            del self._not_before[worker]
        for worker, future in list(self._asked.items()):
            if future.done():
                del self._asked[worker]
                answer = answer_of(worker, future)
                self._not_before[worker] = math.inf if answer.state == "refused" else now + AGAIN_S
                messenger.say(Outcome(worker=worker, answer=answer))
        for worker in there - self._asked.keys():
            if now >= self._not_before.get(worker, 0.0):
                self._asked[worker] = self._submit(worker)
        return workers

    def _submit(self, worker: str) -> "Future[str]":
        key = f"fecbench-{uuid.uuid4().hex}"
        task: Any = take_part  # Dask knows coroutines, its annotations do not
        return self._client.submit(
            task, self._join, key, key=key, workers=[worker], allow_other_workers=False, pure=False
        )

    def _workers(self) -> Workers:
        self._check()
        try:
            addresses = sorted(self._client.nthreads())
        except Exception as error:  # whatever it is: Dask has no class for it
            raise Gone(str(error) or type(error).__name__) from error
        self._check()  # still: one that was begun anew knows nobody
        return Workers(addresses=addresses)

    def _check(self) -> None:
        if self._client.status != "running" or self._client.scheduler_comm is not self._connection:
            raise Gone("the connection ended")


def answer_of(worker: str, future: "Future[str]") -> Answer:
    """Return the answer to a request whose future has ended; one that was lost may be had again."""
    if future.status == "error":
        error = future.exception()
        why = " ".join(str(error).split()) or type(error).__name__
        return Answer(host=worker, state="refused", why=why[:WHY_CHARACTERS])
    try:
        text = future.result(timeout=CONNECT_S)
    except (Exception, asyncio.CancelledError) as error:  # of Dask's, as when the worker died with it
        return Answer(host=worker, state="left", why=type(error).__name__)
    try:
        answer = Answer.model_validate_json(text)
    except ValidationError as error:  # it would be the same again
        why = f"its answer cannot be read: {complaint(error)}"
        return Answer(host=worker, state="refused", why=why[:WHY_CHARACTERS])
    return answer.model_copy(
        update={"host": answer.host[:WHY_CHARACTERS] or worker, "why": answer.why[:WHY_CHARACTERS]}
    )


def invite() -> None:
    """Run the messenger of `fecbench run`."""
    configuration = messenger.enter(apply)
    from distributed import Client

    threading.Thread(target=_end_with_input, daemon=True).start()
    try:
        client = Client(
            configuration.address,
            security=security(configuration.papers),
            timeout=CONNECT_S,
            set_as_default=False,
        )
        invitations = Invitations(client, configuration.join)
        while True:
            messenger.say(invitations.look())
            time.sleep(LOOK_S)
    except (OSError, TimeoutError) as error:
        messenger.end(f"no scheduler answers: {error}")
    except Gone as gone:
        messenger.end(str(gone))


def _end_with_input() -> None:
    sys.stdin.read()
    os._exit(0)
