"""The emulated link by `wire/`, the userspace emulator: a process per link, between two TAPs that it
makes."""

import contextlib
import json
import mmap
import os
import select
import signal
import subprocess
import time
from collections.abc import Sequence
from typing import IO

from fecbench.topologies.link import (
    DIRECTIONS,
    MTU,
    DirectionSettings,
    LinkEnd,
    LinkError,
    LinkSettings,
)
from fecbench.topologies.link_report import LinkReport
from fecbench.topologies.origin import Origin
from fecbench.topologies.programs import WIRE
from fecbench.topologies.trace import STEP, Trace
from fecbench.topologies.written import written

_ANSWER_TIMEOUT_S = 10.0


def wire_is_available() -> bool:
    """Whether the kernel has TUN/TAP and we may use it."""
    try:
        os.close(os.open("/dev/net/tun", os.O_RDWR))
    except OSError:
        return False
    return True


class WireLink:
    """Starts at once; wait_ready() returns when both interfaces are up.

    The process ends with the thread that started it, whatever happens to that one.
    """

    backend = "wire"

    def __init__(
        self,
        near: LinkEnd,
        far: LinkEnd,
        settings: LinkSettings,
        late_bound_us: int,
        clients: Sequence[str] = (),
        origin: Origin | None = None,
    ) -> None:
        """`clients`: the addresses of the measured client; without any, a host that sends upwards is the
        client. `origin`: the time that the links of a topology share; without it, the link has its own."""
        if not WIRE.exists():
            raise LinkError(f"{WIRE} is missing; `make build` builds it")
        shared = [] if origin is None else ["--origin-fd", str(origin.fd)]
        clients_options = [word for address in clients for word in ("--client", address)]
        with contextlib.ExitStack() as traces:
            of_traces, files = _traces(settings, traces)
            arguments = [*wire_arguments(near, far, settings, late_bound_us), *of_traces]
            self._process = subprocess.Popen(
                [str(WIRE), *arguments, *shared, *clients_options],
                pass_fds=(*files, *(() if origin is None else (origin.fd,))),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                start_new_session=True,  # Ctrl-C is for the harness, which ends us in its order
            )
        self._late_bound_us = late_bound_us
        self._name = f"wire between {near.interface} and {far.interface}"
        self._answers = b""

    def wait_ready(self) -> None:
        """Raises LinkError if the link can't be made."""
        self._answer("ready")

    def start(self, at_ns: int) -> None:
        """The first frame is looked for from this time of CLOCK_MONOTONIC on; outages are counted from the
        client's first frame."""
        self._command(f"start {at_ns}")
        self._answer("started")

    def finish(self) -> LinkReport:
        """Stops forwarding for good and reports; the interfaces stay until close()."""
        self._command("finish")
        answer = self._answer("report")
        del answer["event"]
        answer |= {"backend": self.backend, "late_bound_us": self._late_bound_us}
        return LinkReport.model_validate(answer)

    def close(self) -> None:
        """Ends the process; the interfaces end with their namespaces. Idempotent."""
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait()
        for stream in (self._process.stdin, self._process.stdout, self._process.stderr):
            with contextlib.suppress(BrokenPipeError):
                _stream(stream).close()

    def _command(self, line: str) -> None:
        try:
            _stream(self._process.stdin).write(f"{line}\n".encode())
            _stream(self._process.stdin).flush()
        except BrokenPipeError:
            raise self._failure() from None

    def _answer(self, event: str) -> dict[str, object]:
        output = _stream(self._process.stdout).fileno()
        deadline = time.monotonic() + _ANSWER_TIMEOUT_S
        while b"\n" not in self._answers:
            remaining = deadline - time.monotonic()
            if not select.select([output], [], [], max(remaining, 0))[0]:
                raise LinkError(f"{self._name} gave no `{event}` in {_ANSWER_TIMEOUT_S:g} s")
            more = os.read(output, 1 << 16)
            if not more:
                raise self._failure()
            self._answers += more
        line, self._answers = self._answers.split(b"\n", 1)
        answer: dict[str, object] = json.loads(line)
        if answer["event"] != event:
            raise LinkError(f"{self._name} answered `{answer['event']}` instead of `{event}`")
        return answer

    def _failure(self) -> LinkError:
        status = self._process.wait()
        complaint = _stream(self._process.stderr).read().decode(errors="replace").strip()
        end = signal.Signals(-status).name if status < 0 else f"status {status}"
        return LinkError(complaint or f"{self._name} ended with {end} and gave no reason")


def wire_arguments(near: LinkEnd, far: LinkEnd, settings: LinkSettings, late_bound_us: int) -> list[str]:
    options: dict[str, object] = {
        "near-netns": near.netns_path,
        "near-interface": near.interface,
        "far-netns": far.netns_path,
        "far-interface": far.interface,
        **{direction: written(settings, direction) for direction in DIRECTIONS},
        "mtu": MTU,
        "late-bound-us": late_bound_us,
    }
    words = [word for name, value in options.items() for word in (f"--{name}", str(value))]
    # A topology's namespaces end with it, and the interfaces with them; removing these earlier takes 40 ms.
    return [*words, "--keep-interfaces"]


def _traces(settings: LinkSettings, opened: contextlib.ExitStack) -> tuple[list[str], list[int]]:
    """Return the wire's options for the steps of traces, and the files in memory that have them."""
    words: list[str] = []
    files: list[int] = []
    for direction in DIRECTIONS:
        own = settings.of(direction)
        if own.trace is None:
            continue
        if direction == "down" and _steps_of(own) == _steps_of(settings.up):
            file = files[0]  # the steps are the same
        else:
            file = os.memfd_create(f"{direction}-trace")
            opened.callback(os.close, file)
            os.ftruncate(file, len(own.trace.keep_us) * STEP.itemsize)
            own.trace.steps(own.rate_bps, own.delay_ns, into=mmap.mmap(file, 0))
            files.append(file)
        words += [f"--{direction}-steps-fd", str(file)]
    return words, files


def _steps_of(settings: DirectionSettings) -> tuple[Trace | None, int, int]:
    """Return the values that decide the steps of a direction."""
    return settings.trace, settings.rate_bps, settings.delay_ns


def _stream(stream: IO[bytes] | None) -> IO[bytes]:
    assert stream is not None
    return stream
