"""The output of `ping`: that of iputils, of BSD and macOS, or of busybox.

Lost are numbers that have no answer, up to the count of its summary; without a summary, of a ping that was
killed, up to the last one that was answered. Refuses outputs whose summary has other numbers than its lines.
"""

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
    last, wraps = -1, 0
    for at, sequence, time, unit in _ANSWER.findall(text):
        number = int(sequence) + wraps * 65536
        if last - number > 32768:  # the number has 16 bits
            wraps += 1
            number += 65536
        answers.setdefault(number, _milliseconds(time, unit))  # a second answer comes later
        if at:
            times[number] = _number(at)
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
    lasted = _LASTED.search(text)
    apart_s = int(lasted[1]) / 1e3 / max(1, count - 1) if lasted else float("nan")
    probes = [
        Probe(times.get(number, (number - first) * apart_s), answers.get(number))
        for number in range(first, first + count)
    ]
    return path_of(probes, "ping", begins[0], notes)


def _milliseconds(text: str, unit: str) -> float:
    return _number(text) * _UNIT_MS[unit]


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise BadInput(f"{text[:40]!r}: must be a time") from None
