"""What a link reports when it has been stopped: what it did with every frame, and how late it was."""

from typing import Any

from pydantic import BaseModel, ConfigDict, Field, SerializerFunctionWrapHandler, model_serializer

from fecbench.topologies.jitter import Law
from fecbench.topologies.link import Direction, Queue
from fecbench.topologies.trace import Repeat


class _Record(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Quantiles(_Record):
    """Of a duration over the frames of one direction, in µs: upper bounds, less than 1/16 too high."""

    p50: float
    p99: float
    p999: float
    max: float


class ScheduleLateness(_Record):
    """In ns, over the frames of one direction that followed its trace."""

    mean: int
    max: int


class DirectionReport(_Record):
    """The frames of one direction. None: this backend can't know."""

    frames_in: int
    bytes_in: int | None
    first_in_ns: int | None = None
    """When the first frame came to the kernel after the link was told of the start, on CLOCK_MONOTONIC; None
    where there was none, too."""
    queue_dropped: int
    """Dropped since the queue was full."""
    oversize_dropped: int
    """Dropped since longer than the MTU allows."""
    outage_dropped: int = 0
    """Dropped since the link was out when they came."""
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
    """Of each frame out: the time between its intended departure, computed from when it came to the kernel,
    and its write."""
    read_lag_us: Quantiles | None
    """Of each frame in: how long the kernel held it until the emulator read it. The emulator reads a frame in
    time for its departure, no sooner; the lag makes a frame late only when it is longer than the OWD."""
    schedule_late_ns: ScheduleLateness | None = Field(default=None, exclude_if=lambda late: late is None)
    """How late frames were written that left as a trace says; None: there is none, or the time is virtual."""
    late: int | None
    """Frames out whose lateness exceeds the report's late_bound_us."""
    late_sum_us: float | None = None
    """For how long in all one of these frames was overdue: from its intended departure to its write. Where
    that of several overlaps, it counts once."""
    times: str | None = Field(default=None, exclude_if=lambda times: times is None)
    """A hash of when each frame came and left, in hexadecimal. In virtual time only: emulated, no two trials
    have the same times."""
    conserved: bool
    """in = out + dropped + in flight, nothing refused or discarded by the kernel."""


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


class DirectionConfiguration(_Record):
    """What the emulator was told of one direction, and one of the two queue limits."""

    rate_bps: int
    delay_ns: int
    queue_bytes: int | None = None
    queue_packets: int | None = None
    queue_ns: int | None = None
    queue: Queue = "droptail"
    outage_ns: tuple[int, int] | None = None
    """From and to when it was out, counted from the client's start."""
    schedule: ScheduleConfiguration | None = None
    jitter: JitterConfiguration | None = Field(default=None, exclude_if=lambda jitter: jitter is None)
    reorder: bool | None = Field(default=None, exclude_if=lambda reorder: reorder is None)
    """None: it kept the order."""
    duplicate: tuple[int, int] | None = Field(default=None, exclude_if=lambda copies: copies is None)
    """Below which draw a frame was duplicated, and by which seed; None: none was."""
    burst_bytes: int | None = None
    """What the shaper of netem's queue lets out at once; wire has none."""


class LinkConfiguration(BaseModel):
    # A document that was written has more than the fields: see share().
    model_config = ConfigDict(extra="ignore", frozen=True)

    up: DirectionConfiguration
    down: DirectionConfiguration
    mtu: int
    late_bound_us: int | None = None

    @model_serializer(mode="wrap")
    def share(self, write: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """In a document, what both directions have in common stands beside them, too: `rate_bps` is that of
        a symmetric link."""
        common = {name: value for name, value in self.up if value == getattr(self.down, name) is not None}
        document: dict[str, Any] = write(self)
        return common | document


class LinkReport(_Record):
    """Of both directions of a link. None: this backend can't know."""

    backend: str
    version: str | None
    """Of the wire's program, or of netem's kernel; None: it is that of a simulator."""
    command: list[str] | None
    """The wire's command line, or netem's tc commands; None: a simulator has none."""
    configuration: LinkConfiguration | None
    """None: a simulator's link was what its task says."""
    scheduling: Scheduling | None
    cpu_s: float | None
    """Of the emulator's process, since the link was up."""
    spun_s: float | None = Field(default=None, exclude_if=lambda spun: spun is None)
    """Of these, how long it spun until frames were due."""
    elapsed_s: float | None
    """Since the link was up."""
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
