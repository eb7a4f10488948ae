"""Endpoints run without rights: an endpoint can harm only its own trial.

Each has a user of its own, no capability, no way to get one, a view of the file system in which it can write
to its log folder alone (`view`), and limits of its own and together with those of its trial (`cgroup`).
It is in the network and PID namespaces of its trial as all of it is (`isolation`).
"""

import errno
import os
import resource
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn, Protocol

from fecbench.runners.sandbox import fence, handed_over, kernel, rights
from fecbench.runners.sandbox.environment import environment
from fecbench.runners.sandbox.isolation import die_with_parent, go_on_in_pid_namespace, mount_own_proc
from fecbench.runners.sandbox.view import View
from fecbench.runners.trial import cgroup, logs
from fecbench.runners.trial.cgroup import CONTROLLERS

CANNOT_START = 126
"""The exit code that shells give a program that cannot be executed."""

LIMITS = {**rights.LIMITS, resource.RLIMIT_FSIZE: logs.SIZE_BYTES}
LIMIT_OF_MEMORY = {resource.RLIMIT_DATA: cgroup.MEMORY_BYTES}
"""Limit where no cgroup counts memory. It is not of address space: Go and others reserve far more than they
use."""

Start = Callable[..., "subprocess.Popen[bytes]"]
"""Like subprocess.Popen; the started process has a session of its own."""


def pipes(*, reads: bool = False) -> dict[str, int]:
    """The standard streams of an endpoint."""
    return {
        "stdin": subprocess.PIPE if reads else subprocess.DEVNULL,
        "stdout": subprocess.PIPE,
        "stderr": subprocess.PIPE,
    }


class FileSystem(Protocol):
    """An endpoint's view of files."""

    def make(self) -> None:
        """Make the view in this process, which has a mount namespace of its own. Raises OSError."""


class ConfinementError(RuntimeError):
    """An endpoint's rights could not be taken from it, so it was not started."""


class StartError(RuntimeError):
    """The program of the endpoint of this name cannot be executed."""

    def __init__(self, endpoint: str, program: str, problem: str) -> None:
        super().__init__(f"{program} cannot be started: {problem}")
        self.endpoint = endpoint


@dataclass(frozen=True)
class Cell:
    """The confinement of one endpoint: its user, folders, files and namespaces."""

    endpoint: str
    """The name of the endpoint."""
    user: int
    """A user of this endpoint only, who can kill and trace nothing else."""
    log_folder: Path

    def make_log_folder(self) -> None:
        """Make the log folder for this endpoint only."""
        logs.mount(self.log_folder, self.user)

    def start(
        self,
        popen: Start,
        command: Sequence[str],
        *,
        folders: Sequence[Path],
        papers: Mapping[Path, bytes],
        variables: Mapping[str, str],
        reads: bool = False,
    ) -> "subprocess.Popen[bytes]":
        """Start the endpoint. It can read `folders` wherever they lie, and `papers` at these paths; its
        standard input is a pipe if it `reads`.

        Raises StartError when its program cannot be executed, ConfinementError when it cannot be confined.
        """
        view = View(self.user, self.log_folder, self.readable(command, folders), papers)
        return self.start_in(view, popen, command, variables, reads=reads)

    def readable(self, command: Sequence[str], folders: Sequence[Path]) -> list[Path]:
        """The folders that an endpoint with this command needs."""
        return [*folders, *rights.prefixes(Path(command[0]))]

    def start_in(
        self,
        view: FileSystem,
        popen: Start,
        command: Sequence[str],
        variables: Mapping[str, str],
        *,
        reads: bool = False,
    ) -> "subprocess.Popen[bytes]":
        """Start the endpoint with this view of the file system. Raises as `start`."""
        parent = os.getpid()
        reading, writing = os.pipe()

        def enter() -> None:
            try:
                self._enter(view, parent)
            except BaseException as error:
                os.write(writing, str(error).encode())
                raise

        try:
            return popen(
                list(command),
                preexec_fn=enter,
                cwd=self.log_folder,
                env={**environment(self.log_folder), **variables},
                **pipes(reads=reads),
            )
        except subprocess.SubprocessError as error:
            os.set_blocking(reading, False)
            reason = os.read(reading, 4096).decode(errors="replace")
            raise ConfinementError(f"the {self.endpoint} cannot be confined: {reason}") from error
        except OSError as error:
            if error.filename is None:  # no process could be made
                raise
            if error.errno == errno.EACCES:  # everybody may execute it: that was found out before
                reason = f"{error.filename}: {error.strerror}"
                raise ConfinementError(f"the {self.endpoint} may not execute {reason}") from error
            raise StartError(self.endpoint, error.filename, str(error.strerror)) from error
        finally:
            os.close(reading)
            os.close(writing)

    def _enter(self, view: FileSystem, parent: int) -> None:
        """Take all rights from this process."""
        os.umask(0o022)
        rights.offer_to_be_killed()
        kernel.unshare(kernel.CLONE_NEWNS | kernel.CLONE_NEWIPC, "mount and IPC namespaces")
        view.make()
        rights.limit(LIMITS if cgroup.counts_memory() else LIMITS | LIMIT_OF_MEMORY)
        kernel.become(self.user)
        die_with_parent(parent)


def become_simulator(
    command: Sequence[str],
    folder: Path,
    cgroup_name: str,
    implementation: Path,
    papers: Sequence[Path],
    harness: int,
) -> NoReturn:
    """Go on as a simulator, which can write to `folder` alone, reads `papers`, and ends with the process
    `harness`.

    It has a user of its own (`rights.own_user`) and a cgroup, and whatever it starts ends with it. Where
    there is no right to give away, it stays who it is, gains nothing, and is fenced in if the kernel can do
    that. Raises OSError.
    """
    os.umask(0o022)
    user = rights.own_user(os.getpid())
    variables = environment(folder)
    if user is None:
        os.chdir(folder)
        rights.keep_as_same_user(
            LIMITS | LIMIT_OF_MEMORY, [implementation, *rights.prefixes(Path(command[0]))], folder
        )
        variables["TMPDIR"] = str(folder)
        die_with_parent(harness)
    else:
        cgroup.enter(f"{cgroup_name}.{os.getpid()}")
        rights.limit({resource.RLIMIT_CORE: 0})
        go_on_in_pid_namespace(harness)
        rights.offer_to_be_killed()
        kernel.unshare(
            kernel.CLONE_NEWNS | kernel.CLONE_NEWIPC | kernel.CLONE_NEWNET,
            "mount, IPC and network namespaces",
        )
        mount_own_proc()
        View(user, folder, [implementation, *rights.prefixes(Path(command[0]))], {}).make()
        rights.limit(LIMITS | LIMIT_OF_MEMORY)
        kernel.become(user)
    handed_over.require_readable(papers)
    os.execve(command[0], list(command), variables)


def of_simulators() -> dict[str, Any]:
    """Return the limits of simulators here, for the provenance of a campaign."""
    if rights.own_user(os.getpid()) is not None:
        return of_this_machine()
    fenced = fence.is_offered()
    return {
        "user": "the harness's",
        "capabilities": "none" if fenced else "the harness's",
        "file_system": "its own" if fenced else "the harness's",
        "network": "none" if fenced else "the harness's",
        "memory": "process limits",
        "processes": "none",
    }


def why_simulators_are_free() -> str:
    """Return a line that says what simulators can do here but should not; empty if nothing."""
    if rights.own_user(os.getpid()) is not None or fence.is_offered():
        return ""
    return (
        "simulators are not confined here: they can read and change your files, and use the network; without"
        " root it takes a kernel with Landlock"
    )


def of_this_machine() -> dict[str, Any]:
    """Return the limits of programs without rights here, for the provenance of a campaign."""
    versions = {controller: place.version for place in cgroup.usable() for controller in place.controllers}
    limited = {
        controller: f"cgroup v{versions[controller]}" if controller in versions else "process limits"
        for controller in CONTROLLERS
    }
    return {
        "user": "own",
        "capabilities": "none",
        "file_system": "read-only",
        "memory": limited["memory"],
        "processes": limited["pids"],
    }
