"""The report of iperf3 (`iperf3 -J`): of TCP rate, round-trip times and retransmissions; of UDP losses.

TCP retransmits what is lost, and a little more. UDP sends at the rate that it is told: what that rate loses
in a full queue is among the losses.
"""

import json
import math
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from fecbench.errors import BadInput
from fecbench.runners.paths.path import Estimate, Path
from fecbench.runners.paths.shares import counted

_FULL = 1.25
"""The queue was in use if the longest round-trip time was so many times the least."""
_MOST = 1 << 62
_HEADERS_BYTES = 52
"""Headers of IPv4 and of TCP with timestamps."""


def is_iperf3(document: Any) -> bool:
    """Whether a JSON document is a report of iperf3."""
    return isinstance(document, dict) and "start" in document and ("end" in document or "error" in document)


def path(document: Mapping[str, Any]) -> Path:
    """Return the path of a report. Raises BadInput, without the name of the file."""
    if "error" in document:
        raise BadInput(f"iperf3 ended with an error: {json.dumps(document['error'])[:80]}")
    end, start = _table(document.get("end"), "end"), _table(document.get("start"), "start")
    test = _table(start.get("test_start"), "start.test_start")
    protocol = test.get("protocol")
    if protocol == "TCP":
        return _of_tcp(document, start, end)
    if protocol == "UDP":
        return _of_udp(end)
    raise BadInput(f"start.test_start.protocol = {json.dumps(protocol)[:40]}: must be TCP or UDP")


def _of_tcp(document: Mapping[str, Any], start: Mapping[str, Any], end: Mapping[str, Any]) -> Path:
    sent, received = (
        _table(end.get("sum_sent"), "end.sum_sent"),
        _table(end.get("sum_received"), "end.sum_received"),
    )
    streams = [_table(stream.get("sender"), "end.streams.sender") for stream in _streams(end)]
    mss = _number(start.get("tcp_mss_default"), "start.tcp_mss_default", least=1)
    packets = math.ceil(_number(sent.get("bytes"), "end.sum_sent.bytes", least=1) / mss)
    if sent.get("retransmits") is None:
        raise BadInput(
            "end.sum_sent has no retransmits: its sender does not count them (iperf3 on Linux does)"
        )
    resent = int(_number(sent["retransmits"], "end.sum_sent.retransmits"))
    least_us = min((_number(s.get("min_rtt"), "min_rtt") for s in streams if s.get("min_rtt")), default=0.0)
    most_us = max((_number(s.get("max_rtt"), "max_rtt") for s in streams if s.get("max_rtt")), default=0.0)
    factor = (mss + _HEADERS_BYTES) / mss / 1e6
    mean = factor * _number(received.get("bits_per_second"), "end.sum_received.bits_per_second", least=1)
    rates = [factor * rate for rate in _rates(document)]
    fastest = max([mean, *rates])
    was_full = least_us > 0 and most_us > _FULL * least_us and len(rates) > 1
    notes = ["A packet counts as lost that was sent again: some of them had come."]
    if not was_full:
        notes.append("Its rate is what TCP reached: the path may be faster.")
    return Path(
        form="iperf3, TCP",
        rtt_ms=Estimate(least_us / 1e3, least_us / 2e3, least_us / 1e3) if least_us else None,
        bandwidth_mbps=_rate(rates, fastest) if was_full else Estimate(fastest, mean, math.inf),
        loss=counted(min(resent, packets), packets + resent),
        packets=packets + resent,
        lost=resent,
        lasts_s=_number(sent.get("seconds"), "end.sum_sent.seconds"),
        notes=tuple(notes),
    )


def _rate(rates: list[float], fastest: float) -> Estimate:
    low, value = np.quantile(rates, [0.25, 0.75])
    return Estimate(float(value), float(low), max(fastest, float(value)))


def _of_udp(end: Mapping[str, Any]) -> Path:
    total = _table(end.get("sum_received") or end.get("sum"), "end.sum")
    packets = int(_number(total.get("packets"), "end.sum.packets", least=1))
    lost = int(_number(total.get("lost_packets"), "end.sum.lost_packets"))
    if lost > packets:
        raise BadInput(f"end.sum: {lost} of {packets} packets were lost: must not be more than all")
    rate = _number(total.get("bits_per_second"), "end.sum.bits_per_second", least=1) / 1e6
    came = rate * (1 - lost / packets) if "sum_received" not in end else rate
    notes = ["UDP may have been sent faster than the path is: what a full queue lost is among the losses."]
    sent = end.get("sum_sent")
    all_sent = sent.get("packets", 0) if isinstance(sent, dict) else 0
    behind = int(_number(all_sent, "end.sum_sent.packets")) - packets
    if behind > 0:
        notes.append(f"{behind} packets were sent behind the last that came, and are left out.")
    return Path(
        form="iperf3, UDP",
        bandwidth_mbps=Estimate(came, came, math.inf) if came > 0 else None,
        loss=counted(lost, packets),
        packets=packets,
        lost=lost,
        lasts_s=_number(total.get("seconds"), "end.sum.seconds"),
        notes=tuple(notes),
    )


def _rates(document: Mapping[str, Any]) -> Iterator[float]:
    """The rates (bit/s) of intervals, without the first, in which the window grows."""
    intervals = document.get("intervals")
    for interval in intervals[1:] if isinstance(intervals, list) else ():
        total = interval.get("sum") if isinstance(interval, dict) else None
        if isinstance(total, dict) and not total.get("omitted"):
            yield _number(total.get("bits_per_second"), "intervals.sum.bits_per_second")


def _streams(end: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    streams = end.get("streams")
    for stream in streams if isinstance(streams, list) else ():
        yield _table(stream, "end.streams")


def _table(value: Any, name: str) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise BadInput(f"{name}: is missing: is it a whole report of iperf3 -J?")
    return value


def _number(value: Any, name: str, least: float = 0.0) -> float:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number or not least <= value < _MOST:
        raise BadInput(f"{name} = {json.dumps(value)[:40]}: must be a number, {least:g} or more")
    return float(value)
