"""Lateness of the frames of a netem link, by the kernel's clock at both ends. BPF programs record when
each frame enters and leaves, and a process of its own compares that with the law of the link
(`clock/`)."""

import contextlib
import json
import os
import select
import subprocess
import time
from typing import Any

from pydantic import BaseModel, ConfigDict

from fecbench.topologies.link import DIRECTIONS, Direction, LinkEnd, LinkError, LinkSettings
from fecbench.topologies.link_report import Quantiles
from fecbench.topologies.programs import CLOCK

EARLY_US = 2.0
"""The tolerance for delays that are too short: tc before 6.9 cuts them to 64 ns of a microsecond."""
_ANSWER_TIMEOUT_S = 10.0


class Departures(BaseModel):
    """The frames that left in one direction."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    frames: int
    unseen: int
    """Frames that left, but of which no program recorded that they entered."""
    first_in_ns: int | None
    """The time on CLOCK_MONOTONIC at which the first frame after the start entered."""
    early_us: float
    """The greatest time by which a frame left before it was due."""
    late: int
    late_sum_us: float
    lateness_us: Quantiles


class NetemClock:
    """Runs when it is made. It ends with the thread that made it, and its programs with the interfaces."""

    def __init__(self, near: LinkEnd, far: LinkEnd, settings: LinkSettings, late_bound_us: int) -> None:
        if not CLOCK.exists():
            raise LinkError(f"{CLOCK} is missing; `make build` builds it")
        ends = (near.netns_path, near.interface, far.netns_path, far.interface)
        laws = [
            value
            for direction in DIRECTIONS
            for value in (settings.of(direction).rate_bps, settings.of(direction).delay_ns)
        ]
        self._process = subprocess.Popen(
            [str(CLOCK), *ends, *map(str, laws), str(late_bound_us)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,  # a Ctrl-C in the terminal is for the harness, which ends us in its order
        )
        try:
            self._answer("ready")
        except BaseException:
            self.close()
            raise

    def start(self, at_ns: int) -> None:
        """Look for the first frame of each direction from this time of CLOCK_MONOTONIC on."""
        self._order(f"start {at_ns}")
        self._answer("started")

    def finish(self) -> dict[Direction, Departures]:
        """Return the departures until now. Raises LinkError when frames left unrecorded, or sooner than
        they can."""
        self._order("finish")
        answer = self._answer("report")
        departures = {direction: Departures.model_validate(answer[direction]) for direction in DIRECTIONS}
        for direction, departure in departures.items():
            if departure.unseen or answer["untold"]:
                missed = departure.unseen + answer["untold"]
                raise LinkError(f"the clock of netem missed {missed} frames {direction}")
            if departure.early_us > EARLY_US:
                raise LinkError(
                    f"a frame left netem {direction} {departure.early_us:.1f} µs before it was due"
                )
        return departures

    def close(self) -> None:
        """Idempotent."""
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait()
        for stream in (self._process.stdin, self._process.stdout, self._process.stderr):
            assert stream
            with contextlib.suppress(BrokenPipeError):
                stream.close()

    def _order(self, line: str) -> None:
        assert self._process.stdin
        with contextlib.suppress(BrokenPipeError):  # the answer says why
            self._process.stdin.write(f"{line}\n".encode())
            self._process.stdin.flush()

    def _answer(self, event: str) -> dict[str, Any]:
        assert self._process.stdout
        assert self._process.stderr
        line, deadline = b"", time.monotonic() + _ANSWER_TIMEOUT_S
        while not line.endswith(b"\n"):
            if not select.select([self._process.stdout], [], [], max(deadline - time.monotonic(), 0))[0]:
                raise LinkError(f"the clock of netem gave no `{event}` in {_ANSWER_TIMEOUT_S:g} s")
            more = os.read(self._process.stdout.fileno(), 1 << 16)
            if not more:
                complaint = self._process.stderr.read().decode(errors="replace").strip()
                raise LinkError(complaint or f"the clock of netem ended with status {self._process.wait()}")
            line += more
        answer: dict[str, Any] = json.loads(line)
        return answer
