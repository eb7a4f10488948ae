"""The text of one direction of a link: lines "name value", which `wire/written.c` reads for all that carry
packets. Its names, their bounds and what each needs stand there."""

import base64

from fecbench.topologies.link import CODEL_TARGET_MS, MTU, Direction, LinkSettings
from fecbench.topologies.trace import STEP

_LITTLE_ENDIAN = STEP.newbyteorder("<")


Value = bool | int | str | tuple[int | str, ...]


def lines(link: LinkSettings, direction: Direction) -> dict[str, Value]:
    """Return the values of a direction's lines by their names, without the steps of its trace."""
    settings, limit = link.of(direction), link.queue_limit(direction)
    values: dict[str, Value | None] = {
        "rate_bps": settings.rate_bps,
        "delay_ns": settings.delay_ns,
        "queue_bytes": limit.bytes,
        "queue_packets": limit.packets,
        "queue_ns": limit.time_ns,
        "queue": settings.queue if settings.queue != "droptail" else None,
        "pie_seed": (settings.pie_seed or 0) if settings.queue == "pie" else None,
        "codel_target_ns": round(settings.codel_target_ms * 1e6)
        if settings.codel_target_ms != CODEL_TARGET_MS
        else None,
        "ecn": settings.ecn or None,
        "ecn_threshold_ns": settings.ecn_threshold_ns,
        "outage_ns": settings.outage_ns,
        "reorder": settings.reorder or None,
        "mtu_bytes": settings.mtu_bytes if settings.mtu_bytes != MTU else None,
        "mtu_icmp": settings.mtu_icmp or None,
        "shaper_burst_bytes": settings.shaper_burst_bytes or None,
    }
    if (trace := settings.trace) is not None:
        values["schedule"] = (trace.repeat, trace.offset_ns or 0)
    if (jitter := settings.jitter) is not None:
        values["jitter"] = (jitter.law, jitter.mean_ns, jitter.seed or 0)
    values |= settings.chances
    if settings.policer_bps is not None:
        values["policer"] = (settings.policer_bps, settings.policer_burst_bytes)
    if settings.cross is not None:
        values["cross"] = settings.cross
    return {name: value for name, value in values.items() if value is not None}


def written(link: LinkSettings, direction: Direction) -> str:
    """Return the text of a direction, without the steps of its trace."""
    return "".join(f"{name} {_text(value)}\n" for name, value in lines(link, direction).items())


def _text(value: Value) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return " ".join(map(str, value)) if isinstance(value, tuple) else str(value)


def written_whole(link: LinkSettings, direction: Direction) -> str:
    """Return the text of a direction with the steps of its trace, where it has one."""
    settings = link.of(direction)
    if settings.trace is None:
        return written(link, direction)
    steps = settings.trace.steps(settings.rate_bps, settings.delay_ns).astype(_LITTLE_ENDIAN, copy=False)
    return f"{written(link, direction)}steps {base64.b64encode(steps.tobytes()).decode()}\n"
