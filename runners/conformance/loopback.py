"""Endpoints of an implementation over loopback: in namespaces of their own and confined, or with the user's
rights."""

import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

from fecbench.runners.implementations.implementation import Implementation
from fecbench.runners.sandbox import handed_over
from fecbench.runners.sandbox.environment import environment
from fecbench.runners.tasks.requests import Dialogue
from fecbench.runners.tasks.task import ROLES, EndpointTask, Role
from fecbench.runners.trial import ends, logs
from fecbench.runners.trial.asking import Asker
from fecbench.runners.trial.assignment import assignment, command, papers
from fecbench.runners.trial.confinement import Cell, pipes
from fecbench.runners.trial.endpoint import Endpoint
from fecbench.runners.trial.supervisor import Supervisor
from fecbench.runners.trial.transfer import READY_LIMIT_S, recorded
from fecbench.runners.workloads import TOLD

ADDRESS = "127.0.0.1"
CONTENT_SEED = 2**64 - 1
DEADLINE_S = 20.0


class Loopback:
    """The endpoints of an implementation that are started over loopback."""

    def __init__(
        self,
        implementation: Implementation,
        folder: Path,
        port: int,
        first_user: int | None,
        *,
        keeps: bool = False,
    ) -> None:
        """Run endpoints as users from `first_user` on; None: as the own user, with all rights.

        With `keeps`, log folders (with qlog and TLS secrets) and standard error stay in `folder`.
        """
        self.implementation = implementation
        self._first_user = first_user
        self._supervisor = Supervisor()
        self.log_folders: dict[Role, Path] = {}
        """Log folders of the endpoints that were started last."""
        self.dialogue: Dialogue | None = None
        """Dialogue with the last client of the workload `requests`."""
        self._folder = folder
        self._port = port
        self._keeps = keeps
        self._unkept: list[tuple[Role, Endpoint, Path]] = []
        """Endpoints whose files are still to be kept."""

    @property
    def address(self) -> tuple[str, int]:
        """The address at which its servers listen."""
        return ADDRESS, self._port

    def place_for(self, implementation: Implementation) -> "Loopback":
        """Return the same place for another implementation, which talks with this one."""
        return Loopback(implementation, self._folder, self._port, self._first_user, keeps=self._keeps)

    @property
    def folder(self) -> Path:
        """The folder for the files of endpoints."""
        return self._folder

    def end_of(self, choices: Mapping[str, object], series: Sequence[str] = ()) -> EndpointTask:
        """Return the task of an end with these options, otherwise the defaults, that has to record these
        series."""
        options = self.implementation.options(choices, self.implementation.declaration.name)
        return ends.end_of(self.implementation, options, series)

    def start(
        self,
        role: Role,
        workload: Mapping[str, Any],
        content_seed: int = CONTENT_SEED,
        *,
        options: Mapping[str, object] = MappingProxyType({}),
        series: Sequence[str] = (),
        deadline_s: float | None = None,
        certificates: Path | None = None,
    ) -> Endpoint:
        """Start an endpoint as in a trial, with the certificates of a folder, or else those of all endpoints.

        Raises OSError and StartError.
        """
        number = f"{len(self._supervisor.endpoints):02}"
        name = f"{self.implementation.declaration.name}-{number}-{workload['name']}"
        log_folder = self.log_folders[role] = self._folder / name / role
        document = assignment(
            role,
            self.end_of(options, series),
            workload=dict(workload),
            content_seed=content_seed,
            server_address=ADDRESS,
            local_addresses=[ADDRESS],
            certificates=certificates or self._folder,
            log_folder=log_folder,
            deadline_s=DEADLINE_S if deadline_s is None else deadline_s,
            port=self._port,
        )
        task_workload = TOLD.get(workload["name"]) if role == "client" else None
        asks = task_workload.conversation(task_workload.sample_session) if task_workload is not None else None
        process = self._popen(role, document, log_folder, reads=asks is not None)
        endpoint = self._supervisor.follow(role, process)
        if self._keeps:
            self._unkept.append((role, endpoint, log_folder))
        if asks is not None:
            self.dialogue = Dialogue(asks)
            Asker(endpoint, self.dialogue, self._supervisor)
        return endpoint

    def _popen(
        self, role: Role, document: dict[str, Any], log_folder: Path, *, reads: bool
    ) -> "subprocess.Popen[bytes]":
        arguments = self.implementation.command(role)
        variables = recorded(log_folder) if self._keeps else {}
        if self._first_user is None:
            for folder in (log_folder.parent, log_folder):
                if not folder.is_dir():
                    handed_over.make_own_folder(folder)
            started = command(arguments, document, log_folder.parent)
            variables_of_user = {**environment(log_folder), **variables}
            return _popen(started, cwd=log_folder, env=variables_of_user, **pipes(reads=reads))
        cell = Cell(role, self._first_user + ROLES.index(role), log_folder)
        cell.make_log_folder()
        started = command(arguments, document, log_folder.parent)
        folders = [self.implementation.folder]
        return cell.start(
            _popen,
            started,
            folders=folders,
            papers=papers(started, document),
            variables=variables,
            reads=reads,
        )

    def await_ready(self, server: Endpoint) -> None:
        """Follow it until it is ready, has ended, or takes too long."""
        self._supervisor.wait(lambda: server.ready or server.exit_code is not None, READY_LIMIT_S)
        self._supervisor.drain()

    def await_end(self, endpoint: Endpoint, limit_s: float) -> None:
        """Follow it until it has ended or takes too long."""
        self._supervisor.wait(lambda: endpoint.exit_code is not None, limit_s)
        self._supervisor.drain()

    def end(self) -> None:
        """End whatever still runs."""
        for endpoint in self._supervisor.endpoints:
            self._supervisor.end(endpoint)
        for role, endpoint, log_folder in self._unkept:
            if self._first_user is not None:
                logs.keep(log_folder)
            (log_folder.parent / f"{role}.stderr").write_text(endpoint.stderr, encoding="utf-8")
        self._unkept.clear()


def _popen(arguments: list[str], **kwargs: Any) -> "subprocess.Popen[Any]":
    return subprocess.Popen(arguments, start_new_session=True, **kwargs)
