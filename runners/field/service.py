"""`fecbench field serve`: runs the servers of trials that a client with a certificate asks for.

A process takes connections, and forks one for each: a stranger holds up nobody. One session is served at a
time, and one transfer. Nothing is written but lines of a log, and temporary files.
"""

import fcntl
import os
import select
import shutil
import signal
import socket
import ssl
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from fecbench.complaint import complaint
from fecbench.errors import Failed
from fecbench.runners import scratch
from fecbench.runners.field.connection import Connection, ConnectionLost, Place, keep_alive
from fecbench.runners.field.local_end import End, HostCounters, isolated
from fecbench.runners.field.probe_trains import TOKEN_BYTES, Responder
from fecbench.runners.field.strangers import shut_out
from fecbench.runners.field.volley import Returner
from fecbench.runners.implementations.finding import Implementations
from fecbench.runners.implementations.implementation import Implementation
from fecbench.runners.probe import sha256_of
from fecbench.runners.refusal import Refusal
from fecbench.runners.sandbox import handed_over, priority
from fecbench.runners.sandbox.isolation import die_with_parent
from fecbench.runners.tasks.outcome import EndpointOutcome
from fecbench.runners.tasks.task import FIELD, Task
from fecbench.runners.trial import certificates, starvation
from fecbench.runners.trial.assignment import SERVER_NAME
from fecbench.runners.trial.confinement import CANNOT_START, ConfinementError, StartError
from fecbench.runners.trial.plain_text import one_line
from fecbench.runners.trial.supervisor import Supervisor

VERSION = 1
HANDSHAKE_S = 5.0
STRANGERS = 16
"""Connections at a time, those without a certificate included."""
IDLE_S = 600.0
"""A client that asks for nothing for so long is gone."""
BUSY_S = 30.0
READY_S = 10.0
MARGIN_S = 20.0
"""A transfer ends so long after its time limit, whatever the client says."""

Log = Callable[[str], None]


@dataclass(frozen=True)
class Limits:
    """The most that clients may have of this host."""

    transfer_bytes: int = 1_000_000_000
    transfer_s: float = 600.0
    hourly: int = 3600
    """Transfers within an hour."""


def serve(
    place: Place, tls: ssl.SSLContext, implementations: Implementations, limits: Limits, log: Log
) -> None:
    """Serve until a signal ends it. Raises Refusal where nothing can listen there."""
    family = socket.AF_INET6 if ":" in place.host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as listener, tempfile.TemporaryFile() as turn:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((place.host, place.port))
            with socket.socket(family, socket.SOCK_DGRAM) as tried:
                tried.bind((place.host, place.port))
        except OSError as error:
            raise Refusal(f"--listen {place}: cannot listen there: {error.strerror}") from None
        listener.listen(STRANGERS)
        log(f"listens at {place}, TCP and UDP")
        _take(
            listener, lambda plain: _Host(place, tls, implementations, limits, log, turn.fileno()).meet(plain)
        )


def _take(listener: socket.socket, meet: Callable[[socket.socket], None]) -> None:
    """Take connections, and have a process of its own `meet` each."""
    children = dict[int, int]()
    while True:
        for descriptor in select.select([listener.fileno(), *children], [], [])[0]:
            if descriptor != listener.fileno():
                os.waitpid(children.pop(descriptor), 0)
                os.close(descriptor)
                continue
            plain, _ = listener.accept()
            with plain:
                if len(children) >= STRANGERS:
                    continue
                parent = os.getpid()
                if (child := os.fork()) == 0:
                    listener.close()
                    _run(meet, plain, parent)
                children[os.pidfd_open(child)] = child


def _run(meet: Callable[[socket.socket], None], plain: socket.socket, parent: int) -> None:
    """Meet a connection in this forked process, and end it."""
    status = 1
    try:
        die_with_parent(parent)
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_DFL)
        meet(plain)
        status = 0
    finally:
        os._exit(status)


class _Host:
    """The far host as one connection meets it."""

    def __init__(
        self,
        place: Place,
        tls: ssl.SSLContext,
        implementations: Implementations,
        limits: Limits,
        log: Log,
        turn: int,
    ) -> None:
        self._place, self._tls, self._implementations = place, tls, implementations
        self._limits, self._log, self._turn = limits, log, turn

    def meet(self, plain: socket.socket) -> None:
        """Serve a connection, if it has a certificate."""
        peer = plain.getpeername()[0]
        plain.settimeout(HANDSHAKE_S)
        keep_alive(plain)
        try:
            connection = Connection(self._tls.wrap_socket(plain, server_side=True), peer)
        except OSError as error:
            self._log(f"{peer}: no client of ours: {one_line(str(getattr(error, 'reason', '') or error))}")
            return
        if not self._await_turn():
            connection.send({"refused": "another client is being served; try again later"})
            return
        self._log(f"{peer}: begins")
        try:
            why = isolated(lambda user: _Session(connection, self, user).run()).decode()
        except (Failed, OSError) as error:
            why = one_line(str(error))
        self._log(f"{peer}: {why}")

    def _await_turn(self) -> bool:
        """Wait until no other session is served; whether that was soon enough. The lock ends with us."""
        end = time.monotonic() + BUSY_S
        while True:
            try:
                fcntl.lockf(self._turn, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return True
            except OSError:
                if time.monotonic() > end:
                    return False
                time.sleep(0.1)

    def counts_transfer(self) -> bool:
        """Count a transfer; whether this hour has room for it. Only who has the turn may call this."""
        now = time.time()
        written = os.pread(self._turn, 1 << 20, 0).decode().split()
        recent = [moment for moment in written if now - 3600 < float(moment) <= now]
        if len(recent) >= self._limits.hourly:
            return False
        content = " ".join([*recent, f"{now:.1f}"]).encode()
        os.ftruncate(self._turn, 0)
        os.pwrite(self._turn, content, 0)
        return True

    @property
    def place(self) -> Place:
        return self._place

    def hello(self) -> dict[str, Any]:
        """Return the document about this host."""
        return {
            "version": VERSION,
            "transfer_bytes": self._limits.transfer_bytes,
            "transfer_s": self._limits.transfer_s,
            "hourly": self._limits.hourly,
            "session": os.urandom(8).hex(),
        }

    def programs(self, names: list[str]) -> dict[str, Any]:
        """Return the hashes of the files of each of these implementations, or what it lacks."""
        return {str(name): self._program(str(name)) for name in names[:100]}

    def _program(self, name: str) -> dict[str, Any]:
        try:
            implementation = self.installed(name)
        except Refusal as refusal:
            return {"lacks": str(refusal)}
        files = implementation.files("field")
        return {
            "files": {
                str(path.relative_to(implementation.folder)): sha256_of(path)
                for path in files
                if path.is_relative_to(implementation.folder)
            }
        }

    def installed(self, name: str) -> Implementation:
        """Return an implementation of this host. Raises Refusal where it is not there, or not built."""
        implementation = self._implementations.find(name, "the server")
        implementation.check_built("field")
        return implementation

    def check(self, task: Task) -> Implementation:
        """Return the implementation of the server of a task. Raises Refusal for one that it will not run."""
        if task.backend != FIELD or len(task.pairs) != 1 or task.links:
            raise Refusal("the task is none of the field")
        pair = task.pairs[0]
        if pair.server.interop is not None or pair.server.transport != "udp":
            raise Refusal(f"{pair.server.implementation} is not for the field")
        size_bytes = max(pair.demand.up_bytes + pair.demand.down_bytes, _size(pair.workload))
        if size_bytes > self._limits.transfer_bytes:
            raise Refusal(
                f"a transfer of {size_bytes} bytes: at most {self._limits.transfer_bytes} are served"
            )
        if task.timeout_s > self._limits.transfer_s:
            raise Refusal(f"timeout_s = {task.timeout_s:g}: at most {self._limits.transfer_s:g} is served")
        implementation = self.installed(pair.server.implementation)
        if unknown := pair.server.options.keys() - implementation.declaration.options.keys():
            raise Refusal(
                f"{pair.server.implementation} has no option {min(unknown)!r} here: another version"
            )
        if not self.counts_transfer():
            raise Refusal(f"{self._limits.hourly} transfers within an hour are the most that are served")
        return implementation


def _token(order: dict[str, Any]) -> bytes:
    """Return the token of an order. Raises ConnectionLost for none."""
    try:
        token = bytes.fromhex(str(order.get("token")))
    except ValueError:
        token = b""
    if len(token) != TOKEN_BYTES:
        raise ConnectionLost("an order that is none")
    return token


def _size(workload: dict[str, Any]) -> int:
    size = workload.get("size_bytes", 0)
    return size if isinstance(size, int) else 0


class _Session:
    """Orders of one client, one after another."""

    def __init__(self, connection: Connection, host: _Host, user: int | None) -> None:
        self._connection, self._host, self._user = connection, host, user
        self._allowed = {connection.peer}
        """Addresses of the client."""
        self._transfers = 0

    def run(self) -> bytes:
        """Serve until the client ends, or is lost; return how it ended."""
        try:
            self._serve_orders()
        except ConnectionLost as lost:
            return one_line(str(lost)).encode()
        return b"ended"

    def _serve_orders(self) -> None:
        orders = {
            **{"hello": self._hello, "probe": self._probe, "volley": self._volley},
            "transfer": self._transfer,
        }
        with scratch.folder() as folder:
            self._folder = folder
            while True:
                order = self._connection.receive(IDLE_S)
                if order.get("order") == "bye":
                    return
                carry_out = orders.get(str(order.get("order")))
                if carry_out is None:
                    raise ConnectionLost("an order that is none")
                carry_out(order)

    def _hello(self, order: dict[str, Any]) -> None:
        names = order.get("implementations", [])
        if not isinstance(names, list):
            raise ConnectionLost("an order that is none")
        programs = self._host.programs(names)
        self._connection.send({**self._host.hello(), "implementations": programs})

    def _probe(self, order: dict[str, Any]) -> None:
        """Answer probes until the client says that it has sent all."""
        place = self._host.place
        responder = Responder(place.host, place.port, _token(order))
        try:
            self._connection.send({"answers": True})
            self._until_told(responder.socket, responder.answer)
            responder.answer()
        finally:
            responder.close()
        self._allowed |= responder.sources
        self._connection.send(
            {
                "arrived": sorted(responder.arrived.items()),
                "sources": sorted(responder.sources),
                "ttl": responder.ttl,
            }
        )

    def _volley(self, order: dict[str, Any]) -> None:
        """Keep packets until the client has sent all, and send them back."""
        place, token = self._host.place, _token(order)
        returner = Returner(place.host, place.port, token)
        try:
            self._connection.send({"answers": True})
            for _ in ("what is sent at first", "what is sent again"):
                self._until_told(returner.socket, returner.take)
                returner.take_the_rest()
                self._connection.send({"arrived": sorted(returner.arrivals.times.items())})
            returner.answer()
        finally:
            returner.close()
        self._connection.send({"answered": sorted(returner.answered.items())})

    def _until_told(self, datagrams: socket.socket, take: Callable[[], None]) -> None:
        """Take datagrams until the client says that it has sent all."""
        while True:
            ends = [datagrams.fileno(), self._connection.fileno()]
            readable = select.select(ends, [], [], IDLE_S)[0]
            take()
            if self._connection.fileno() in readable:
                break
            if not readable:
                raise ConnectionLost("the client has said nothing")
        self._connection.receive(IDLE_S)

    def _transfer(self, order: dict[str, Any]) -> None:
        try:
            task = Task.model_validate(order.get("task"))
        except ValidationError as error:
            raise ConnectionLost(f"a task that is none: {one_line(complaint(error))[:200]}") from None
        try:
            implementation = self._host.check(task)
        except Refusal as refusal:
            self._connection.send({"refused": str(refusal)})
            return
        self._transfers += 1
        folder = self._folder / f"transfer-{self._transfers}"
        handed_over.make_folder(folder)
        papers = folder / "papers"
        handed_over.make_folder(papers)
        certificates.write(papers, SERVER_NAME, task.pairs[0].certificates)
        try:
            # As the client: another attempt would not be beside the others of its block.
            with priority.ahead_of_others():
                self._run(task, implementation, folder, papers)
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def _run(self, task: Task, implementation: Implementation, folder: Path, papers: Path) -> None:
        supervisor, place = Supervisor(), self._host.place
        try:
            end = End(
                "server",
                task,
                implementation,
                folder,
                supervisor,
                user=self._user,
                address=place.host,
                local_address=place.host,
                port=place.port,
                certificates=papers,
            )
        except (StartError, ConfinementError) as error:
            failure = EndpointOutcome(exit_code=CANNOT_START, stderr=str(error))
            self._connection.send({"ended": failure.model_dump(mode="json")})
            return
        endpoint = end.endpoint
        try:
            supervisor.wait(lambda: endpoint.ready or endpoint.exit_code is not None, READY_S)
            endpoint.was_slow = not (endpoint.ready or endpoint.exit_code is not None)
            if not endpoint.ready:
                self._connection.send({"ended": end.outcome().model_dump(mode="json")})
                return
            shut_out(endpoint.process.pid, place.port, self._allowed)
            self._serve(task, end, supervisor, papers)
        finally:
            if endpoint.exit_code is None:
                supervisor.end(endpoint)

    def _serve(self, task: Task, end: End, supervisor: Supervisor, papers: Path) -> None:
        """Let the client have its transfer, and answer how the server ended."""
        orders = list[dict[str, Any]]()

        def hear() -> None:
            supervisor.ignore(self._connection.fileno())
            orders.append(self._connection.receive(IDLE_S))

        counters, start_s = HostCounters(self._connection.own_address), time.monotonic()
        with supervisor.watching([end.endpoint]) as watch:
            authority = (papers / "authority.pem").read_text(encoding="ascii")
            self._connection.send({"ready": True, "authority": authority})
            supervisor.listen(self._connection.fileno(), hear)
            supervisor.wait(lambda: bool(orders), task.timeout_s + MARGIN_S)
            stalled_s = watch.stalled_s(start_s, time.monotonic()) if starvation.is_known() else None
            host = counters.outcome(watch, stalled_s=stalled_s)
        outcome = end.outcome()
        if not orders:
            raise ConnectionLost("the client did not end its transfer in time")
        self._connection.send(
            {"ended": outcome.model_dump(mode="json"), "host": host.model_dump(mode="json")}
        )
