"""The output of `ping`: that of iputils, of BSD and macOS, or of busybox.

Lost are numbers that have no answer, up to the count of its summary; without a summary, of a ping that was
killed, up to the last one that was answered. Refuses outputs whose summary has other numbers than its lines.
Probes are taken for evenly apart: by the time of the summary, or by that of answers (`ping -D`).
"""

import math
import re

from fecbench.errors import BadInput
from fecbench.runners.paths.path import Path
from fecbench.runners.paths.probes import Probe, path_of

MOST_PROBES = 10_000_000
_BEGIN = re.compile(r"^PING (\S{1,255})", re.MULTILINE)
_ANSWER = re.compile(
    r"^(?:\[([0-9.]+)\] )?[0-9]+ bytes from .*?\b(?:icmp_)?seq=([0-9]{1,9})\b"
    r".*?\btime[=<]([0-9.]+) ?(ms|s|us)\b",
    re.MULTILINE,
)
_SUMMARY = re.compile(r"^([0-9]{1,9}) packets transmitted, ([0-9]{1,9}) (?:packets )?received", re.MULTILINE)
_LASTED = re.compile(r"packet loss, time ([0-9]{1,12})ms")
_HALF = 1 << 15
"""Half of the numbers that answers can have, in 16 bits."""
_UNIT_MS = {"ms": 1.0, "s": 1e3, "us": 1e-3}


def is_ping(start: str) -> bool:
    """Whether a text that begins so is the output of ping."""
    return _BEGIN.search(start) is not None


def path(text: str) -> Path:
    """Return the path of an output of ping. Raises BadInput, without the name of the file."""
    begins = _BEGIN.findall(text)
    if len(begins) > 1:
        raise BadInput(f"has the outputs of {len(begins)} pings: must have one")
    answers: dict[int, float] = {}
    times: dict[int, float] = {}
    last = 0
    for at, sequence, time, unit in _ANSWER.findall(text):
        # The nearest number that ends with these 16 bits: an answer may be late when they begin again.
        number = max(int(sequence), last + (int(sequence) - last + _HALF) % (2 * _HALF) - _HALF)
        rtt_ms = _milliseconds(time, unit)
        answers.setdefault(number, rtt_ms)  # a second answer comes later
        if at:
            times.setdefault(number, _number(at) - rtt_ms / 1e3)
        last = max(last, number)
    if not answers:
        raise BadInput("has no answer with a time")
    summary = _SUMMARY.search(text)
    counts_from_zero = summary is not None and "packets received" in text  # iputils alone counts from 1
    first = 0 if 0 in answers or counts_from_zero else 1
    count = max(answers) - first + 1
    notes = (
        ["It has no summary: what was sent after the last answer is not known."] if summary is None else []
    )
    if summary is not None:
        sent, received = int(summary[1]), int(summary[2])
        if received != len(answers) or sent < count:
            raise BadInput(
                f"its summary has {sent} sent and {received} received, and its lines have {len(answers)}"
                f" answers and numbers up to {max(answers)}: lines are missing (ping -q has none)"
            )
        count = sent
    if count > MOST_PROBES:
        raise BadInput(f"has numbers up to {count}: more than {MOST_PROBES} probes")
    apart_s = _apart_s(_LASTED.search(text), count, times)
    probes = [
        Probe((number - first) * apart_s, answers.get(number)) for number in range(first, first + count)
    ]
    return path_of(probes, "ping", begins[0], notes)


def _apart_s(lasted: re.Match[str] | None, count: int, times_s: dict[int, float]) -> float:
    """Return how far probes are apart; NaN: not known."""
    if lasted is not None:
        return int(lasted[1]) / 1e3 / max(1, count - 1)
    if len(times_s) < 2:
        return math.nan
    first, last = min(times_s), max(times_s)
    return max(0.0, times_s[last] - times_s[first]) / (last - first)


def _milliseconds(text: str, unit: str) -> float:
    return _number(text) * _UNIT_MS[unit]


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise BadInput(f"{text[:40]!r}: must be a time") from None
