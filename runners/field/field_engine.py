"""The engine of the field: transfers over a path that is not ours, block by block, one at a time.

A block is what a campaign calls a group: one transfer of each variant, back to back, in an order drawn anew.
Before it, the path is probed, a volley shows its rates, and one transfer warms it up, which is not counted;
before each transfer the queue drains. Nothing is carried over: each transfer has new processes, sockets and
certificates.
"""

from __future__ import annotations

import contextlib
import shutil
import ssl
import time
import uuid
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Self

from fecbench.results.store.records import Group, TrialKey
from fecbench.runners import scratch
from fecbench.runners.engines.engine import EngineError, Finished
from fecbench.runners.field import probe_trains
from fecbench.runners.field.client import ClientProcess, Order
from fecbench.runners.field.client_session import OrderRefusal, Session, Train, require_programs
from fecbench.runners.field.connection import ConnectionLost, Place
from fecbench.runners.field.local_end import is_gone
from fecbench.runners.implementations.implementation import Implementation
from fecbench.runners.probe import sha256_of
from fecbench.runners.sandbox import handed_over
from fecbench.runners.tasks.outcome import EndpointOutcome, FullPacket, Outcome, PathOutcome, Probe
from fecbench.runners.tasks.task import FIELD, Task

RECONNECT_S = 180.0
"""A server that is not reached for so long ends the campaign, which goes on with the same command."""
_PAUSE_S = 2.0


@dataclass
class Block:
    """A block that is being run."""

    group: Group
    name: str
    trains: list[Train]
    """Probes since the last transfer."""
    volley: list[FullPacket]
    """The block's own, until a trial has it."""
    place: int = 0
    path: dict[str, str | int] = field(default_factory=dict)
    """Facts of the path when the block began."""

    def changes(self, train: Train) -> list[str]:
        """Return what has changed of the path since the block began."""
        facts: dict[str, str | int] = {
            "this host's address": train.address,
            "this host's address as the server sees it": train.outside,
            "the MTU of the path": train.mtu,
            "the route up, by the TTL,": train.ttl.get("up", 0),
            "the route down, by the TTL,": train.ttl.get("down", 0),
        }
        changes = []
        for words, now in facts.items():
            was = self.path.setdefault(words, now) or now
            if now and was != now:
                changes.append(f"{words} changed within the block from {was} to {now}")
            self.path[words] = was
        return changes


class FieldEngine:
    """One client here, one server there (`Engine`)."""

    deterministic = False

    def __init__(
        self,
        place: Place,
        tls: ssl.SSLContext,
        path: str,
        implementations: Mapping[str, Implementation],
        tell: Callable[[str], None],
        partly_run: Collection[Group] = (),
        *,
        train_s: float = probe_trains.TRAIN_S,
        reconnect_s: float = RECONNECT_S,
    ) -> None:
        """`path` is the path's name; `tell` is called with a line for a person. `partly_run` are the groups
        of which another start has run some trials: what is left of them is beside nothing."""
        self._at, self._tls, self._path, self._tell = place, tls, path, tell
        self._implementations = implementations
        self._train_s, self._reconnect_s = train_s, reconnect_s
        self.broken = set(partly_run)
        """Groups whose trials are not back to back."""
        self._session: Session | None = None
        self._block: Block | None = None
        self._transfers = 0
        self._resources = contextlib.ExitStack()

    def connect(self) -> None:
        """Begin a session. Raises EngineError where no server answers, and Refusal for one that lacks an
        implementation."""
        for name in differing(self._connected(), self._implementations):
            self._tell(f"the server has another build of {name}: two ends of one trial differ")

    def __enter__(self) -> Self:
        self._folder = self._resources.enter_context(scratch.folder())
        self._client = self._resources.enter_context(ClientProcess())
        self._resources.callback(self._hang_up)
        self._connected()
        return self

    def __exit__(self, *_: object) -> None:
        self._resources.close()

    def run(self, tasks: Iterable[tuple[TrialKey, Task]]) -> Iterator[Finished]:
        for key, task in tasks:
            begun_at, start_s = time.time(), time.monotonic()
            outcome = self._outcome(key, task)
            yield Finished(
                key=key,
                task=task,
                outcome=outcome,
                begun_at=begun_at,
                duration_s=time.monotonic() - start_s,
                trials_at_once=1,
                folder=None,
            )

    def again(self, key: TrialKey, task: Task) -> None:
        raise NotImplementedError(f"{key}, {task.topology}: it would not be beside the others of its block")

    def judged(self, finished: Finished, *, valid: bool) -> None:
        pass

    def _outcome(self, key: TrialKey, task: Task) -> Outcome:
        """Run a trial. A break of the connection makes it invalid, and another session begins."""
        outcome = Outcome(backend=FIELD)
        if key.group in self.broken:
            outcome.failure = "its block was interrupted, so nothing was run beside it"
            return outcome
        try:
            block = self._in_block(key, task)
            self._prepare(block, outcome)
            self._transfer(task, outcome)
        except OrderRefusal as refusal:
            raise EngineError(f"{refusal}; what was finished is kept") from None
        except ConnectionLost as lost:
            why = f"the server was lost: {self._reason(lost)}"
            self._hang_up()
            self._block = None
            self.broken.add(key.group)
            outcome.failure = why
            self._tell(f"{why}; trying to reach it again")
        return outcome

    def _reason(self, lost: ConnectionLost) -> str:
        """Return why the server was lost. A connection does not say that this host's address is gone."""
        address = self._session.own_address if self._session is not None else ""
        return f"this host has no longer the address {address}" if is_gone(address) else str(lost)

    def _in_block(self, key: TrialKey, task: Task) -> Block:
        """Return the block of a trial, begun if it is not that of the trial before."""
        if self._block is not None and self._block.group == key.group:
            self._block.place += 1
            return self._block
        session = self._connected()
        trains = [session.rest(), session.train(self._train_s)]
        if not any(train.answered_ms for train in trains):
            self._require_udp(session)
        volley = session.volley()
        warm_up = Outcome(backend=FIELD)
        self._transfer(task, warm_up)
        self._block = Block(key.group, uuid.uuid4().hex[:12], trains, volley)
        return self._block

    def _require_udp(self, session: Session) -> None:
        """Raises EngineError where no probe ever passed, and ConnectionLost where they did before."""
        if session.least_rtt_ms == float("inf"):
            raise EngineError(
                f"{self._at}: TCP passes and UDP does not: a firewall closes UDP port {self._at.port} there,"
                " or this network blocks UDP"
            )
        raise ConnectionLost("no probe was answered")

    def _prepare(self, block: Block, outcome: Outcome) -> None:
        """Wait until the queue has drained, and note the path."""
        session = self._connected()
        train = session.rest()
        if not train.answered_ms:
            self._require_udp(session)
        trains, block.trains = [*block.trains, train], []
        volley, block.volley = block.volley, []
        outcome.path = PathOutcome(
            name=self._path,
            block=block.name,
            place=block.place,
            probes=_joined(trains),
            volley=volley,
            address=train.address,
            outside=train.outside,
            mtu=train.mtu,
            ttl=train.ttl,
            server_ahead_s=session.server_ahead_s,
            least_rtt_ms=session.least_rtt_ms,
            rested_s=train.lasted_s,
            is_rested=train.has_drained,
            changes=block.changes(train),
        )

    def _transfer(self, task: Task, outcome: Outcome) -> None:
        session = self._connected()
        self._transfers += 1
        folder = self._folder / f"transfer-{self._transfers}"
        handed_over.make_folder(folder)
        try:
            start_s = time.monotonic()
            started = session.begin(task)
            outcome.phases_s["server_start"] = time.monotonic() - start_s
            if isinstance(started, EndpointOutcome):
                outcome.endpoints["server"] = started
                return
            papers = folder / "papers"
            handed_over.make_folder(papers)
            handed_over.write_file(papers / "authority.pem", started.encode())
            implementation = self._implementations[task.pairs[0].client.implementation]
            transfer = self._client.transfer(
                Order(
                    task=task,
                    implementation=implementation.folder,
                    name=implementation.declaration.name,
                    address=session.server_address,
                    port=self._at.port,
                    local_address=outcome.path.address if outcome.path else "",
                    folder=folder,
                    certificates=papers,
                )
            )
            outcome.phases_s["client"] = transfer.client_s or 0.0
            outcome.failure = transfer.failure
            outcome.endpoints["client"] = transfer.endpoint
            outcome.said.extend(transfer.messages)
            outcome.timed_out = transfer.timed_out
            outcome.client_s = transfer.client_s
            outcome.stalled_s = transfer.host.stalled_s
            outcome.longest_gap_s = transfer.host.longest_gap_s
            outcome.stolen_s = transfer.host.stolen_s
            server, host = session.end()
            outcome.endpoints["server"] = server
            if outcome.path is not None:
                outcome.path.hosts = {"client": transfer.host, "server": host}
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def _connected(self) -> Session:
        """Return the session, start_s again if it was lost. Raises EngineError when no server is reached."""
        until = time.monotonic() + (self._reconnect_s if self._transfers else 0.0)
        while self._session is None:
            try:
                session = Session(self._at, self._tls, list(self._implementations))
                require_programs(session, list(self._implementations))
                self._session = session
            except OrderRefusal as refusal:
                raise EngineError(str(refusal)) from None
            except ConnectionLost as lost:
                if time.monotonic() > until:
                    ending = "; what was finished is kept: the same command goes on" * bool(self._transfers)
                    raise EngineError(f"{lost}{ending}") from None
                time.sleep(_PAUSE_S)
        return self._session

    def _hang_up(self) -> None:
        if self._session is not None:
            self._session.close()
            self._session = None


def differing(session: Session, implementations: Mapping[str, Implementation]) -> list[str]:
    """Return the names of the implementations whose files are not the same at the server."""
    there = session.hello.get("implementations", {})
    names = []
    for name, implementation in implementations.items():
        files = there.get(name, {}).get("files", {})
        paths = [path for path in implementation.files("field") if path.is_relative_to(implementation.folder)]
        ours = {str(path.relative_to(implementation.folder)): sha256_of(path) for path in paths}
        if ours != files:
            names.append(name)
    return names


def _joined(trains: list[Train]) -> list[Probe]:
    """Return the probes of several trains, one after another in time."""
    joined, since_s = list[Probe](), 0.0
    for train in trains:
        joined += [probe.model_copy(update={"sent_s": since_s + probe.sent_s}) for probe in train.probes]
        since_s += train.lasted_s + probe_trains.INTERVAL_S
    return joined
