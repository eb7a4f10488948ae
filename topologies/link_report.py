"""The report of a link that has been stopped: what happened to every frame, and how late it was."""

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, SerializerFunctionWrapHandler, model_serializer

from fecbench.topologies.jitter import Law
from fecbench.topologies.left_out import left_out
from fecbench.topologies.link import Direction, Queue
from fecbench.topologies.trace import Repeat

DROPS = ("queue_dropped", "oversize_dropped", "outage_dropped", "policer_dropped")
"""Counters of frames that came in and never left."""

EFFECTS = {
    "outage_dropped": "dropped while it was out",
    "policer_dropped": "dropped by the policer",
    "corrupted": "corrupted",
    "marked": "marked",
    "icmp_sent": "were told to their senders by an ICMP",
    "cross_frames": "of others came",
    "cross_bytes": "bytes of others came",
    "cross_dropped": "of others were dropped",
}
"""Counters of effects that most links lack, and what happened to so many frames."""


class _Record(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Quantiles(_Record):
    """Quantiles of a duration over the frames of one direction, in µs: upper bounds, less than 1/16 too
    high."""

    p50: float
    p99: float
    p999: float
    max: float


class ScheduleLateness(_Record):
    """Lateness in ns, over the frames of one direction that followed its trace."""

    mean: int
    max: int


class DirectionReport(_Record):
    """The frames of one direction. None: this backend can't know."""

    frames_in: int
    bytes_in: int | None
    first_in_ns: int | None = None
    """The time on CLOCK_MONOTONIC at which the first frame after the start signal arrived at the kernel;
    None also where none arrived."""
    queue_dropped: int
    """Dropped since the queue was full."""
    oversize_dropped: int
    """Dropped since longer than the MTU allows."""
    outage_dropped: int = 0
    """Dropped since the link was out when they came."""
    policer_dropped: Annotated[int, left_out(0)] = 0
    """Dropped since beyond the rate and the burst of the policer."""
    corrupted: Annotated[int, left_out(0)] = 0
    """Frames out with a bit that flipped, so that their receiver drops them."""
    marked: Annotated[int, left_out(0)] = 0
    """Frames out that the queue marked (ECN)."""
    icmp_sent: Annotated[int, left_out(0)] = 0
    """ICMPs to the senders of frames that were longer than the MTU. They come out where those came in."""
    cross_frames: Annotated[int, left_out(0)] = 0
    """Frames of cross traffic that came to the queue; no other counter but `max_queue_…` has them."""
    cross_bytes: Annotated[int, left_out(0)] = 0
    cross_dropped: Annotated[int, left_out(0)] = 0
    """Frames of cross traffic that the queue dropped."""
    frames_out: int
    bytes_out: int
    in_flight: int
    """Still in the queue or the delay line when the link was stopped."""
    max_queue_bytes: int | None
    max_queue_packets: int | None
    write_errors: int
    """Frames out that the kernel refused to take back."""
    kernel_dropped: int
    """Frames that the kernel discarded between its interfaces and the link."""
    lateness_us: Quantiles | None
    """The lateness of each frame out: the time between its intended departure, computed from its arrival
    at the kernel, and its write."""
    read_lag_us: Quantiles | None
    """The lag of each frame in: the time for which the kernel held it until the emulator read it. The
    emulator reads a frame in time for its departure, no sooner; the lag makes a frame late only when it
    is longer than the OWD."""
    schedule_late_ns: Annotated[ScheduleLateness | None, left_out()] = None
    """The lateness of frames that follow a trace; None: there is no trace, or the time is virtual."""
    late: int | None
    """Frames out whose lateness exceeds the report's late_bound_us."""
    late_sum_us: float | None = None
    """The total time in which one of these frames was overdue: from its intended departure to its write.
    Where several overlap, the time counts once."""
    times: Annotated[str | None, left_out()] = None
    """A hash of when each frame came and left, in hexadecimal. In virtual time only: emulated, no two trials
    have the same times."""
    conserved: bool
    """in = out + dropped + in flight, nothing refused or discarded by the kernel."""

    @property
    def dropped(self) -> int:
        """Frames that came in and never left, for whatever reason."""
        return sum(getattr(self, name) for name in DROPS)

    @property
    def unreadable(self) -> int:
        """Frames out that their receiver drops."""
        return self.corrupted

    @property
    def lost(self) -> int:
        """Frames that nobody receives, whatever happens behind the link."""
        return self.dropped + self.unreadable


class Scheduling(_Record):
    fifo: bool
    """SCHED_FIFO was granted: without it the lateness depends on what else runs."""
    memory_locked: bool


class ScheduleConfiguration(_Record):
    """The trace that one direction followed."""

    steps: int
    repeat: Repeat
    offset_ns: int


class JitterConfiguration(_Record):
    """The noise of one direction's delay."""

    law: Law
    mean_ns: int
    seed: int


class DirectionConfiguration(BaseModel):
    """The emulator's configuration of one direction, with one of the queue limits. Effects of its text
    (`written.py`) have their names there, and are left out where it has none."""

    model_config = ConfigDict(extra="allow", frozen=True)

    rate_bps: int
    delay_ns: int
    queue_bytes: int | None = None
    queue_packets: int | None = None
    queue_ns: int | None = None
    queue: Queue = "droptail"
    outage_ns: tuple[int, int] | None = None
    """The begin and end of the outage, counted from the client's start."""
    schedule: ScheduleConfiguration | None = None
    jitter: Annotated[JitterConfiguration | None, left_out()] = None
    burst_bytes: int | None = None
    """The burst that the shaper of netem's queue sends at once; wire has none."""


class LinkConfiguration(BaseModel):
    # A document that was written has more than the fields: see share().
    model_config = ConfigDict(extra="ignore", frozen=True)

    up: DirectionConfiguration
    down: DirectionConfiguration
    mtu: int
    late_bound_us: int | None = None

    @model_serializer(mode="wrap")
    def share(self, write: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Write values that both directions share beside them, too: `rate_bps` is that of a symmetric
        link."""
        down = dict(self.down)
        common = {name: value for name, value in self.up if value == down.get(name) is not None}
        document: dict[str, Any] = write(self)
        return common | document


class LinkReport(_Record):
    """The report of both directions of a link. None: this backend cannot measure it."""

    backend: str
    version: str | None
    """The version of the wire's program, or of netem's kernel; None for a simulator's link."""
    command: list[str] | None
    """The wire's command line, or netem's tc commands; None: a simulator has none."""
    configuration: LinkConfiguration | None
    """None: a simulator's link was what its task says."""
    scheduling: Scheduling | None
    cpu_s: float | None
    """The CPU time of the emulator's process, since the link was up."""
    spun_s: Annotated[float | None, left_out()] = None
    """The part of `cpu_s` in which it spun until frames were due."""
    elapsed_s: float | None
    """The time since the link was up."""
    late_bound_us: int | None
    directions: dict[Direction, DirectionReport]

    @property
    def conserved(self) -> bool:
        return all(direction.conserved for direction in self.directions.values())

    @property
    def late(self) -> int | None:
        """Frames later than the bound in both directions together; None when the backend can't know."""
        counts = [direction.late for direction in self.directions.values() if direction.late is not None]
        return sum(counts) if counts else None
