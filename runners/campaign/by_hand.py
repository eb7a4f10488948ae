"""A folder from which the programs of a trial can be started by hand: over loopback, as the user who starts
them, with the options and the content of the trial. A relay stands between client and server here, too."""

import os
import shlex
from pathlib import Path

from fecbench.runners.implementations.finding import Implementations
from fecbench.runners.sandbox.environment import environment
from fecbench.runners.tasks.task import RELAY, Place, Task
from fecbench.runners.trial import certificates
from fecbench.runners.trial.assignment import SERVER_NAME, assignment, command, upstream

ADDRESS, RELAY_ADDRESS = "127.0.0.1", "127.0.0.2"
"""A relay tells its server from its clients by the address."""


def leave(task: Task, implementations: Implementations, folder: Path, at: Path) -> None:
    """Fill `folder`, which must not exist and will be moved to the absolute path `at`: a script for each
    endpoint, the files that the endpoints are started with, and their log folders."""
    folder.mkdir(parents=True)
    certificates.write(folder, SERVER_NAME, task.pairs[0].certificates)
    for place in task.places:
        _leave_end(place, task, implementations, folder, at)


def start_with(task: Task, at: Path) -> str:
    """Return the command that starts all of them."""
    scripts = {place: shlex.quote(str(at / f"{place}.sh")) for place in task.places}
    if not task.has_relay:
        return f"sh {scripts['server']} & sleep 1; sh {scripts['client']}; kill $!"
    servers = f"sh {scripts['server']} & server=$!; sh {scripts[RELAY]} & relay=$!"
    return f"{servers}; sleep 1; sh {scripts['client']}; kill $relay $server"


def _leave_end(role: Place, task: Task, implementations: Implementations, folder: Path, at: Path) -> None:
    pair = task.pairs[0]
    end, log_folder = pair.client if role == RELAY else pair.end(role), at / role
    behind_relay = task.has_relay and role != "server"
    (folder / role).mkdir()
    document = assignment(
        role,
        end,
        workload=pair.workload,
        content_seed=task.content_seed,
        server_address=RELAY_ADDRESS if behind_relay else ADDRESS,
        upstream=upstream(pair, ADDRESS) if role == RELAY else None,
        local_addresses=[ADDRESS],
        certificates=at,
        log_folder=log_folder,
        deadline_s=task.timeout_s,
    )
    program = implementations.find(end.implementation, "the trial's task").command(
        "client" if role == "client" else "server"
    )
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
