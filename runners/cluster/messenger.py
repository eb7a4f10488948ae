"""A process between a scheduler and one of ours, which takes nothing of it but lines of JSON.

Dask runs in it, and nothing else. Dask unpickles what comes over the network, so whoever controls the
scheduler controls this process. It has no rights: where its starter is root it has a user of its own,
elsewhere it is fenced in if the kernel can do that. It gets a few variables of the starter's environment,
which may have a password. It ends with its standard input, its starter and its connection to the scheduler.
"""

import contextlib
import os
import select
import selectors
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import TracebackType
from typing import NoReturn, Self

from fecbench.checkout import REPOSITORY
from fecbench.runners import scratch
from fecbench.runners.cluster.address import Papers, Place
from fecbench.runners.cluster.messages import Message
from fecbench.runners.sandbox import fence, handed_over, kernel, rights, view
from fecbench.runners.sandbox.isolation import die_with_parent

LINE_BYTES = 1 << 20
"""The longest line. The addresses of 10,000 workers have some 300 kB."""
WORDS_BYTES = 1 << 16
"""Most of standard error that is kept."""
END_S = 2.0
_READ_BYTES = 1 << 20
_KNOWN = ("PATH", "LANG", "LC_ALL", "TZ")
"""Variables of the environment that it gets, with all that are meant for Dask."""


class Configuration(Message):
    """The first line on standard input."""

    address: str
    authority: str
    certificate: str
    key: str
    """All three empty: without TLS."""
    name: str
    """Name at the scheduler."""
    join: str
    """The request to workers, a line of JSON; empty: none."""
    folder: Path
    """Folder of the messenger."""
    user: int | None
    """User that it becomes; None: it stays the same."""
    starter: int
    """The process with which it ends."""

    @property
    def papers(self) -> Papers | None:
        return Papers(self.authority, self.certificate, self.key) if self.key else None


class Broken(Exception):
    """The messenger did what none of ours does; says in one line what."""


class Ended(Exception):
    """The messenger has ended; says why."""


class Quarters:
    """Starts messengers, one after another. A context manager: at its end their folder is gone."""

    def __init__(self, place: Place, program: str) -> None:
        """`program` is the Python program of the messengers."""
        self._place = place
        self._program = program
        self._resources = contextlib.ExitStack()

    def __enter__(self) -> Self:
        self._folder = self._resources.enter_context(scratch.folder(of_others=True)) / "messenger"
        handed_over.make_own_folder(self._folder)
        self._user = rights.own_user(os.getpid())
        if self._user is not None:
            self._folder.parent.chmod(0o711)
            os.chown(self._folder, self._user, self._user)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._resources.close()

    def start(self, name: str = "", join: str = "") -> "Messenger":
        """Start a messenger that knows what it is to do."""
        process = subprocess.Popen(
            [sys.executable, "-c", self._program],
            cwd=REPOSITORY,
            env=self._environment(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,  # a Ctrl-C is for its starter alone
        )
        papers = self._place.papers
        configuration = Configuration(
            address=self._place.address,
            authority=papers.authority if papers else "",
            certificate=papers.certificate if papers else "",
            key=papers.key if papers else "",
            name=name,
            join=join,
            folder=self._folder,
            user=self._user,
            starter=os.getpid(),
        )
        assert process.stdin
        with contextlib.suppress(BrokenPipeError):
            process.stdin.write(configuration.model_dump_json().encode() + b"\n")
            process.stdin.flush()
        return Messenger(process)

    def _environment(self) -> dict[str, str]:
        known = {
            name: value for name, value in os.environ.items() if name in _KNOWN or name.startswith("DASK_")
        }
        return {**known, "HOME": str(self._folder), "TMPDIR": str(self._folder)}


class Messenger:
    """A messenger that runs, for which its starter never has to wait."""

    def __init__(self, process: "subprocess.Popen[bytes]") -> None:
        self._process = process
        assert process.stdin and process.stdout and process.stderr
        self._input, self._output, self._errors = process.stdin, process.stdout, process.stderr
        self._unread, self._last_words = bytearray(), b""
        self._selector = selectors.DefaultSelector()
        for stream in (self._input, self._output, self._errors):
            os.set_blocking(stream.fileno(), False)
        for stream in (self._output, self._errors):
            self._selector.register(stream, selectors.EVENT_READ)
        self._heard_at = time.monotonic()

    @property
    def silent_s(self) -> float:
        """Time for which nothing has come from it."""
        return time.monotonic() - self._heard_at

    def send(self, message: Message) -> None:
        """Have it read a short line as soon as it likes to; kill one that has left thousands unread."""
        line = message.model_dump_json().encode() + b"\n"
        assert len(line) <= select.PIPE_BUF, "a longer line may be written in part"
        with contextlib.suppress(BrokenPipeError, ValueError):  # the end of its output says so, too
            try:
                os.write(self._input.fileno(), line)
            except BlockingIOError:
                self._process.kill()

    def lines(self, wait_s: float) -> Iterator[bytes]:
        """Yield its lines within that time, up to the end of one read. Raises Broken for a line without end,
        and Ended."""
        for key, _ in self._selector.select(max(0.0, wait_s)):
            if key.fileobj is self._errors:
                self._listen()
            else:
                yield from self._read()

    def close(self) -> str:
        """End it; the last line of what it wrote on standard error, or how it ended."""
        self._selector.close()
        self._input.close()
        try:
            self._process.wait(END_S)
        except subprocess.TimeoutExpired:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
        with contextlib.suppress(BlockingIOError):
            self._last_words += os.read(self._errors.fileno(), WORDS_BYTES)
        self._output.close()
        self._errors.close()
        lines = self._last_words.decode(errors="replace").strip().splitlines()
        return lines[-1] if lines else f"the messenger ended with {self._process.returncode}"

    def _read(self) -> Iterator[bytes]:
        data = os.read(self._output.fileno(), _READ_BYTES)
        if not data:
            raise Ended(self.close())
        self._heard_at = time.monotonic()
        *lines, rest = (self._unread + data).split(b"\n")
        self._unread = rest
        if max(map(len, (*lines, rest))) > LINE_BYTES:
            raise Broken(f"said a line of more than {LINE_BYTES} bytes")
        yield from map(bytes, lines)

    def _listen(self) -> None:
        data = os.read(self._errors.fileno(), WORDS_BYTES)
        self._last_words = (self._last_words + data)[-WORDS_BYTES:]
        if not data:
            self._selector.unregister(self._errors)


# The messenger's side


def enter(load: Callable[[], None]) -> Configuration:
    """Give up rights in this process, which is a messenger, and know what it is to do.

    `load` loads libraries before, which nobody else may be able to read.
    """
    configuration = Configuration.model_validate_json(sys.stdin.readline())
    die_with_parent(configuration.starter)
    programs = [*map(Path, filter(None, sys.path)), *rights.prefixes(Path(sys.executable))]
    if configuration.user is not None:  # who goes on loading modules of ours
        view.open_ways(path for path in {*programs, configuration.folder} if path.is_dir())
    elif fence.is_offered():
        names = Path("/etc/resolv.conf").resolve()  # may lie in /run
        fence.enter([*fence.without_home(programs), names], [configuration.folder], network=True)
    load()
    os.chdir(configuration.folder)
    if configuration.user is not None:
        kernel.become(configuration.user)
        die_with_parent(configuration.starter)  # a change of user forgets it
    return configuration


_saying = threading.Lock()


def say(message: Message) -> None:
    with _saying:
        print(message.model_dump_json(), flush=True)


def end(why: str) -> NoReturn:
    """End the process at once, whatever threads wait for."""
    print(" ".join(why.split()), file=sys.stderr, flush=True)
    os._exit(1)
