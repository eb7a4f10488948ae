"""The path of packets of which a recording has the course: when they were sent, and when they came.

- **Round-trip time**: the least. It has the time in which one packet is sent in it, so the interval begins
  that much lower.
- **Rate**: while packets wait in a queue, they leave it at the rate of the path. Without such times, the
  fastest that was seen is a lower bound.
- **Losses**: where the queue is full, packets are lost to it, and the path is not to blame. If many more are
  lost there than elsewhere, losses are counted where the queue is not full.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fecbench.dropper.recordings.course import Course
from fecbench.dropper.recordings.recording import Recording
from fecbench.runners.paths import loss_estimate
from fecbench.runners.paths.path import Estimate, Path

Floats = NDArray[np.float64]
Verdicts = NDArray[np.bool_]

HEADERS_BYTES = 28
"""Headers of IPv4 and UDP."""
_FULL, _TIMES_MORE = 0.8, 2.0
"""A queue is full from this share of its longest delay on, where so many times more packets are lost than
elsewhere."""
_IN_A_ROW, _BY_CHANCE = 5.0, 3.0
"""Losses that make one event at most, and how far beyond the expected number is no chance, in standard
deviations."""
_BURSTS = 3
"""Bursts of losses that may meet the longest queue by chance, however long each is."""
_WAITING, _LEAST_WAIT_S = 0.1, 0.002
"""A packet waits in a queue whose delay is above this share of the least round-trip time."""
_OUTLIERS = 0.99
"""Quantile of waits beyond which they are the hosts' own."""
_FEWEST_WAITING = 30
_FASTER = 1.3
"""If packets came so much faster at any time, those that were late were not late by a queue. By so much the
times of ACKs may mislead."""
_ROUND_TRIPS = 4
"""A rate is of so many of them."""
_FEWEST_OF_RATE = 10


@dataclass(frozen=True)
class _Measured:
    """The packets of a course, in the order in which they were sent."""

    lost: Verdicts
    course: Course
    least_s: float
    """The least time from sending to the coming or the ACK, by the clocks of the recording."""
    wait_s: Floats
    """Waits in the queue, one for each known packet."""
    bytes: Floats
    """Bytes of each packet, with headers."""

    @property
    def rtt_s(self) -> float:
        """The least round-trip time; NaN: not known."""
        return self.least_s if self.course.is_of_acks else self.course.least_rtt_s

    @property
    def longest_unnoticed_s(self) -> float:
        """Longest lateness of a packet without a queue."""
        return noticed_wait_s(self.rtt_s)


def noticed_wait_s(rtt_s: float) -> float:
    """Return from which wait on a packet surely waited in a queue; `rtt_s` may be NaN."""
    return max(_LEAST_WAIT_S, _WAITING * rtt_s if math.isfinite(rtt_s) else 0.0)


def path_of(recording: Recording, form: str) -> Path:
    """Return the path of a recording; without a course, losses alone."""
    course, lost = recording.course, recording.lost
    known: dict[str, Any] = {"form": form, "source": recording.source, "notes": recording.notes}
    delays = None if course is None else _delays(course)
    if course is None or delays is None or np.isfinite(delays).sum() < 2:
        return _with_losses(known, lost, None, None)
    measured = _measured(lost, course, delays)
    rate = _rate_mbps(measured)
    known["lasts_s"] = float(course.sent_s[-1] - course.sent_s[0])
    known["rtt_ms"] = _rtt_ms(measured, rate)
    known["bandwidth_mbps"] = rate
    full = _at_full_queue(measured)
    if full is not None:
        known["queue_losses"] = int((lost & full).sum())
        rtt_s = known["rtt_ms"].value / 1e3 if known["rtt_ms"] else measured.least_s
        known["queue_bdp"] = queue_bdp(measured.wait_s, full & measured.lost, rtt_s)
    at_s = course.sent_s if rate is None else _left_s(measured, rate.value)
    return _with_losses(known, lost, full, at_s)


def _with_losses(known: dict[str, Any], lost: Verdicts, full: Verdicts | None, at_s: Floats | None) -> Path:
    kept = np.ones(lost.size, dtype=np.bool_) if full is None else ~full
    places = np.flatnonzero(kept)
    follows = np.diff(places, prepend=-2) == 1
    found = loss_estimate.estimated(lost[kept], follows, None if at_s is None else at_s[kept])
    return Path(
        **known,
        loss=found.loss,
        burst=found.burst,
        ends=found.ends,
        burst_s=found.burst_s,
        packets=int(kept.sum()),
        lost=int(lost[kept].sum()),
    )


def _delays(course: Course) -> Floats:
    """The time from the sending of each packet to its coming or to its ACK; NaN: not known."""
    return course.rtt_s if course.is_of_acks else course.came_s - course.sent_s


def _measured(lost: Verdicts, course: Course, delays: Floats) -> _Measured:
    is_known = np.isfinite(delays)
    least_s = float(delays[is_known].min())
    places = np.arange(lost.size, dtype=np.float64)
    waits_s = delays[is_known] - least_s
    waits_s = np.minimum(waits_s, np.quantile(waits_s, _OUTLIERS))
    wait_s = np.interp(places, places[is_known], waits_s)
    sizes = np.where(np.isfinite(course.sizes_bytes), course.sizes_bytes, math.nan)
    return _Measured(lost, course, least_s, wait_s, sizes + HEADERS_BYTES)


def _rtt_ms(measured: _Measured, rate: Estimate | None) -> Estimate | None:
    rtt_s = measured.rtt_s
    if not (math.isfinite(rtt_s) and rtt_s > 0):
        return None
    sending_s = 0.0
    if rate is not None and np.isfinite(measured.bytes).any():
        sending_s = 2 * float(np.nanmax(measured.bytes)) * 8 / (1e6 * rate.value)
    return Estimate(1e3 * rtt_s, 1e3 * max(rtt_s - sending_s, rtt_s / 2), 1e3 * rtt_s)


# The rate


def _rate_mbps(measured: _Measured) -> Estimate | None:
    """The rate of the path; without an upper bound where the path was never full."""
    fastest = _fastest_mbps(measured)
    if fastest is None:
        return None
    rates = _rates_when_waiting(measured)
    if not rates.size or np.median(rates) * _FASTER < fastest:
        return Estimate(fastest, fastest / (_FASTER if measured.course.is_of_acks else 1), math.inf)
    value = float(np.median(rates))
    low, high = np.quantile(rates, [0.05, 0.95])
    # A window of n packets may have one more or less.
    spread = 1 / _FEWEST_WAITING
    return Estimate(value, min(float(low), value * (1 - spread)), max(float(high), value * (1 + spread)))


def _window_s(measured: _Measured) -> float:
    rtt_s = measured.rtt_s
    return max(rtt_s if math.isfinite(rtt_s) else 0.1, 0.01)


def _fastest_mbps(measured: _Measured) -> float | None:
    """The most that came in some round-trip times. Where ACKs are lost, one may speak for many packets."""
    came = np.isfinite(measured.course.came_s) & np.isfinite(measured.bytes)
    received = measured.course.received
    arrivals = np.column_stack([measured.course.came_s[came], measured.bytes[came]])
    if received.size and received[:, 1].sum() > arrivals[:, 1].sum():
        arrivals = received + np.array([0, HEADERS_BYTES])
    if len(arrivals) < _FEWEST_OF_RATE:
        return None
    arrivals = arrivals[np.argsort(arrivals[:, 0], kind="stable")]
    times, total = arrivals[:, 0], np.concatenate(([0.0], np.cumsum(arrivals[:, 1])))
    window_s = min(_ROUND_TRIPS * _window_s(measured), max(times[-1] - times[0], 1e-3))
    # Packets at the beginning of a window came before it: an ACK may be of many packets.
    begins = np.searchsorted(times, times, side="right")
    ends = np.searchsorted(times, times + window_s, side="right")
    return float((total[ends] - total[begins]).max() * 8 / window_s / 1e6) or None


def _rates_when_waiting(measured: _Measured) -> Floats:
    """The rates (Mbit/s) of windows in which each packet waited in the queue."""
    course = measured.course
    waits = measured.wait_s > measured.longest_unnoticed_s
    full = _at_full_queue(measured)
    used = measured.bytes * ~(measured.lost & full) if full is not None else measured.bytes
    total = np.cumsum(np.nan_to_num(used))
    edges = np.flatnonzero(np.diff(np.concatenate(([0], waits.astype(np.int8), [0]))))
    window_s, rates = _window_s(measured), list[float]()
    for begin, end in zip(edges[::2], edges[1::2], strict=True):
        places = np.arange(begin, end)
        places = places[np.isfinite(_delays(course)[places])]  # the last of an ACK: it did not wait for it
        if places.size < 2:
            continue
        at = 0
        while at < places.size - 1:
            later = course.came_s[places] >= course.came_s[places[at]] + window_s
            later &= places >= places[at] + _FEWEST_WAITING
            later[: at + 1] = False
            if not later.any():
                break
            to = int(np.argmax(later))
            took_s = course.came_s[places[to]] - course.came_s[places[at]]
            rates.append(float((total[places[to]] - total[places[at]]) * 8 / took_s / 1e6))
            at = to
    return np.array(rates)


def _left_s(measured: _Measured, rate_mbps: float) -> Floats:
    """Return when each packet left the queue: packets that are sent at once meet losses one after another."""
    took_s = np.nan_to_num(measured.bytes, nan=0.0) * 8 / (1e6 * rate_mbps)
    # left = max(sent, left of the one before) + took, without a loop.
    sent_before = np.concatenate(([0.0], np.cumsum(took_s)[:-1]))
    left: Floats = np.maximum.accumulate(measured.course.sent_s - sent_before) + np.cumsum(took_s)
    return left


# The queue


def _at_full_queue(measured: _Measured) -> Verdicts | None:
    return at_full_queue(measured.lost, measured.wait_s, measured.longest_unnoticed_s)


def at_full_queue(lost: Verdicts, wait_s: Floats, noticed_s: float) -> Verdicts | None:
    """Return which packets met a full queue; None: no queue loses packets, as far as can be told."""
    longest_s = float(wait_s.max())
    if longest_s <= noticed_s:
        return None
    full = wait_s >= _FULL * longest_s
    there, elsewhere = lost[full], lost[~full]
    if not elsewhere.size:
        return None
    expected = there.size * float(elsewhere.mean())
    chance = math.sqrt(_IN_A_ROW * expected + 1)
    is_more = there.sum() > max(_TIMES_MORE * expected, expected + _BY_CHANCE * chance)
    begins = lost & ~np.concatenate(([False], lost[:-1]))
    return full if is_more and begins[full].sum() > _BURSTS else None


def queue_bdp(wait_s: Floats, lost_there: Verdicts, rtt_s: float) -> Estimate:
    """Return the length of a queue that lost these packets."""
    longest_s, lowest_s = float(wait_s.max()), float(wait_s[lost_there].min())
    return Estimate(longest_s / rtt_s, lowest_s / rtt_s, 1.1 * longest_s / rtt_s)
