"""A program that tries to reach what is not its own, and reports what became of each try: program.py PLACES.

PLACES is JSON, and all of it its user's: a `secret` file, a `folder`, the address of a Unix `socket`, the
number of a `process`, and the key of a `queue` of System V.
"""

import ctypes
import json
import os
import platform
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

places = json.loads(sys.argv[1])
secret, folder, process = Path(places["secret"]), Path(places["folder"]), places["process"]
libc = ctypes.CDLL(None, use_errno=True)


def call(name: str, *arguments: Any) -> None:
    """A function of the C library that gives -1 when it fails."""
    if getattr(libc, name)(*arguments) == -1:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


def system_call(number: int, *arguments: Any) -> None:
    call("syscall", ctypes.c_long(number), *arguments)


def connect_by_unix() -> None:
    with socket.socket(socket.AF_UNIX) as client:
        client.connect(places["socket"])


def make_ring() -> None:
    system_call(425, ctypes.c_uint(1), bytes(120))


def trace() -> None:
    call("ptrace", 16, process, None, None)
    os.waitpid(process, 0)


KEYCTL = {"x86_64": 250, "aarch64": 219}[platform.machine()]
TRIES: dict[str, Callable[[], object]] = {
    "read a file": secret.read_bytes,
    "read a file by /proc": lambda: Path(f"/proc/self/root{secret}").read_bytes(),
    "read a file of another process": lambda: Path(f"/proc/{process}/root{secret}").read_bytes(),
    "list a folder": lambda: list(folder.iterdir()),
    "write to a file": lambda: secret.open("a").close(),
    "empty a file": lambda: os.truncate(secret, 0),
    "change the rights of a file": lambda: secret.chmod(0o666),
    "change the times of a file": lambda: os.utime(secret),
    "give a file away": lambda: os.chown(secret, os.getuid(), os.getgid()),
    "make a file": lambda: (folder / "new").touch(),
    "make a folder": lambda: (folder / "below").mkdir(),
    "link a file": lambda: os.link(secret, "mine"),
    "take a file away": lambda: secret.rename("mine"),
    "remove a file": (folder / "spare").unlink,
    "execute a file": lambda: subprocess.run([folder / "script"], check=True),
    "open a socket of TCP": lambda: socket.socket(socket.AF_INET).close(),
    "open a socket of UDP": lambda: socket.socket(socket.AF_INET6, socket.SOCK_DGRAM).close(),
    "call a service of the user": connect_by_unix,
    "ask the kernel by netlink": lambda: socket.socket(socket.AF_NETLINK, socket.SOCK_RAW).close(),
    "have io_uring": make_ring,
    "read an environment": lambda: Path(f"/proc/{process}/environ").read_bytes(),
    "trace a process": trace,
    "read the user's keys": lambda: system_call(KEYCTL, 0, -4, 0),
    "read a queue": lambda: call("msgget", places["queue"], 0),
    "end a process": lambda: os.kill(process, signal.SIGURG),  # which means nothing to it
}


def in_a_thread() -> None:
    numbers: list[int] = []
    thread = threading.Thread(target=lambda: numbers.append(1))
    thread.start()
    thread.join()
    assert numbers


NEEDS: dict[str, Callable[[], object]] = {
    "read its implementation": lambda: (Path(__file__).parent / "note").read_text(),
    "write to its folder": lambda: Path("mine").write_text("x" * 10_000),
    "have folders in it": lambda: Path("below").mkdir(),
    "have a file for a while": lambda: tempfile.TemporaryFile().close(),
    "run a program of the system": lambda: subprocess.run(["/bin/true"], check=True),
    "run a thread": in_a_thread,
    "have a pair of sockets": lambda: [end.close() for end in socket.socketpair()],
    "draw random bytes": lambda: os.urandom(8),
    "write to nowhere": lambda: Path("/dev/null").write_text("x"),
    "know of itself": lambda: Path("/proc/self/status").read_text(),
}


def outcome(deed: Callable[[], object]) -> str:
    try:
        deed()
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return "worked"


report = {
    name: {key: outcome(deed) for key, deed in deeds.items()}
    for name, deeds in {"tries": TRIES, "needs": NEEDS}.items()
}
print(json.dumps(report), flush=True)
