"""Whether the network was what was asked for: conservation, lateness, and what was lost outside of link and
dropper. Effects of the endpoints themselves are reported separately."""

from collections.abc import Iterator
from typing import Any

from fecbench.runners.tasks.outcome import Competition, DropperOutcome, Outcome
from fecbench.runners.tasks.packet_sizes import ETHERNET_HEADER_BYTES, FRAME_BYTES, header_bytes
from fecbench.runners.tasks.task import Task
from fecbench.runners.tasks.validity import Validity
from fecbench.topologies.counters import CHECKSUMS, RECEIVE_BUFFER
from fecbench.topologies.family import Family
from fecbench.topologies.link import DIRECTIONS, Direction, DirectionSettings, LinkSettings, QueueLimit
from fecbench.topologies.link_report import (
    DirectionReport,
    JitterConfiguration,
    LinkReport,
    ScheduleConfiguration,
)
from fecbench.topologies.rate import Rate
from fecbench.topologies.written import lines

# Bytes that a shaper may release at once, besides its rate.
BURST_BYTES = 64 << 10
# A receive buffer that holds less is too small, whatever else the machine does.
SMALL_BUFFER_BYTES = 32 << 10
_WORDS: dict[Family, str] = {"ipv4": "IPv4", "ipv6": "IPv6"}
OF_BACKENDS = {"burst_bytes"}
"""Values of a configuration that its backend chooses, and no task."""


def doubts_of_link(
    report: DirectionReport,
    recorded: DropperOutcome,
    validity: Validity,
    duration_s: float,
    icmp_back: int = 0,
) -> Iterator[str]:
    """Yield why the harness cannot vouch for a direction of a link, in a trial whose result is
    `duration_s`. The other direction has sent so many ICMPs back, past the dropper of this one."""
    if not report.conserved:
        yield f"the link did not conserve its packets: {report.model_dump()}"
    crossed, sent = recorded.counters.crossed, report.frames_out + icmp_back
    if crossed != sent:
        yield f"the link sent {sent} packets, the dropper met {crossed}"
    if report.late and report.late > validity.late_frames_share * report.frames_out:
        yield f"{report.late} of {report.frames_out} packets left the emulator later than its bound"
    bound_s = max(validity.late_time_at_least_s, validity.late_time_share * duration_s)
    if duration_s and late_s(report) > bound_s:
        yield f"packets were overdue for {1e3 * late_s(report):.1f} ms, the bound is {1e3 * bound_s:.1f}"


def doubts_of_bytes(
    report: DirectionReport, settings: DirectionSettings, elapsed_s: float | None, family: Family = "ipv4"
) -> Iterator[str]:
    """Whether frames can have held so many bytes, and the link have carried them in the time that there was.

    `elapsed_s` is how long there was a link; None: that is not known.
    """
    least = header_bytes(family)
    for way, frames, of_frames in (
        ("in", report.frames_in - report.oversize_dropped, report.bytes_in),
        ("out", report.frames_out, report.bytes_out),
    ):
        may_be_longer = way == "in" and report.oversize_dropped > 0
        if of_frames is not None and (
            of_frames < least * frames or (of_frames > FRAME_BYTES * frames and not may_be_longer)
        ):
            yield f"bytes_{way} = {of_frames} of {frames} frames: a frame has {least} to {FRAME_BYTES}"
    rate = settings.rate
    if elapsed_s is not None and report.bytes_out - BURST_BYTES > rate.most_bytes(0, elapsed_s):
        yield f"the link sent {report.bytes_out} bytes in {elapsed_s:g} s, and its rate is {rate}"


def doubts_of_competition(competition: Competition, rate: Rate, share: float) -> Iterator[str]:
    """Whether what the harness measured of two transfers that competed is possible."""
    if competition.filling_s < 0:
        yield f"the link was full after {competition.filling_s:g} s"
    rates = (competition.foreground_mbps, competition.background_mbps)
    measured = [rate for rate in rates if rate is not None]
    if any(rate < 0 for rate in measured) or sum(measured) > share * rate.largest_bps / 1e6:
        text = " and ".join(f"{rate:g}" for rate in measured)
        yield f"the transfers came at {text} Mbit/s over a link of {rate.largest_bps / 1e6:g}"


def doubts_of_queue(report: DirectionReport, limit: QueueLimit) -> Iterator[str]:
    """Whether the queue held more than its link was asked for. Not every backend knows how much it held."""
    for measured, most, unit in (
        (report.max_queue_bytes, limit.most_bytes if limit.bytes is None else limit.bytes, "bytes"),
        (report.max_queue_packets, limit.packets, "packets"),
    ):
        if measured is not None and most is not None and measured > most:
            yield f"the queue held {measured} {unit}, its limit is {most}"


def doubts_of_effects(report: DirectionReport, settings: DirectionSettings) -> Iterator[str]:
    """Whether the link did to frames what nobody asked for."""
    if report.outage_dropped and settings.outage_s is None:
        yield f"the link was out and dropped {report.outage_dropped} packets, and has no outage"
    if report.policer_dropped and settings.policer_mbps is None:
        yield f"a policer dropped {report.policer_dropped} packets, and the link has none"
    if report.corrupted and not settings.corrupt_p:
        yield f"the link corrupted {report.corrupted} packets, and should corrupt none"
    if report.icmp_sent and not settings.mtu_icmp:
        yield f"the link sent {report.icmp_sent} ICMPs, and has no mtu.icmp"
    if report.icmp_sent > report.oversize_dropped:
        yield f"the link sent {report.icmp_sent} ICMPs, and {report.oversize_dropped} packets were too long"
    if report.cross_frames and settings.cross is None:
        yield f"{report.cross_frames} packets of others shared the link, and it has no cross traffic"
    if report.cross_dropped > report.cross_frames:
        yield f"the queue dropped {report.cross_dropped} packets of others, and {report.cross_frames} came"
    if report.marked and not settings.ecn:
        yield f"the queue marked {report.marked} packets, and has no ECN"


def doubts_of_sizes(
    report: DirectionReport, recorded: DropperOutcome, only_longer_than: int | None
) -> Iterator[str]:
    """Whether the packets that the loss model counts were longer than the others, as far as their bytes say
    it."""
    counters = recorded.counters
    if only_longer_than is None:
        if counters.shorter:
            yield f"{counters.shorter} packets passed unjudged for their size, and the loss model counts all"
        return
    shortest = only_longer_than + 1 + ETHERNET_HEADER_BYTES
    if report.bytes_out is not None and report.bytes_out < shortest * counters.seen:
        yield (
            f"{counters.seen} packets were judged as longer than {only_longer_than} bytes, and the link sent"
            f" {report.bytes_out} bytes in all"
        )
    most = FRAME_BYTES * (counters.seen + counters.other) + (shortest - 1) * counters.shorter
    if report.bytes_out is not None and report.bytes_out > most:
        yield (
            f"{counters.shorter} packets passed as no longer than {only_longer_than} bytes, and the link sent"
            f" {report.bytes_out} bytes in all"
        )


def doubts_of_configuration(report: LinkReport, link: LinkSettings, direction: Direction) -> Iterator[str]:
    """Yield settings of one direction that differ from the task's, as the emulator reports them; a simulator
    reports none."""
    if report.configuration is None:
        return
    expected: dict[str, Any] = {"queue": "droptail"} | lines(link, direction)
    if (trace := link.of(direction).trace) is not None:
        repeat, offset_ns = expected["schedule"]
        steps = len(trace.keep_us)
        expected["schedule"] = ScheduleConfiguration(steps=steps, repeat=repeat, offset_ns=offset_ns)
    if "jitter" in expected:
        law, mean_ns, seed = expected["jitter"]
        expected["jitter"] = JitterConfiguration(law=law, mean_ns=mean_ns, seed=seed)
    configuration = dict(getattr(report.configuration, direction))
    for name in {**expected, **configuration}:
        had, value = configuration.get(name), expected.get(name)
        same = tuple(had) == value if isinstance(had, list) else had == value
        if not same and name not in OF_BACKENDS:
            yield f"the link had {name} = {had}, and should have {value}"


def late_s(report: DirectionReport) -> float:
    """Return how long late frames of one direction were overdue in all; 0 if the backend does not know."""
    return max((report.late_sum_us or 0.0) / 1e6, longest_late_s(report))


def longest_late_s(report: DirectionReport) -> float:
    """Return how late the latest late frame was; 0 if none was late."""
    return report.lateness_us.max / 1e6 if report.late and report.lateness_us else 0.0


def doubts_of_losses(task: Task, outcome: Outcome) -> Iterator[str]:
    """Yield the packets that were lost where none may be, unless an endpoint caused it.

    A full buffer of a socket is the endpoint's doing, unless it was kept from running for so long that
    SMALL_BUFFER_BYTES could come.
    """
    rates_bps = (
        max(link.settings.of(direction).rate.largest_bps for direction in DIRECTIONS)
        for link in task.links.values()
    )
    unreadable = sum(way.unreadable for link in outcome.links.values() for way in link.directions.values())
    may_have_come = (outcome.stalled_s or 0.0) * sum(rates_bps) / 8
    for node, places in outcome.discarded.items():
        for place, count in places.items():
            if place in CHECKSUMS and unreadable:
                if count > unreadable:
                    yield f"{count} packets had a wrong {place} at {node}, and links corrupted {unreadable}"
            elif place != RECEIVE_BUFFER:
                yield f"{count} packets were lost at {node}, outside of link and dropper: {place}"
            elif may_have_come >= SMALL_BUFFER_BYTES:
                yield (
                    f"{count} packets were lost at {node}, {place}, while endpoints were kept from running"
                    f" for {1e3 * (outcome.stalled_s or 0.0):.1f} ms"
                )


def overflow(outcome: Outcome) -> str:
    """Return which endpoints lost packets because they did not read them from their sockets; or nothing."""
    full = {
        node: places[RECEIVE_BUFFER] for node, places in outcome.discarded.items() if RECEIVE_BUFFER in places
    }
    return "; ".join(
        f"{count} packets were lost at {node}, outside of link and dropper: {RECEIVE_BUFFER} full;"
        " the endpoint must ask for a larger one (SO_RCVBUF), or read sooner"
        for node, count in full.items()
    )


def icmp_back(outcome: Outcome, link: str, direction: Direction) -> int:
    """Return how many ICMPs the other direction of a link has sent to the end at which this one comes out."""
    others = (way for way in DIRECTIONS if way != direction)
    return sum(outcome.links[link].directions[way].icmp_sent for way in others)


def bypass(task: Task, outcome: Outcome) -> str:
    """Return in which direction more than a few packets passed the loss model unjudged; or nothing."""
    validity = task.validity
    for link, directions in outcome.droppers.items():
        for direction, recorded in directions.items():
            counters = recorded.counters
            crossed = counters.crossed
            unjudged = counters.other - icmp_back(outcome, link, direction)
            if unjudged > max(validity.unjudged_at_least, validity.unjudged_share * crossed):
                return (
                    f"{link}/{direction}: {unjudged} of {crossed} packets went past the loss model,"
                    f" which judges UDP and TCP at port {task.port} over {_WORDS[task.family]}"
                )
    return ""
