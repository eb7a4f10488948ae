"""The parts of a cluster on this machine: a database's server, and commands that run beside."""

import os
import pwd
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

FECBENCH = str(Path(sys.executable).parent / "fecbench")
SERVER_USER = "nobody"
READY_S = 120.0


@contextmanager
def running(until: str, *arguments: object, within: list[str] | None = None) -> Iterator[int]:
    """A command of fecbench in the background, once it has said so."""
    command = [*(within or []), FECBENCH, *map(str, arguments)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr
        if not any(until in line for line in process.stderr):
            raise RuntimeError(f"fecbench {arguments[0]} ended with {process.wait()}")
        try:
            yield process.pid
        finally:
            process.terminate()
            process.communicate(timeout=READY_S)


def server_programs() -> Path:
    """The folder of PostgreSQL's newest programs; an empty path where there is none."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda path: int(path.parent.name))
    return found[-1] if found else Path()


@contextmanager
def server_in(folder: Path) -> Iterator[Path]:
    """A server of our own that listens on a socket in this folder."""
    path = folder / "server"
    path.mkdir()
    folder.chmod(0o755)
    as_server: list[str] = []
    if os.geteuid() == 0:
        os.chown(path, pwd.getpwnam(SERVER_USER).pw_uid, -1)
        as_server = ["setpriv", f"--reuid={SERVER_USER}", "--regid=nogroup", "--clear-groups", "--"]
    programs, data = server_programs(), path / "data"

    def call(program: str, *arguments: object) -> None:
        subprocess.run(
            [*as_server, str(programs / program), *map(str, arguments)],
            check=True,
            stdout=subprocess.DEVNULL,
            cwd=path,
        )

    call("initdb", "-D", data, "-U", "fecbench", "-A", "trust", "-E", "UTF8", "--no-sync")
    # A server that is killed leaves its shared memory: in its folder, not in the machine's.
    options = f"-c unix_socket_directories={path} -c listen_addresses='' -c dynamic_shared_memory_type=mmap"
    call("pg_ctl", "-D", data, "-w", "-l", path / "log", "-o", options, "start")
    try:
        yield path
    finally:
        call("pg_ctl", "-D", data, "-w", "-m", "immediate", "stop")
        shutil.rmtree(data, ignore_errors=True)


def new_database(server: Path, name: str) -> str:
    """The URL of a new database of this server."""
    subprocess.run([server_programs() / "createdb", "-h", server, "-U", "fecbench", name], check=True)
    return f"postgresql://fecbench@/{name}?host={server}"


def free_address() -> str:
    """Return an address at which a scheduler may listen."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return f"tls://127.0.0.1:{listener.getsockname()[1]}"
