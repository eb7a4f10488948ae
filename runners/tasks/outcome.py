"""Outcome of a trial, not judged yet."""

from pydantic import BaseModel, ConfigDict, Field

from fecbench.dropper.command import Counters
from fecbench.runners.tasks.requests import Said
from fecbench.topologies.link import Direction
from fecbench.topologies.link_report import LinkReport


class _Record(BaseModel):
    # Factories: pydantic would copy each default that can change.
    # Bytes are base64 in JSON only.
    model_config = ConfigDict(extra="forbid", ser_json_bytes="base64", val_json_bytes="base64")


class EndpointOutcome(_Record):
    """An endpoint's end: its metrics, exit code and faults."""

    ready: bool = False
    metrics: dict[str, float] | None = None
    """Metrics of its `done`; None: it sent none."""
    complaint: str = ""
    """The fault of its messages or its series, if any."""
    exit_code: int | None = None
    """The exit code; None: the endpoint had to be killed."""
    was_slow: bool = False
    """Whether a server was not ready in time."""
    was_forced: bool = False
    """Whether the endpoint did not end in time after it was asked to."""
    stderr: str = ""
    """The end of its standard error; for an endpoint of the interop contract, of its standard output, too."""
    served_to_the_end: bool = False
    """Whether a server of the interop contract ran until it was asked to end. How it ended then means
    nothing."""
    series: dict[str, bytes] = Field(default_factory=dict)
    """Files of the requested series that the endpoint wrote, by name, unchanged."""


class DropperOutcome(_Record):
    """Counters and recordings of the dropper of one direction."""

    counters: Counters
    packets: int
    """Number of packets that it judged; the bitmap may cover fewer."""
    bitmap: bytes
    """Little-endian: bit n is set iff packet n was dropped."""
    arrivals: bytes | None = None
    """Arrival of each packet of the bitmap, if losses depend on it: 8 bytes each, little-endian, in ns since
    packet 0."""


class Competition(_Record):
    """Measurements by the harness of two transfers that compete."""

    filling_s: float
    """Time from the background's start until the link was full."""
    foreground_mbps: float | None = None
    background_mbps: float | None = None
    """Rate at which data came in at each client while the foreground ran; None: it did not run."""
    lasted_s: float | None = None
    """Time for which the foreground ran; None: it did not."""


class HostOutcome(_Record):
    """Measurements of one end's host in the course of a transfer in the field."""

    stalled_s: float | None = None
    """Time for which its endpoint lacked the CPU; None: the kernel does not report it."""
    longest_gap_s: float = 0.0
    stolen_s: float | None = None
    discarded: dict[str, int] = Field(default_factory=dict)
    """Datagrams and frames that its kernel has discarded, by place."""
    received_bytes: int | None = None
    """Bytes of all frames that came in at the interface of the transfer; None: it is not known."""
    sent_bytes: int | None = None
    clock_leap_s: float = 0.0
    """Change of the difference between its clock of the day and the one that measures times."""


class Probe(_Record):
    """A probe of the path in the field, by the client's clock."""

    sent_s: float
    """Time since the first probe beside its block was sent."""
    rtt_ms: float | None
    """None: no answer came."""
    lost_up: bool
    """Whether it never came to the server."""


class FullPacket(_Record):
    """A packet of a volley: a full one, which the server sent back. Times of each end count from its first
    one; None: it did not come."""

    sent_s: float
    came_s: float | None
    """Arrival, by the server's clock."""
    answered_s: float | None
    """Departure from the server, by its clock."""
    answer_s: float | None
    """Arrival of the answer, by the client's clock, from the first that it sent."""


class PathOutcome(_Record):
    """The path of a trial in the field, as both ends saw it."""

    name: str
    block: str
    """Name of its block, which no other has: trials of one block were run back to back."""
    place: int
    """Place of the trial within its block, from 0 on."""
    probes: list[Probe] = Field(default_factory=list)
    """Probes between the transfer before and this one."""
    volley: list[FullPacket] = Field(default_factory=list)
    """The volley before a block, with its first trial."""
    address: str
    """Address of the client on its own host."""
    outside: str
    """Address of the client as the server sees it."""
    mtu: int
    ttl: dict[str, int] = Field(default_factory=dict)
    """TTL of probes at their end, in each direction ("up", "down") in which it is known."""
    server_ahead_s: float
    """Server's monotonic clock less the client's, if the least delay is the same each way: half of the least
    round trip is the most that this can be wrong by."""
    least_rtt_ms: float
    """Least round-trip time of the session so far."""
    rested_s: float
    """Time until the round-trip time was near the least again."""
    is_rested: bool
    """Whether it was, within the limit."""
    changes: list[str] = Field(default_factory=list)
    """Changes of addresses, route and MTU since the block began."""
    hosts: dict[str, HostOutcome] = Field(default_factory=dict)
    """The hosts of "client" and "server"."""


class Outcome(_Record):
    """Events and measurements of a trial."""

    backend: str = ""
    endpoints: dict[str, EndpointOutcome] = Field(default_factory=dict)
    """Outcome of each endpoint by name: "client", "server", "background_client", …"""
    timed_out: bool = False
    background_lasted: bool = True
    """Whether the second pair's transfer continued until the first one's ended."""
    competition: Competition | None = None
    said: list[Said] = Field(default_factory=list)
    """Messages of the client about objects, during the trial."""
    links: dict[str, LinkReport] = Field(default_factory=dict)
    droppers: dict[str, dict[Direction, DropperOutcome]] = Field(default_factory=dict)
    """Outcome of each link and direction."""
    client_s: float | None = None
    """Time from the client's start until its report, or until its time limit; None: it was not started."""
    stalled_s: float | None = None
    """Time for which endpoints lacked the CPU, within the completion time; None: the kernel does not report
    it."""
    longest_gap_s: float = 0.0
    """Longest time in `client_s` in which nobody watched whether endpoints ran."""
    stolen_s: float | None = None
    """Time for which a hypervisor stopped a CPU in `client_s`: the CPU that lost the most."""
    hindered_s: dict[str, float] = Field(default_factory=dict)
    """Time for which a server lacked the CPU, for any reason, in the phases before and after."""
    discarded: dict[str, dict[str, int]] = Field(default_factory=dict)
    """Frames and datagrams that were lost in `client_s`, by node and place."""
    backlog_drops: int = 0
    """Frames of anybody that the CPUs of the machine discarded in `client_s`."""
    path: PathOutcome | None = None
    """The path in the field; None: it was ours."""
    phases_s: dict[str, float] = Field(default_factory=dict)
    virtual_s: float | None = None
    """Length of the trial in virtual time; None: a real trial."""
    no_answer: str = ""
    """The reason for which a simulator did not run the trial; empty if it did."""
    failure: str = ""
    """The failure of the harness itself; empty if none."""
