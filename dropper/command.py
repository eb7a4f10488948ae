"""The built `dropper` command, called from Python: attach, show, log, detach. Needs root.

Each call is one process of a few milliseconds; nothing stays open between them.
"""

import json
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from fecbench.dropper.draws import pack
from fecbench.dropper.loss_model import LossModel
from fecbench.errors import Failed

COMMAND = Path(__file__).resolve().parent / "build" / "dropper"


class DropperError(Failed):
    """The command failed; the text is the line that it wrote."""


@dataclass(frozen=True)
class Attachment:
    """One side of one interface; `netns` is a path such as /proc/PID/ns/net, or None for where we are."""

    netns: str | None
    interface: str
    direction: Literal["ingress", "egress"]

    @property
    def arguments(self) -> list[str]:
        netns = [] if self.netns is None else ["--netns", self.netns]
        return ["--dev", self.interface, f"--{self.direction}", *netns]


@dataclass(frozen=True)
class Filter:
    """A filter of the packets that are judged; `port` is that of the source or the destination, None for
    any."""

    family: Literal["any", "ipv4", "ipv6"] = "any"
    protocol: Literal["any", "udp", "tcp"] = "any"
    port: int | None = None

    @property
    def arguments(self) -> list[str]:
        port = [] if self.port is None else ["--port", str(self.port)]
        return ["--family", self.family, "--protocol", self.protocol, *port]


@dataclass(frozen=True)
class Counters:
    """Packets that crossed the hook: `seen` were judged, `shorter` and `other` were not."""

    seen: int
    dropped: int
    other: int
    gso: int
    """Judged, though they stood for several packets: the trial is not valid."""
    truncated: int
    """Judged, or impossible to match, though shorter than their headers say."""
    fragments: int
    """IP fragments of the filter's family and protocol."""
    shorter: int = 0
    """Matched, but no longer than the model's `only_longer_than`: they passed, and have no number."""

    @property
    def crossed(self) -> int:
        return self.seen + self.shorter + self.other


@dataclass(frozen=True)
class Verdicts:
    """Verdicts of the first packets; see `dropper.model.unpack`."""

    packets: int
    """Packets judged so far."""
    recorded: int
    """The number of these packets that the bitmap has."""
    bitmap: bytes
    counters: Counters
    """Read last."""
    arrivals_ns: NDArray[np.uint64] | None = None
    """Arrival times of these since packet 0, shape (recorded,); None if no clock decides."""


def _run(action: str, attachment: Attachment, options: list[str], standard_input: str = "") -> dict[str, Any]:
    command = [str(COMMAND), action, *attachment.arguments, *options, "--json"]
    try:
        process = subprocess.run(command, input=standard_input, capture_output=True, text=True)
    except FileNotFoundError:
        raise DropperError(f"{COMMAND} is not built: make -C {COMMAND.parent.parent}") from None
    if process.returncode != 0:
        raise DropperError(
            process.stderr.strip() or f"dropper {action} ended with status {process.returncode}"
        )
    document: dict[str, Any] = json.loads(process.stdout)
    return document


def attach(
    attachment: Attachment,
    model: LossModel,
    seed: int,
    filter: Filter = Filter(),
    record: int = 2**20,
) -> None:
    """Attaches a dropper whose packet 0 is the next that matches, in place of one of ours if it is there.

    The verdicts of the first `record` packets will be kept.
    """
    options = ["--losses", "/dev/stdin", "--record", str(record), *filter.arguments]
    _run("attach", attachment, options, model.written(seed))


def show(attachment: Attachment) -> Counters:
    """The counters so far; exact when no packet is under way."""
    return Counters(**_run("show", attachment, [])["counters"])


def log(attachment: Attachment) -> Verdicts:
    """The recorded verdicts so far, with the counters."""
    document = _run("log", attachment, [])
    verdicts = np.zeros(document["recorded"], dtype=np.bool_)
    verdicts[np.array(document["dropped"], dtype=np.int64)] = True
    arrivals = document.get("arrivals_ns")
    return Verdicts(
        document["packets"],
        document["recorded"],
        pack(verdicts),
        Counters(**document["counters"]),
        None if arrivals is None else np.array(arrivals, dtype=np.uint64),
    )


def detach(attachment: Attachment) -> None:
    """Removes the dropper, if there is one, and the qdisc if a dropper made it and nothing else uses it."""
    _run("detach", attachment, [])
