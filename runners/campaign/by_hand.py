"""A folder from which both programs of a trial can be started by hand: over loopback, as the user who starts
them, with the options and the content of the trial."""

import os
import shlex
from pathlib import Path

from fecbench.runners.implementations.finding import Implementations
from fecbench.runners.sandbox.environment import environment
from fecbench.runners.tasks.task import ROLES, Role, Task
from fecbench.runners.trial import certificates
from fecbench.runners.trial.assignment import SERVER_NAME, assignment, command

ADDRESS = "127.0.0.1"


def leave(task: Task, implementations: Implementations, folder: Path, at: Path) -> None:
    """Fill `folder`, which must not exist and will be moved to the absolute path `at`: server.sh, client.sh,
    the files that the endpoints are started with, and their log folders."""
    folder.mkdir(parents=True)
    certificates.write(folder, SERVER_NAME, task.pairs[0].certificates)
    for role in ROLES:
        _leave_end(role, task, implementations, folder, at)


def start_with(at: Path) -> str:
    """The command that starts both."""
    server, client = (shlex.quote(str(at / f"{role}.sh")) for role in ("server", "client"))
    return f"sh {server} & sleep 1; sh {client}; kill $!"


def _leave_end(role: Role, task: Task, implementations: Implementations, folder: Path, at: Path) -> None:
    pair = task.pairs[0]
    end, log_folder = pair.end(role), at / role
    (folder / role).mkdir()
    document = assignment(
        role,
        end,
        workload=pair.workload,
        content_seed=task.content_seed,
        server_address=ADDRESS,
        local_addresses=[ADDRESS],
        certificates=at,
        log_folder=log_folder,
        deadline_s=task.timeout_s,
    )
    program = implementations.find(end.implementation, "the trial's task").command(role)
    command(program, document, folder)  # writes the document
    recorded = {"QLOGDIR": str(log_folder), "SSLKEYLOGFILE": str(log_folder / "keys.log")}
    variables = [f"{name}={value}" for name, value in {**environment(log_folder), **recorded}.items()]
    words = ["exec", "env", "-i", *variables, *program, str(at / f"{role}.json")]
    script = (
        f"# The {role} as the trial started it, but over loopback.\n"
        f"cd {shlex.quote(str(log_folder))} || exit\n"
        f"{shlex.join(words)}\n"
    )
    (folder / f"{role}.sh").write_bytes(os.fsencode(script))
