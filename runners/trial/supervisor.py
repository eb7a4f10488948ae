"""Follows running endpoints, and ends them with everything that they started.

Each was started in a process group of its own; it is ended by signals to that group.
"""

import os
import selectors
import subprocess
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import IO

from fecbench.runners.trial import starvation
from fecbench.runners.trial.endpoint import Endpoint
from fecbench.runners.trial.starvation import INTERVAL_S, Watch

# How long an endpoint may take to obey SIGINT, then SIGTERM, before the next stronger signal.
OBEY_LIMIT_S = 3.0
DRAIN_LIMIT_S = 1.0


class Supervisor:
    """Follows several endpoints at once, in one thread: output, messages and ends."""

    def __init__(self) -> None:
        self._selector = selectors.DefaultSelector()
        self.endpoints: list[Endpoint] = []
        self._watch: Watch | None = None
        self._alarms: dict[str, tuple[float, Callable[[], None]]] = {}

    @contextmanager
    def watching(self, endpoints: Iterable[Endpoint]) -> Iterator[Watch]:
        """Watch, whenever it waits, how long these endpoints are kept from running."""
        sessions = [endpoint.process.pid for endpoint in endpoints] if starvation.is_known() else []
        with Watch(sessions) as self._watch:
            try:
                yield self._watch
            finally:
                self._watch = None

    def follow(
        self, name: str, process: subprocess.Popen[bytes], kind: Callable[..., Endpoint] = Endpoint
    ) -> Endpoint:
        """Follow a process that was started in a process group of its own with both outputs piped."""
        endpoint = kind(name, process)
        assert process.stdout and process.stderr
        self._read(process.stdout, endpoint.take_stdout)
        self._read(process.stderr, endpoint.take_stderr)
        end_descriptor = os.pidfd_open(process.pid)

        def reap() -> None:
            self._selector.unregister(end_descriptor)
            os.close(end_descriptor)
            endpoint.exit_code = process.wait()

        self._selector.register(end_descriptor, selectors.EVENT_READ, reap)
        self.endpoints.append(endpoint)
        if self._watch is not None and starvation.is_known():
            self._watch.add(process.pid)
        return endpoint

    def listen(self, descriptor: int, take: Callable[[], None]) -> None:
        """Call `take` whenever this descriptor has something to read."""
        self._selector.register(descriptor, selectors.EVENT_READ, take)

    def ignore(self, descriptor: int) -> None:
        """Look no more whether this descriptor has something to read."""
        self._selector.unregister(descriptor)

    def set_alarm(self, name: str, at_s: float | None, call: Callable[[], None]) -> None:
        """Call `call` once at a time of the monotonic clock, in the place of what was to be called by this
        name; None: never."""
        self._alarms.pop(name, None)
        if at_s is not None:
            self._alarms[name] = (at_s, call)

    def forget_alarms(self) -> None:
        """Call nothing more of what was to be called."""
        self._alarms.clear()

    def _ring(self) -> None:
        for name, (at_s, call) in list(self._alarms.items()):
            if at_s <= time.monotonic():
                del self._alarms[name]
                call()

    def _read(self, stream: IO[bytes], take: Callable[[bytes], None]) -> None:
        descriptor = stream.fileno()
        os.set_blocking(descriptor, False)

        def read() -> None:
            data = os.read(descriptor, 1 << 16)
            if data:
                take(data)
            else:
                self._selector.unregister(descriptor)

        self._selector.register(descriptor, selectors.EVENT_READ, read)

    def wait(self, until: Callable[[], bool], limit_s: float) -> bool:
        """Follow the endpoints until `until()` holds (True) or the limit passes (False)."""
        deadline = time.monotonic() + limit_s
        while not until():
            now = time.monotonic()
            if now >= deadline:
                return False
            until_s = min([deadline, *(at_s for at_s, _ in self._alarms.values())])
            left_s = max(0.0, until_s - now)
            for key, _ in self._selector.select(left_s if self._watch is None else min(left_s, INTERVAL_S)):
                key.data()
            self._ring()
            if self._watch is not None and self._watch.is_due:
                self._watch.sample()
        return True

    def end(self, endpoint: Endpoint) -> None:
        """SIGINT, then SIGTERM, then SIGKILL to its process group, each after it did not obey the one before.

        Whatever it wrote before its end has been taken when this returns.
        """
        for number in endpoint.endings:
            if endpoint.exit_code is not None:
                break
            endpoint.was_asked_to_end = True
            endpoint.signal(number)
            if not self.wait(lambda: endpoint.exit_code is not None, OBEY_LIMIT_S):
                endpoint.was_forced = True
        self.drain()

    def drain(self) -> None:
        """Take what is readable now; bounded, because an orphan of an endpoint may go on writing."""
        deadline = time.monotonic() + DRAIN_LIMIT_S
        while time.monotonic() < deadline and (ready := self._selector.select(0)):
            for key, _ in ready:
                key.data()
