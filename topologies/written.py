"""The text of one direction of a link: lines "name value", which `wire/written.c` reads for all that carry
packets. Its names, their bounds and what each needs stand there."""

import base64

from fecbench.topologies.link import MTU, Direction, LinkSettings
from fecbench.topologies.trace import STEP

_LITTLE_ENDIAN = STEP.newbyteorder("<")


def written(link: LinkSettings, direction: Direction) -> str:
    """Return the text of a direction, without the steps of its trace."""
    settings, limit = link.of(direction), link.queue_limit(direction)
    lines: dict[str, object] = {"rate_bps": settings.rate_bps, "delay_ns": settings.delay_ns}
    limits = {"queue_bytes": limit.bytes, "queue_packets": limit.packets, "queue_ns": limit.time_ns}
    lines |= {name: value for name, value in limits.items() if value is not None}
    if settings.queue != "droptail":
        lines["queue"] = settings.queue
    if settings.queue == "pie":
        lines["pie_seed"] = settings.pie_seed or 0
    if settings.ecn:
        lines["ecn"] = "true"
    if settings.ecn_threshold_ns is not None:
        lines["ecn_threshold_ns"] = settings.ecn_threshold_ns
    if settings.outage_ns is not None:
        lines["outage_ns"] = "{} {}".format(*settings.outage_ns)
    if (trace := settings.trace) is not None:
        lines["schedule"] = f"{trace.repeat} {trace.offset_ns or 0}"
    if (jitter := settings.jitter) is not None:
        lines["jitter"] = f"{jitter.law} {jitter.mean_ns} {jitter.seed or 0}"
    if settings.reorder:
        lines["reorder"] = "true"
    if settings.duplicate:
        lines["duplicate"] = f"{settings.duplicate_threshold} {settings.duplicate_seed or 0}"
    if settings.corrupt_p:
        lines["corrupt"] = f"{settings.corrupt_threshold} {settings.corrupt_seed or 0}"
    if settings.reorder_p:
        overtaken = settings.reorder_by_packets
        lines["overtake"] = f"{settings.reorder_threshold} {settings.reorder_seed or 0} {overtaken}"
    if settings.mtu_bytes != MTU:
        lines["mtu_bytes"] = settings.mtu_bytes
    if settings.policer_bps is not None:
        lines["policer"] = f"{settings.policer_bps} {settings.policer_burst_bytes}"
    if settings.shaper_burst_bytes:
        lines["shaper_burst_bytes"] = settings.shaper_burst_bytes
    if settings.cross is not None:
        lines["cross"] = "{} {} {} {}".format(*settings.cross)
    return "".join(f"{name} {value}\n" for name, value in lines.items())


def written_whole(link: LinkSettings, direction: Direction) -> str:
    """Return the text of a direction with the steps of its trace, where it has one."""
    settings = link.of(direction)
    if settings.trace is None:
        return written(link, direction)
    steps = settings.trace.steps(settings.rate_bps, settings.delay_ns).astype(_LITTLE_ENDIAN, copy=False)
    return f"{written(link, direction)}steps {base64.b64encode(steps.tobytes()).decode()}\n"
