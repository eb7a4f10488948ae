"""The course of a recording: when each packet was sent, and when it came or was acknowledged."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Times = NDArray[np.float64]
Ranges = Sequence[tuple[int, int]]
_UNKNOWN = math.nan
_LAST_NUMBER = (1 << 62) - 1  # RFC 9000, §12.3


@dataclass(frozen=True, eq=False)
class Course:
    """Times (s) and sizes (bytes) of the packets of a recording, in the order of its losses.

    NaN: the recording does not say.
    """

    sent_s: Times
    sizes_bytes: Times
    """Size of a packet as the recording counts it: of QUIC, without the headers of UDP and IP."""
    came_s: Times
    """Time at which it came, by the receiver's clock; of a sender's log, that of the first ACK of it."""
    rtt_s: Times
    """Time from sending to the first ACK of it, where it was the last that the ACK acknowledged: the ACK may
    have waited with the others."""
    received: NDArray[np.float64]
    """Times and sizes (n × 2) of packets of the other direction, which the endpoint received."""
    is_of_acks: bool
    """Whether `came_s` are times of ACKs."""
    least_rtt_s: float = math.nan
    """The least round-trip time, where it is known by other means than `rtt_s`."""


def of_acknowledgements(
    sent: Sequence[int],
    sent_at: Sequence[tuple[float, int]],
    acks: Sequence[tuple[float, Ranges]],
    not_meant: int,
    received: Sequence[tuple[float, int]],
) -> Course:
    """Return the course of a sender's log.

    `sent`: the numbers of the packets; `sent_at`: the time and the size of each; `acks`: the time and the
    ranges of each ACK; `not_meant`: so many numbers at the end of a range are not meant.
    """
    numbers = np.array(sent, dtype=np.int64)
    order = np.argsort(numbers, kind="stable")
    in_order = numbers[order]
    times = np.array(sent_at, dtype=np.float64).reshape(-1, 2)
    came_s, rtt_s = np.full(len(numbers), _UNKNOWN), np.full(len(numbers), _UNKNOWN)
    known = frozenset[tuple[int, int]]()
    for at_s, spans in acks:
        largest = -1
        for first, last in spans:
            if (first, last) in known:
                continue
            last = min(last, _LAST_NUMBER)
            begin, end = np.searchsorted(in_order, (min(first, _LAST_NUMBER), last - not_meant + 1))
            places = order[begin:end]
            new = places[np.isnan(came_s[places])]
            if new.size:
                came_s[new] = at_s
                largest = max(largest, int(new[-1]))
        if largest >= 0:
            rtt_s[largest] = at_s - times[largest, 0]
        known = frozenset(spans)
    rtt_s[~(rtt_s > 0)] = _UNKNOWN
    return Course(
        sent_s=times[:, 0],
        sizes_bytes=np.where(times[:, 1] > 0, times[:, 1], _UNKNOWN),
        came_s=came_s,
        rtt_s=rtt_s,
        received=np.array(received, dtype=np.float64).reshape(-1, 2),
        is_of_acks=True,
    )
