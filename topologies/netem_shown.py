"""The kernel's description of the qdiscs of a netem link, by `tc -details -raw -json qdisc show`.

tc rounds. Rates are whole bytes per second, and bursts are times in ticks of 64 ns. tc before 6.9 cuts a
delay to whole microseconds and then to ticks; every tc shows it with six digits. A delay or rate that is
shown as the requested one would be counts as that one. Any other stands in the configuration as it is shown,
where the judge finds it. Qdiscs with another burst or limit, or that do anything else, are refused.
"""

import json
import math
from typing import Any

from fecbench.topologies.link import LinkError
from fecbench.topologies.link_report import DirectionConfiguration

DELAY_LINE_LIMIT_PACKETS = 10**9
"""netem needs a limit; this one is never met: 1 s at 10 Gbit/s holds 825,000 full frames."""

_TICK_NS, _TICKS_PER_US = 64, 15.625
_SHAPER = {"rate", "burst", "burst_raw", "lat", "limit"}
# Since Linux 6.6 netem has a seed, whether it draws or not.
_DELAY_LINE = {"limit", "delay", "rate", "seed"}


def configuration(requested: DirectionConfiguration, queue: str, line: str) -> DirectionConfiguration:
    """Return the configuration of one direction whose queue and delay line tc shows in this way. Raises
    LinkError for other qdiscs, and for qdiscs that do more."""
    shaper, *below = _options(queue, ["tbf"] if requested.queue_packets is None else ["tbf", "pfifo"])
    (delay_line,) = _options(line, ["netem"])
    # Its delay and its rate have parameters of their own, those of the same names among them.
    delay_line = delay_line | delay_line.get("delay", {"delay": 0}) | delay_line.get("rate", {"rate": 0})
    _refuse_more("tbf does more than shape", shaper, _SHAPER)
    _refuse_more("netem does more than delay and serialize", delay_line, _DELAY_LINE)
    if delay_line["limit"] != DELAY_LINE_LIMIT_PACKETS:
        raise LinkError(f"netem's limit is {delay_line['limit']}: must be {DELAY_LINE_LIMIT_PACKETS}")
    _check_burst(requested, int(shaper["burst_raw"], 16), shaper["rate"])
    rates = {shaper["rate"], delay_line["rate"]} - {requested.rate_bps // 8}
    shown_s = delay_line["delay"]
    return DirectionConfiguration(
        rate_bps=8 * rates.pop() if rates else requested.rate_bps,
        delay_ns=requested.delay_ns
        if shown_s in delays_shown_s(requested.delay_ns)
        else round(1e9 * shown_s),
        queue_bytes=None if below else shaper["limit"],
        queue_packets=below[0]["limit"] if below else None,
        burst_bytes=requested.burst_bytes,
    )


def delays_shown_s(asked_ns: int) -> set[float]:
    """Return the values that tc shows for this delay when it was given as microseconds with three
    decimals: before tc 6.9, and since then."""
    asked_us = asked_ns / 1000
    ticks = math.floor(math.floor(asked_us) * _TICKS_PER_US)
    # math.floor also of what binary fractions make of nanoseconds, as tc does.
    before_s, since_s = math.floor(ticks / _TICKS_PER_US) / 1e6, math.floor(asked_us * 1000) / 1e9
    return {float(f"{shown_s:g}") for shown_s in (before_s, since_s)}


def _options(text: str, kinds: list[str]) -> list[dict[str, Any]]:
    # clsact is no queue: it is where programs see frames.
    qdiscs = [qdisc for qdisc in json.loads(text) if qdisc["kind"] != "clsact"]
    if [qdisc["kind"] for qdisc in qdiscs] != kinds:
        kinds_of_link = ", ".join(qdisc["kind"] for qdisc in qdiscs) or "none"
        raise LinkError(f"the link has the qdiscs {kinds_of_link}: must be {', '.join(kinds)}")
    return [qdisc["options"] for qdisc in qdiscs]


def _refuse_more(complaint: str, options: dict[str, Any], allowed: set[str]) -> None:
    more = {name for name, value in options.items() if value and value != "ethernet"} - allowed
    if more:
        raise LinkError(f"{complaint}: {', '.join(sorted(more))}")


def _check_burst(requested: DirectionConfiguration, ticks: int, rate: int) -> None:
    """Raises LinkError unless what takes so many ticks, at so many bytes per second, is what was asked."""
    assert requested.burst_bytes is not None
    asked_ns = requested.burst_bytes * 10**9 // rate
    if ticks not in (asked_ns // _TICK_NS, (asked_ns - 1) // _TICK_NS):  # the kernel's may be 1 ns short
        shown_bytes = round(ticks * _TICK_NS * rate / 1e9)
        raise LinkError(f"tbf lets out {shown_bytes} bytes at once: must be {requested.burst_bytes}")
