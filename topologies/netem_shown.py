"""What the kernel says of the qdiscs of a netem link, by `tc -raw -json qdisc show`.

tc rounds. Rates are whole bytes per second. tc up to 6.1 cuts a delay to microseconds, and then to ticks of
64 ns, when it gives it to the kernel, where it is up to 1.1 µs too short; and to microseconds and six digits
when it is shown. A number that is shown as the one that was asked would be is taken for it; any other stands
in the configuration as it is shown, where the judge finds it.
"""

import json
import math
from typing import Any

from topologies.link import LinkError
from topologies.link_report import DirectionConfiguration

_GIVEN_NS, _SHOWN_NS, _SHOWN_DIGITS = 1000 + 64, 1000, 6
# Since Linux 6.6 netem has a seed, whether it draws or not.
_DELAY_LINE = {"limit", "delay", "rate", "seed"}


def configuration(asked: DirectionConfiguration, queue: str, line: str) -> DirectionConfiguration:
    """Of one direction whose queue and whose delay line tc shows so. Raises LinkError for other qdiscs than
    these, and for a delay line that does more than delay and serialize."""
    shaper, *below = _options(queue, ["tbf"] if asked.queue_packets is None else ["tbf", "pfifo"])
    (delay_line,) = _options(line, ["netem"])
    rates = {shaper["rate"], delay_line.get("rate", {}).get("rate")} - {asked.rate_bps // 8}
    return DirectionConfiguration(
        rate_bps=8 * (rates.pop() or 0) if rates else asked.rate_bps,
        delay_ns=_delay_ns(asked.delay_ns, delay_line),
        queue_bytes=None if below else shaper["limit"],
        queue_packets=below[0]["limit"] if below else None,
        burst_bytes=shaper["burst"],
    )


def _options(shown: str, kinds: list[str]) -> list[dict[str, Any]]:
    # clsact is no queue: it is where programs see frames.
    qdiscs = [qdisc for qdisc in json.loads(shown) if qdisc["kind"] != "clsact"]
    if [qdisc["kind"] for qdisc in qdiscs] != kinds:
        found = ", ".join(qdisc["kind"] for qdisc in qdiscs) or "none"
        raise LinkError(f"the link has the qdiscs {found}: must be {', '.join(kinds)}")
    return [qdisc["options"] for qdisc in qdiscs]


def _delay_ns(asked_ns: int, options: dict[str, Any]) -> int:
    delay = options.get("delay", {})
    more = {name for name, value in options.items() if value} - _DELAY_LINE
    more |= {name for name in ("jitter", "correlation") if delay.get(name)}
    if more:
        raise LinkError(f"netem does more than delay and serialize: {', '.join(sorted(more))}")
    shown_ns = round(1e9 * delay.get("delay", 0))
    digits_ns = 10.0 ** (math.floor(math.log10(asked_ns)) + 1 - _SHOWN_DIGITS) / 2 if asked_ns else 0
    is_as_asked = -_GIVEN_NS - _SHOWN_NS - digits_ns < shown_ns - asked_ns <= digits_ns
    return asked_ns if is_as_asked else shown_ns
