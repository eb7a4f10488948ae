"""What happened in a trial, not yet judged."""

from pydantic import BaseModel, ConfigDict

from fecbench.dropper.command import Counters
from fecbench.runners.tasks.requests import Said
from fecbench.topologies.link import Direction
from fecbench.topologies.link_report import LinkReport


class _Record(BaseModel):
    # Bytes are base64 in JSON only.
    model_config = ConfigDict(extra="forbid", ser_json_bytes="base64", val_json_bytes="base64")


class EndpointOutcome(_Record):
    """How an endpoint ended."""

    ready: bool = False
    metrics: dict[str, float] | None = None
    """None: it sent no `done`."""
    complaint: str = ""
    """What was wrong with its messages or its series, if anything."""
    exit_code: int | None = None
    """None: it had to be killed."""
    was_slow: bool = False
    """A server that was not ready in time."""
    was_forced: bool = False
    """It did not end in time when it was asked to."""
    stderr: str = ""
    """The end of it; of an endpoint of the interop contract, of its standard output, too."""
    served_to_the_end: bool = False
    """Of a server of the interop contract: it ran until it was asked to end, and how it did says nothing."""
    series: dict[str, bytes] = {}
    """The files that it left of what it was asked for, by name, as they are."""


class DropperOutcome(_Record):
    """What the dropper of one direction counted and recorded."""

    counters: Counters
    packets: int
    """That it judged; the bitmap may cover fewer."""
    bitmap: bytes
    """Little-endian: bit n is set iff packet n was dropped."""
    arrivals: bytes | None = None
    """When each packet of the bitmap arrived, where losses follow from it: 8 bytes each, little-endian, in ns
    since packet 0."""


class Competition(_Record):
    """What the harness measured of two transfers that competed."""

    filling_s: float
    """From the background's start until the link was full."""
    foreground_mbps: float | None = None
    background_mbps: float | None = None
    """All that came in at each client while the foreground ran; None: it did not run."""


class Outcome(_Record):
    """What happened in a trial."""

    backend: str = ""
    endpoints: dict[str, EndpointOutcome] = {}
    """By name: "client", "server", "background_client", …"""
    timed_out: bool = False
    background_lasted: bool = True
    """The second pair's transfer went on until the first one's ended."""
    competition: Competition | None = None
    said: list[Said] = []
    """What the client said of objects, in the course of the trial."""
    links: dict[str, LinkReport] = {}
    droppers: dict[str, dict[Direction, DropperOutcome]] = {}
    """Of each link and direction."""
    client_s: float | None = None
    """From the client's start until it reported, or until its time was over; None: it was not started."""
    stalled_s: float | None = None
    """How long endpoints lacked the CPU in the completion time; None: the kernel does not tell."""
    longest_gap_s: float = 0.0
    """The longest time in `client_s` in which nobody looked whether they did."""
    stolen_s: float | None = None
    """How long a hypervisor kept a CPU from running in `client_s`: the one that lost the most."""
    hindered_s: dict[str, float] = {}
    """How long a server lacked the CPU, for whatever reason, in the phases before and after."""
    discarded: dict[str, dict[str, int]] = {}
    """Of each node and place: frames and datagrams that were lost there in `client_s`."""
    backlog_drops: int = 0
    """Frames that the CPUs of the machine discarded in `client_s`, whosever they were."""
    phases_s: dict[str, float] = {}
    virtual_s: float | None = None
    """How long the trial was in virtual time; None: it was a real one."""
    no_answer: str = ""
    """Why a simulator has not played the trial, empty when it has."""
    failure: str = ""
    """What went wrong in the harness itself, empty when nothing did."""
