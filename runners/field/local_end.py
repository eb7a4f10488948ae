"""One endpoint of a trial in the field, on this host: confined as in other trials, in the host's own network.

As root it has a user, a view of the file system and limits of its own; whoever calls this is in namespaces
of its own then (`isolated`). Without root it is fenced in, where the kernel can do that.
"""

import errno
import fcntl
import os
import socket
import subprocess
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from fecbench.runners.implementations.implementation import Implementation
from fecbench.runners.sandbox import handed_over, isolation, rights
from fecbench.runners.sandbox.environment import environment
from fecbench.runners.sandbox.isolation import die_with_parent
from fecbench.runners.tasks.outcome import EndpointOutcome, HostOutcome
from fecbench.runners.tasks.task import PairTask, Role, Task
from fecbench.runners.trial import logs
from fecbench.runners.trial.assignment import assignment, command, papers
from fecbench.runners.trial.confinement import LIMIT_OF_MEMORY, LIMITS, Cell, pipes
from fecbench.runners.trial.endpoint import Endpoint
from fecbench.runners.trial.starvation import Watch
from fecbench.runners.trial.supervisor import Supervisor
from fecbench.runners.workloads import asked_series
from fecbench.topologies import counters

_SESSION_S = 1e6
_SIOCGIFADDR = 0x8915  # linux/sockios.h
_ADDRESSES_6 = Path("/proc/net/if_inet6")


def isolated(function: Callable[[int | None], bytes]) -> bytes:
    """Call a function with the first user of its endpoints: in namespaces of its own if they have users of
    their own, but for the network. None: they run as this process's user."""
    user = rights.own_user(os.getpid())
    if user is None:
        return function(None)
    return isolation.run_isolated(lambda: function(user), _SESSION_S, network=False)


class End:
    """A started endpoint."""

    def __init__(
        self,
        role: Role,
        task: Task,
        implementation: Implementation,
        folder: Path,
        supervisor: Supervisor,
        *,
        user: int | None,
        address: str,
        local_address: str,
        port: int,
        certificates: Path,
    ) -> None:
        """`folder` is for its files, `certificates` has the trial's, `user` is its own (None: ours).

        Raises StartError and ConfinementError.
        """
        self.role: Role = role
        self._pair: PairTask = task.pairs[0]
        self._supervisor = supervisor
        self._user = user
        self._log_folder = folder / role
        document = assignment(
            role,
            self._pair.end(role),
            workload=self._pair.workload,
            content_seed=task.content_seed,
            server_address=address,
            local_addresses=[local_address],
            certificates=certificates,
            log_folder=self._log_folder,
            deadline_s=task.timeout_s,
            port=port,
        )
        started = command(implementation.command(role), document, folder)
        reads = role == "client" and self._pair.session is not None
        if user is None:
            process = self._start_as_us(started, document, implementation.folder, reads=reads)
        else:
            cell = Cell(role, user, self._log_folder)
            cell.make_log_folder()
            process = cell.start(
                _popen,
                started,
                folders=[implementation.folder],
                papers=papers(started, document),
                variables={},
                reads=reads,
            )
        self.endpoint: Endpoint = supervisor.follow(role, process)

    def _start_as_us(
        self, started: Sequence[str], document: dict[str, Any], implementation: Path, *, reads: bool
    ) -> "subprocess.Popen[bytes]":
        handed_over.make_own_folder(self._log_folder)
        readable = [implementation, *rights.prefixes(Path(started[0])), *papers(started, document)]
        parent = os.getpid()

        def enter() -> None:
            os.umask(0o022)
            rights.keep_as_same_user(LIMITS | LIMIT_OF_MEMORY, readable, self._log_folder, network=True)
            die_with_parent(parent)

        variables = environment(self._log_folder) | {"TMPDIR": str(self._log_folder)}
        return _popen(
            list(started), preexec_fn=enter, cwd=self._log_folder, env=variables, **pipes(reads=reads)
        )

    def outcome(self) -> EndpointOutcome:
        """End it, and return how it ended, with its series."""
        self._supervisor.end(self.endpoint)
        limits = asked_series(self._pair.end(self.role), self._pair.workload)
        outcome = self.endpoint.outcome_with_series(self._log_folder, limits)
        if self._user is not None:
            logs.keep(self._log_folder)
        return outcome


def _popen(arguments: list[str], **settings: Any) -> "subprocess.Popen[bytes]":
    return subprocess.Popen(arguments, start_new_session=True, **settings)


def interface_of(address: str) -> str:
    """Return the name of this host's interface that has an address; "" where none is known to have it."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        for _, name in socket.if_nameindex():
            try:
                answer = fcntl.ioctl(control, _SIOCGIFADDR, name.encode().ljust(40, b"\0"))
            except OSError:  # it has no address of IPv4
                continue
            if socket.inet_ntoa(answer[20:24]) == address:
                return name
    if ":" in address and _ADDRESSES_6.exists():
        packed = socket.inet_pton(socket.AF_INET6, address.partition("%")[0]).hex()
        for line in _ADDRESSES_6.read_text(encoding="ascii").splitlines():
            fields = line.split()
            if fields[0] == packed:
                return fields[-1]
    return ""


def is_gone(address: str) -> bool:
    """Whether this host has an address no longer. "" is none."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with socket.socket(family, socket.SOCK_DGRAM) as tried:
        try:
            tried.bind((address, 0))
        except OSError as error:
            return error.errno == errno.EADDRNOTAVAIL
    return False


class HostCounters:
    """Counters of this host from now on."""

    def __init__(self, address: str) -> None:
        """`address` is that of the transfer on this host."""
        self._discarded = counters.discarded(os.getpid())
        self._interface = interface_of(address)
        self._bytes = counters.bytes_of(os.getpid(), self._interface)
        self._clock_s = time.time() - time.monotonic()

    def outcome(self, watch: Watch, *, stalled_s: float | None) -> HostOutcome:
        """Return what has happened since."""
        discarded = counters.discarded(os.getpid()) - self._discarded
        received, sent = (
            now - before
            for now, before in zip(counters.bytes_of(os.getpid(), self._interface), self._bytes, strict=True)
        )
        is_known = self._interface not in ("", "lo")  # both ends use that
        return HostOutcome(
            stalled_s=stalled_s,
            longest_gap_s=watch.longest_gap_s,
            stolen_s=watch.stolen_s(),
            discarded=dict(discarded),
            received_bytes=received if is_known else None,
            sent_bytes=sent if is_known else None,
            clock_leap_s=time.time() - time.monotonic() - self._clock_s,
        )
