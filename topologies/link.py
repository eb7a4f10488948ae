"""An emulated link: its parameters, their ranges, and its queue.

A frame's length, here and everywhere in this package, is its bytes with the 14 of the Ethernet header and
without preamble and FCS: IP length + 14, what Linux's own shapers (TBF, HTB) count too. A full frame has 1514
bytes. The rate of the link, limits in bytes and multiples of the BDP all mean these bytes.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cache, cached_property, lru_cache
from typing import Annotated, Any, Literal, Self, get_args

from fecbench.complaint import wrong_value
from fecbench.errors import BadInput, Failed
from fecbench.topologies.jitter import LARGEST_MEAN_MS, LAWS, Jitter
from fecbench.topologies.left_out import left_out
from fecbench.topologies.rate import ConstantRate, Rate, ShapedRate
from fecbench.topologies.trace import Trace, TraceRate

MTU = 1500
FULL_FRAME_BYTES = MTU + 14

DEFAULT_QUEUE_BDP = 1.5
"""The queue of the papers' scripts, in bandwidth-delay products (of the round-trip time)."""

MINIMUM_BDP_QUEUE_BYTES = 10 * FULL_FRAME_BYTES
"""A queue given in BDPs is never smaller: a short or slow path would else have none at all."""

DEFAULT_POLICER_BURST_BYTES = 15_000
"""Ten full packets."""
MOST_BURST_BYTES = 10**9
MOST_OVERTAKEN = 256
SMALLEST_MTU_BYTES = 576

LEAST_CROSS_MBPS, SHORTEST_CROSS_ON_S, LONGEST_CROSS_S = 0.01, 0.001, 1000.0

CHANCES = {"duplicate": "duplicate", "corrupt_p": "corrupt", "reorder_p": "reorder"}
"""Probabilities that draws about each frame decide, and what their seeds are called."""

_NAME = "name in designs"

Queue = Literal["droptail", "codel", "pie", "fq_codel", "dualpi2"]
CODELS = ("codel", "fq_codel")
CODEL_TARGET_MS = 5.0
LONGEST_OUTAGE_S = 1_000_000

MANAGED_QUEUE_PACKETS: Mapping[Queue, int] = {
    "codel": 1000,
    "pie": 1000,
    "fq_codel": 10_240,
    "dualpi2": 10_000,
}
"""The limit of a managed queue that is given none, that of Linux: they keep it short, and the limit is for
floods."""

QUEUES: tuple[Queue, ...] = get_args(Queue)

Direction = Literal["up", "down"]
"""up: from the client's side of the link to the server's; down: the reverse."""

DIRECTIONS: tuple[Direction, Direction] = ("up", "down")


class TopologyError(BadInput):
    """Bad input: str() is one complete line that names the parameter, its value, and what would be right."""


class LinkError(Failed):
    """The machine could not make, run or end a link: str() is one line that says what failed."""


@dataclass(frozen=True)
class LinkEnd:
    """An interface in the network namespace at netns_path."""

    netns_path: str
    interface: str


@dataclass(frozen=True)
class QueueLimit:
    """The limit of a queue, in bytes, in packets or in time. A frame that arrives at a full queue is dropped.

    The frame that is being sent is in the queue until its last bit has left.
    """

    bytes: int | None = None
    packets: int | None = None
    time_ns: int | None = None
    """The time whose bytes at the present rate of a trace fit, but at least MINIMUM_BDP_QUEUE_BYTES."""
    most_bytes: int | None = None
    """The most bytes that a limit in time ever allows: those at the largest rate."""


def _dotted(name: str, default: float | None) -> Any:
    """Return a field that designs call by a name with dots."""
    return field(default=default, metadata={_NAME: name})


@cache
def name_in_designs(field_name: str) -> str:
    """Return what designs call a field of DirectionSettings."""
    (own,) = (own for own in fields(DirectionSettings) if own.name == field_name)
    return str(own.metadata.get(_NAME, field_name))


@dataclass(frozen=True)
class DirectionSettings:
    """The parameters of one direction of an emulated link; LinkSettings checks them.

    At most one of queue_bdp, queue_bytes, queue_packets and queue_ms; if none, DEFAULT_QUEUE_BDP, or
    MANAGED_QUEUE_PACKETS where the queue is managed. With a trace in either direction, queue_bdp
    means nothing.
    """

    bandwidth_mbps: float
    """0.1 to 10,000."""
    owd_ms: float
    """0 to 10,000: the propagation alone; serialization and waiting come on top."""
    queue_bdp: float | None = None
    """The limit in bandwidth-delay products: this direction's rate times the round-trip time, the
    propagation of both directions. At least MINIMUM_BDP_QUEUE_BYTES."""
    queue_bytes: int | None = None
    queue_packets: int | None = None
    queue: Queue = "droptail"
    """codel: RFC 8289 (interval 100 ms) drops at the head besides. pie: RFC 8033 (target 15 ms)
    drops at the tail besides. fq_codel: RFC 8290, a CoDel for each flow. dualpi2: RFC 9332, two queues that
    mark; it needs ecn."""
    outage_s: tuple[float, float] | None = None
    """The begin and end of the outage, counted from the client's first frame after Topology.start(). The
    link drops all frames that arrive meanwhile; those inside still leave."""
    queue_ms: Annotated[float | None, left_out()] = None
    """The limit as a time: its bytes are those that the rate (the present one of a trace) sends in it."""
    trace: Annotated[Trace | None, left_out()] = None
    """The changes from the client's first frame on. bandwidth_mbps and owd_ms are then the values before
    it, and those that the trace lacks. For values that the trace has, they are the mean rate and the
    least delay."""
    jitter: Annotated[Jitter | None, left_out()] = None
    """The additional delay of each frame."""
    reorder: Annotated[bool, left_out(False)] = False
    """Whether a frame that is delayed by less overtakes those before it; otherwise order is kept."""
    duplicate: Annotated[float, left_out(0)] = 0.0
    """The probability that a frame leaves twice."""
    duplicate_seed: Annotated[int | None, left_out()] = None
    """64 bits that decide which frames do; None: each repetition has its own."""
    corrupt_p: Annotated[float, left_out(0)] = _dotted("corrupt.p", 0.0)
    """The probability that a bit of a frame flips, so that its receiver drops it."""
    corrupt_seed: Annotated[int | None, left_out()] = None
    reorder_p: Annotated[float, left_out(0)] = _dotted("reorder.p", 0.0)
    """The probability that a frame overtakes those before it."""
    reorder_by_packets: Annotated[int, left_out(1)] = _dotted("reorder.by_packets", 1)
    """The most frames that it overtakes: those of them that are still on their way."""
    reorder_seed: Annotated[int | None, left_out()] = None
    mtu_bytes: Annotated[int, left_out(MTU)] = MTU
    """The longest IP packet that passes; longer ones are dropped."""
    mtu_icmp: Annotated[bool, left_out(False)] = _dotted("mtu.icmp", False)
    """Whether an ICMP tells the senders of longer ones; otherwise nobody does."""
    policer_mbps: Annotated[float | None, left_out()] = None
    """The rate beyond which frames are dropped before the queue."""
    policer_burst_bytes: Annotated[int, left_out(DEFAULT_POLICER_BURST_BYTES)] = DEFAULT_POLICER_BURST_BYTES
    """The bytes that pass the policer at once after a pause."""
    ecn: Annotated[bool, left_out(False)] = False
    """Whether the queue marks frames that can be marked, in the place of dropping them before it is full."""
    ecn_threshold_ms: Annotated[float | None, left_out()] = None
    """The wait from which on the queue marks all that can be marked."""
    codel_target_ms: Annotated[float, left_out(CODEL_TARGET_MS)] = CODEL_TARGET_MS
    """The wait in CoDel's queue from which on it is too long; RFC 8290: at least the time of a full frame."""
    pie_seed: Annotated[int | None, left_out()] = None
    """64 bits that decide which frames PIE drops."""
    shaper_burst_bytes: Annotated[int, left_out(0)] = 0
    """The bytes that the link sends at once after a pause, faster than its rate."""
    cross_mbps: Annotated[float | None, left_out()] = _dotted("cross.mbps", None)
    """The rate at which full frames of others come to the queue, from the client's first frame on."""
    cross_on_s: Annotated[float, left_out(1)] = _dotted("cross.on_s", 1.0)
    """The mean time for which they come, then the mean time for which none comes."""
    cross_off_s: Annotated[float, left_out(0)] = _dotted("cross.off_s", 0.0)
    cross_seed: Annotated[int | None, left_out()] = None
    """64 bits that decide how long each of these times is."""

    @property
    def rate_bps(self) -> int:
        return round(self.bandwidth_mbps * 1e6)

    @property
    def rate(self) -> Rate:
        """The rate of the direction, for code that asks how fast it is."""
        if self.trace is not None and self.trace.changes_rate:
            # It does not depend on the place where the link begins, so all repetitions share it.
            return _rate_of(self.trace.begun_at(None), self.rate_bps)
        if self.shaper_burst_bytes:
            return ShapedRate(self.rate_bps, self.shaper_burst_bytes)
        return ConstantRate(self.rate_bps)

    @property
    def steady_bps(self) -> float | None:
        """The rate that transfers have at all times; None: it changes, or a policer, an outage or cross
        traffic takes a part of it."""
        has_all = self.policer_mbps is None and self.outage_s is None and not self.cross_mbps
        rate = self.rate
        return rate.bps if has_all and isinstance(rate, ConstantRate | ShapedRate) else None

    @property
    def delay_ns(self) -> int:
        return round(self.owd_ms * 1e6)

    @property
    def least_owd_ms(self) -> float:
        """The least that it ever has: a frame that overtakes may have none."""
        if self.reorder_p:
            return 0.0
        span_us = None if self.trace is None else self.trace.owd_span_us
        return self.owd_ms if span_us is None else min(self.owd_ms, span_us[0] / 1e3)

    @property
    def greatest_owd_ms(self) -> float:
        """The most that it ever has, noise included."""
        span_us = None if self.trace is None else self.trace.owd_span_us
        greatest_ms = self.owd_ms if span_us is None else max(self.owd_ms, span_us[1] / 1e3)
        return greatest_ms + (self.jitter.most_ms if self.jitter is not None else 0.0)

    @property
    def delay_span_ms(self) -> float:
        """The greatest difference of its delays; 0: the delay never changes."""
        return self.greatest_owd_ms - self.least_owd_ms

    @property
    def overtakes(self) -> bool:
        """Whether frames may leave in another order than they came."""
        return self.reorder or self.reorder_p > 0

    @property
    def chances(self) -> dict[str, tuple[int, ...]]:
        """Return the values of CHANCES above 0, by the names of their lines: the threshold below which a draw
        of 32 bits lets it happen, the seed, and the most frames that one overtakes."""
        lines: dict[str, tuple[int, ...]] = {
            name: (round(getattr(self, probability) * 2**32), getattr(self, f"{name}_seed") or 0)
            for probability, name in CHANCES.items()
            if getattr(self, probability)
        }
        if self.reorder_p:
            lines["overtake"] = (*lines.pop("reorder"), self.reorder_by_packets)
        return lines

    @property
    def policer_bps(self) -> int | None:
        return None if self.policer_mbps is None else round(self.policer_mbps * 1e6)

    @property
    def cross(self) -> tuple[int, int, int, int] | None:
        """The rate of cross traffic in bit/s, its mean times on and off in ns, and the seed; None: there is
        none."""
        if not self.cross_mbps:
            return None
        times_ns = round(self.cross_on_s * 1e9), round(self.cross_off_s * 1e9)
        return round(self.cross_mbps * 1e6), *times_ns, self.cross_seed or 0

    @property
    def ecn_threshold_ns(self) -> int | None:
        return None if self.ecn_threshold_ms is None else round(self.ecn_threshold_ms * 1e6)

    @property
    def outage_ns(self) -> tuple[int, int] | None:
        if self.outage_s is None:
            return None
        begin_s, end_s = self.outage_s
        return round(begin_s * 1e9), round(end_s * 1e9)


@dataclass(frozen=True)
class LinkSettings:
    """The parameters of an emulated link in each direction.

    Raises TopologyError, which names the direction if the other one has another value.
    """

    up: DirectionSettings
    down: DirectionSettings

    def __post_init__(self) -> None:
        for direction in DIRECTIONS:
            self._check(direction)

    @classmethod
    def symmetric(
        cls,
        bandwidth_mbps: float,
        owd_ms: float,
        queue_bdp: float | None = None,
        queue_bytes: int | None = None,
        queue_packets: int | None = None,
        queue: Queue = "droptail",
        outage_s: tuple[float, float] | None = None,
    ) -> Self:
        """A link that is the same in both directions."""
        limits = (queue_bdp, queue_bytes, queue_packets)
        settings = DirectionSettings(bandwidth_mbps, owd_ms, *limits, queue, outage_s)
        return cls(settings, settings)

    def of(self, direction: Direction) -> DirectionSettings:
        return self.up if direction == "up" else self.down

    @property
    def has_outages(self) -> bool:
        return any(self.of(direction).outage_s is not None for direction in DIRECTIONS)

    @property
    def has_traces(self) -> bool:
        return any(self.of(direction).trace is not None for direction in DIRECTIONS)

    @property
    def has_cross(self) -> bool:
        return any(self.of(direction).cross_mbps for direction in DIRECTIONS)

    @property
    def has_jitter(self) -> bool:
        return any(self.of(direction).jitter is not None for direction in DIRECTIONS)

    @property
    def has_duplicates(self) -> bool:
        return any(self.of(direction).duplicate for direction in DIRECTIONS)

    @cached_property
    def drawn(self) -> tuple[str, ...]:
        """The names of the seeds of 64 bits that each repetition draws for this link: by "trace" it begins in
        its traces, by "up/jitter" frames upwards have their noise, by "up/duplicate" some leave twice."""
        jitter = (f"{direction}/jitter" for direction in DIRECTIONS) if self.has_jitter else ()
        of_frames = (
            f"{direction}/{name}"
            for probability, name in CHANCES.items()
            if any(getattr(self.of(direction), probability) for direction in DIRECTIONS)
            for direction in DIRECTIONS
        )
        has_pie = any(self.of(direction).queue == "pie" for direction in DIRECTIONS)
        pie = (f"{direction}/pie" for direction in DIRECTIONS) if has_pie else ()
        cross = (f"{direction}/cross" for direction in DIRECTIONS) if self.has_cross else ()
        return (*(("trace",) if self.has_traces else ()), *jitter, *of_frames, *pie, *cross)

    def seeded(self, seeds: Mapping[str, int]) -> Self:
        """Return the same with what these seeds decide, unless it is given."""
        if not self.drawn:
            return self
        return type(self)(*(self._seeded(direction, seeds) for direction in DIRECTIONS))

    def _seeded(self, direction: Direction, seeds: Mapping[str, int]) -> DirectionSettings:
        own = self.of(direction)
        if own.trace is not None:
            own = replace(own, trace=own.trace.placed(seeds["trace"]))
        if own.jitter is not None and own.jitter.seed is None:
            own = replace(own, jitter=replace(own.jitter, seed=seeds[f"{direction}/jitter"]))
        new_seeds: dict[str, Any] = {
            f"{name}_seed": seeds[f"{direction}/{name}"]
            for probability, name in CHANCES.items()
            if getattr(own, probability) and getattr(own, f"{name}_seed") is None
        }
        if own.queue == "pie" and own.pie_seed is None:
            new_seeds["pie_seed"] = seeds[f"{direction}/pie"]
        if own.cross_mbps and own.cross_seed is None:
            new_seeds["cross_seed"] = seeds[f"{direction}/cross"]
        return replace(own, **new_seeds)

    @property
    def rtt_ms(self) -> float:
        """The least propagation up and down, without serialization and waiting."""
        return self.up.least_owd_ms + self.down.least_owd_ms

    def bdp_bytes(self, direction: Direction) -> float:
        """The bandwidth-delay product: the direction's rate times the round-trip time."""
        return self.of(direction).rate_bps * (self.up.delay_ns + self.down.delay_ns) / 8e9

    def queue_limit(self, direction: Direction) -> QueueLimit:
        settings = self.of(direction)
        if settings.queue_packets is not None:
            return QueueLimit(packets=settings.queue_packets)
        if settings.queue_bytes is not None:
            return QueueLimit(bytes=settings.queue_bytes)
        if settings.queue_ms is not None:
            if settings.trace is not None and settings.trace.changes_rate:
                time_ns = round(settings.queue_ms * 1e6)
                largest_bps = max(settings.trace.largest_rate_bps or 0, settings.rate_bps)
                most = max(largest_bps * time_ns // (8 * 10**9), MINIMUM_BDP_QUEUE_BYTES)
                return QueueLimit(time_ns=time_ns, most_bytes=most)
            capacity = round(settings.rate_bps * settings.queue_ms / 8e3)
            return QueueLimit(bytes=max(capacity, MINIMUM_BDP_QUEUE_BYTES))
        if settings.queue_bdp is None and settings.queue != "droptail":
            return QueueLimit(packets=MANAGED_QUEUE_PACKETS[settings.queue])
        multiple = DEFAULT_QUEUE_BDP if settings.queue_bdp is None else settings.queue_bdp
        return QueueLimit(bytes=max(round(multiple * self.bdp_bytes(direction)), MINIMUM_BDP_QUEUE_BYTES))

    def _check(self, direction: Direction) -> None:
        settings = self.of(direction)
        _check_number(self._name(direction, "bandwidth_mbps"), settings.bandwidth_mbps, 0.1, 10_000)
        _check_number(self._name(direction, "owd_ms"), settings.owd_ms, 0, 10_000)
        limits = {
            self._name(direction, limit): getattr(settings, limit)
            for limit in ("queue_bdp", "queue_bytes", "queue_packets", "queue_ms")
            if getattr(settings, limit) is not None
        }
        if len(limits) > 1:
            pairs = " and ".join(f"{name} = {value}" for name, value in limits.items())
            raise TopologyError(f"{pairs} are given together; each direction of a link has one queue limit")
        if settings.queue_bdp is not None:
            _check_number(self._name(direction, "queue_bdp"), settings.queue_bdp, 0, 1000)
        if settings.queue_bytes is not None:
            name = self._name(direction, "queue_bytes")
            _check_whole_number(name, settings.queue_bytes, FULL_FRAME_BYTES, 10**10)
        if settings.queue_packets is not None:
            _check_whole_number(self._name(direction, "queue_packets"), settings.queue_packets, 1, 10**7)
        if settings.queue_ms is not None:
            _check_number(self._name(direction, "queue_ms"), settings.queue_ms, 0.001, 1_000_000)
        trace = settings.trace
        if settings.queue_ms is not None and trace is not None and trace.largest_rate_bps == 0:
            raise TopologyError(
                f"{self._name(direction, 'queue_ms')}: the trace has bursts and no rate, so that no time says"
                " how much a queue holds; write queue_packets or queue_bytes"
            )
        if self.has_traces and (
            settings.queue_bdp is not None or (not limits and settings.queue == "droptail")
        ):
            raise TopologyError(
                f"{self._name(direction, 'queue_bdp')}: a link that changes has no bandwidth-delay product;"
                " write queue_ms = 100, queue_packets or queue_bytes"
            )
        if settings.queue not in QUEUES:
            name = self._name(direction, "queue")
            raise TopologyError(wrong_value(name, settings.queue, f"one of {', '.join(QUEUES)}"))
        if settings.outage_s is not None:
            _check_outage(self._name(direction, "outage_s"), settings.outage_s)
        if settings.jitter is not None:
            self._check_jitter(direction, settings.jitter)
        for probability in CHANCES:
            _check_number(self._name(direction, probability), getattr(settings, probability), 0, 1)
        self._check_effects(direction, settings)
        self._check_cross(direction, settings)
        for truth in ("reorder", "ecn", "mtu_icmp"):
            value = getattr(settings, truth)
            if not isinstance(value, bool):
                raise TopologyError(wrong_value(self._name(direction, truth), value, "true or false"))
        if settings.codel_target_ms != CODEL_TARGET_MS:
            target = self._name(direction, "codel_target_ms")
            _check_number(target, settings.codel_target_ms, 0.001, 1_000_000)
            if settings.queue not in CODELS:
                raise TopologyError(f"{target}: the queue has no CoDel; write queue = 'codel' or 'fq_codel'")
        if settings.ecn_threshold_ms is not None:
            threshold = self._name(direction, "ecn_threshold_ms")
            _check_number(threshold, settings.ecn_threshold_ms, 0.001, 1_000_000)
            if not settings.ecn:
                raise TopologyError(f"{threshold}: the queue marks nothing without ecn = true")
        elif settings.queue == "dualpi2" and not settings.ecn:
            raise TopologyError(
                f"{self._name(direction, 'queue')} is 'dualpi2', which has to mark; write ecn = true"
            )
        elif settings.ecn and settings.queue == "droptail":
            raise TopologyError(
                f"{self._name(direction, 'ecn')} is true; droptail marks nothing without ecn_threshold_ms"
            )

    def _check_effects(self, direction: Direction, settings: DirectionSettings) -> None:
        for name, minimum, maximum in (
            ("reorder_by_packets", 1, MOST_OVERTAKEN),
            ("mtu_bytes", SMALLEST_MTU_BYTES, MTU),
            ("policer_burst_bytes", FULL_FRAME_BYTES, MOST_BURST_BYTES),
            ("shaper_burst_bytes", 0, MOST_BURST_BYTES),
        ):
            _check_whole_number(self._name(direction, name), getattr(settings, name), minimum, maximum)
        if settings.policer_mbps is not None:
            _check_number(self._name(direction, "policer_mbps"), settings.policer_mbps, 0.1, 10_000)
        for name, default, needed in (
            ("policer_burst_bytes", DEFAULT_POLICER_BURST_BYTES, "policer_mbps"),
            ("reorder_by_packets", 1, "reorder_p"),
        ):
            if getattr(settings, name) != default and not getattr(settings, needed):
                raise TopologyError(f"{self._name(direction, name)}: there is no {name_in_designs(needed)}")
        if settings.mtu_icmp and settings.mtu_bytes == MTU:
            raise TopologyError(f"{self._name(direction, 'mtu_icmp')}: there is no mtu_bytes below {MTU}")
        if settings.shaper_burst_bytes and settings.trace is not None:
            raise TopologyError(
                f"{self._name(direction, 'shaper_burst_bytes')}: a link that changes has bursts of its trace"
            )

    def _check_cross(self, direction: Direction, settings: DirectionSettings) -> None:
        for name, default, least in (
            ("cross_on_s", 1.0, SHORTEST_CROSS_ON_S),
            ("cross_off_s", 0.0, 0),
        ):
            value = getattr(settings, name)
            _check_number(self._name(direction, name), value, least, LONGEST_CROSS_S)
            if value != default and settings.cross_mbps is None:
                raise TopologyError(f"{self._name(direction, name)}: there is no cross.mbps")
        if settings.cross_mbps != 0 and settings.cross_mbps is not None:
            least_mbps = LEAST_CROSS_MBPS
            _check_number(self._name(direction, "cross_mbps"), settings.cross_mbps, least_mbps, 10_000)

    def _check_jitter(self, direction: Direction, jitter: Jitter) -> None:
        prefix = self._name(direction, "jitter").removesuffix("jitter")
        # At least 1 ns: it is counted in these.
        _check_number(f"{prefix}jitter_ms", jitter.mean_ms, 1e-6, LARGEST_MEAN_MS)
        if jitter.law not in LAWS:
            raise TopologyError(wrong_value(f"{prefix}jitter.law", jitter.law, f"one of {', '.join(LAWS)}"))

    def _name(self, direction: Direction, parameter: str) -> str:
        """Return the name of a parameter in errors."""
        up, down = getattr(self.up, parameter), getattr(self.down, parameter)
        is_shared = up == down or repr(up) == repr(down)  # a NaN does not equal itself
        name = name_in_designs(parameter)
        return name if is_shared else f"{direction}.{name}"


@lru_cache(maxsize=256)
def _rate_of(trace: Trace, constant_bps: int) -> TraceRate:
    return TraceRate(trace, constant_bps)


def _check_number(name: str, value: object, minimum: float, maximum: float) -> None:
    # A bool is an int in Python, and a NaN is within no bounds.
    if not isinstance(value, int | float) or isinstance(value, bool) or not minimum <= value <= maximum:
        raise TopologyError(wrong_value(name, value, f"a number from {minimum} to {maximum}"))


def _check_outage(name: str, value: object) -> None:
    right = f"[from, to], in seconds from 0 to {LONGEST_OUTAGE_S}, the first the smaller"
    numbers = list(value) if isinstance(value, list | tuple) else []
    are_numbers = all(isinstance(number, int | float) and not isinstance(number, bool) for number in numbers)
    # At least 1 ns long: it is counted in these.
    if len(numbers) != 2 or not are_numbers or not 0 <= numbers[0] <= numbers[1] - 1e-9 < LONGEST_OUTAGE_S:
        raise TopologyError(wrong_value(name, list(value) if isinstance(value, tuple) else value, right))


def _check_whole_number(name: str, value: object, minimum: int, maximum: int) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or not minimum <= value <= maximum:
        raise TopologyError(wrong_value(name, value, f"a whole number from {minimum} to {maximum}"))
