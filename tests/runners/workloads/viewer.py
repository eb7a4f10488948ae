"""A second player of DASH video, written apart from ours: it is fed with download times, and says what it
would have asked for.

It keeps no state between segments. For each it works out from all earlier arrivals what was shown by then.
"""

import numpy as np


def shown_until(arrivals: list[tuple[float, float]], start_segments: int, at_s: float, count: int) -> float:
    """Return how much of the video was shown at a time.

    `arrivals`: when each segment was whole, and the place in the video up to which it was there then;
    `count`: number of segments of the video.
    """
    first = min(start_segments, count) - 1
    if len(arrivals) <= first or arrivals[first][0] > at_s:
        return 0.0
    now, place = arrivals[first][0], 0.0
    there = arrivals[first][1]
    for result, end in [*arrivals[first + 1 :], (at_s, np.inf)]:
        until = min(result, at_s)
        place = min(there, place + max(0.0, until - now))
        now = max(now, until)
        if result > at_s:
            break
        there = end
    return place


def given_up_for(
    rates: list[float], segment_s: float, level: int, size: int, progress: list[tuple[int, float, float]]
) -> int | None:
    """The level for which a download is given up at the last of what was seen of it; None: it goes on.

    `seen`: the bytes that had come, when, and what the player held then.
    """
    first = progress[0][1]
    speeds = [
        8 * received / (at - first) / 1000 for received, at, hits in progress if hits <= 12 and at > first
    ]
    received, at, hits = progress[-1]
    if hits > 12 or at - first <= 0.5 or len(speeds) < 5 or level == 0:
        return None
    speed = float(np.mean(speeds))
    if size * 8 / 1000 / speed < 1.8 * segment_s:
        return None
    other = int(np.searchsorted(np.array(rates), 0.9 * speed, side="right")) - 1
    other = max(other, 0)
    return other if size - received > size * rates[other] / rates[level] else None


def level_of(
    rule: str,
    rates: list[float],
    segment_s: float,
    most_s: float,
    buffer_s: float,
    samples: list[float],
    before: list[int],
    buffers: list[float],
) -> int:
    """Return the level that a rule takes.

    `samples` are the rates of all earlier downloads, `buffers` the buffer at each earlier decision and at
    this one, `before` the levels that were taken.
    """
    kbps = np.array(rates)
    estimate = 0.0
    for number, sample in enumerate(samples):
        estimate = sample if number == 0 else 0.8 * estimate + 0.2 * sample

    def below(most: float) -> int:
        return max(0, int(np.searchsorted(kbps, most, side="right")) - 1)

    def bola(buffer: float) -> int:
        gain = np.log(kbps / kbps[0]) + 5.0
        scores = (gain * (max(2.0, most_s / segment_s) - 1) / gain[-1] - buffer / segment_s) / kbps
        return int(len(scores) - 1 - np.argmax(scores[::-1]))

    if rule == "throughput":
        return below(estimate)
    if rule == "bola":
        return bola(buffer_s)
    if rule == "fixed":
        return 0
    if rule == "buffer":
        if not before or buffer_s <= 0.375 * most_s:
            return 0
        if buffer_s >= 0.9 * most_s:
            return len(rates) - 1
        line = np.interp(buffer_s / most_s, [0.375, 0.9], [kbps[0], kbps[-1]])
        here, top = before[-1], len(rates) - 1
        if line >= kbps[min(here + 1, top)]:
            return int(np.flatnonzero(kbps < line).max(initial=0))
        if line <= kbps[max(here - 1, 0)]:
            above = np.flatnonzero(kbps > line)
            return int(above.min()) if above.size else top
        return here
    assert rule == "dynamic"
    by_buffer, progress = False, 0.0
    for number, buffer in enumerate(buffers):
        if number:
            sample = samples[number - 1]
            progress = sample if number == 1 else 0.8 * progress + 0.2 * sample
        of_rate, of_buffer = below(0.9 * progress), bola(buffer)
        if by_buffer:
            by_buffer = buffer >= 10 or of_buffer >= of_rate
        else:
            by_buffer = buffer >= 10 and of_buffer >= of_rate
    return of_buffer if by_buffer else of_rate
