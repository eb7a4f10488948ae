"""What a campaign tells a worker about a trial, and what the worker tells back: each one line of JSON."""

from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict

from runners.trial.endpoint import Role
from topologies.link import LinkSettings
from topologies.topology import Backend


class PairTask(BaseModel):
    """What a client and its server are asked for."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    commands: dict[Role, list[str]]
    workload: dict[str, Any]
    options: dict[str, Any]


class Task(BaseModel):
    """Everything that one trial needs; the worker looks nothing up."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    topology: str
    backend: Backend
    links: dict[str, LinkSettings]
    late_bounds_us: dict[str, int]
    """Of each link: a packet that leaves it later than this counts as late."""
    stall_share: float = 0.05  # endpoints that lack CPU for more of the completion time make it doubtful
    losses: dict[str, dict[str, dict[str, Any]]]  # link → direction → parameters of a loss model
    seeds: dict[str, int]  # "internet/up", "internet/down", …, and "content"; unsigned 64 bits
    pairs: list[PairTask]  # the first is measured; a second one fills the link before it begins
    timeout_s: float
    certificates: Path
    folder: Path  # made by the trial, for itself alone
    capture: bool = False  # record packets, qlog and TLS secrets into the folder


class EndpointOutcome(BaseModel):
    """How an endpoint ended. `exit_code` is None when it had to be killed."""

    ready: bool = False
    metrics: dict[str, float] | None = None
    complaint: str = ""
    exit_code: int | None = None
    stderr: str = ""


class DropperOutcome(BaseModel):
    """What the dropper of one direction counted and recorded."""

    counters: dict[str, int]
    packets: int
    bitmap_base64: str


class Outcome(BaseModel):
    """What happened in a trial, not yet judged."""

    backend: str = ""
    endpoints: dict[str, EndpointOutcome] = {}  # "client", "server", "background_client", …
    timed_out: bool = False
    background_lasted: bool = True  # the second pair's transfer went on until the first one's ended
    competition: dict[
        str, float
    ] = {}  # what each of two pairs got of the link, in Mbit/s, and when it was full
    links: dict[str, dict[str, Any]] = {}
    droppers: dict[str, DropperOutcome] = {}  # "internet/up" → …
    stalled_s: float | None = None  # how long endpoints lacked the CPU; None: the kernel does not tell
    phases_s: dict[str, float] = {}
    failure: str = ""  # what went wrong in the harness itself, empty when nothing did


def endpoint_name(pair: int, role: Role) -> str:
    """The name of an endpoint of the first (0) or second (1) pair of a task, in outcomes and results."""
    return ("", "background_")[pair] + role


def loss_name(link: str, direction: str) -> str:
    """The name of one direction of one link in seeds, outcomes and results."""
    return f"{link}/{direction}"
