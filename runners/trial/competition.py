"""Two transfers that share a link: when the first one has filled it.

The link is full when it has carried FULL_SHARE of what its rate allows for FULL_RTTS round-trip times. That
is long enough for a transfer to have left its slow start, in which it doubles its window each round trip
until the queue overflows. It is judged by the bytes that left the link, as the kernel counts them behind it,
so it is the same for every implementation and both backends of the link.
"""

import time
from collections import deque
from collections.abc import Callable, Sequence

from fecbench.runners.tasks.outcome import Competition
from fecbench.runners.tasks.task import Task
from fecbench.runners.trial.supervisor import Supervisor
from fecbench.topologies.link import LinkSettings

FULL_SHARE = 0.95
FULL_RTTS = 10
# The counters are read this often while the link fills.
INTERVAL_S = 0.02
_READING = "counters of clients"


def window_s(link: LinkSettings) -> float:
    """Return how long a link has to be full."""
    return FULL_RTTS * max(1e-3 * link.rtt_ms, INTERVAL_S)


class Filling:
    """Watches the bytes that a link carries downwards until it is full, by the same rule as `lane_is_full` of
    quic-impls/lane. A trace begins with the measured client: while a link fills, it has its constants.

    It knows no clock but the times that it is given.
    """

    def __init__(self, link: LinkSettings) -> None:
        self._window_ns = round(1e9 * window_s(link))
        self._full_bytes_per_s = FULL_SHARE * link.down.rate_bps / 8
        self._readings: deque[tuple[int, int]] = deque()

    def is_full(self, now: float, carried_bytes: int) -> bool:
        """Whether the link is full at `now`, in s, when it has carried so many bytes since it was made."""
        now_ns = round(1e9 * now)
        self._readings.append((now_ns, carried_bytes))
        while len(self._readings) > 1 and self._readings[1][0] + self._window_ns <= now_ns:
            self._readings.popleft()
        begun_ns, carried_before = self._readings[0]
        full_bytes = self._full_bytes_per_s * ((now_ns - begun_ns) / 1e9)
        return now_ns - begun_ns >= self._window_ns and carried_bytes - carried_before >= full_bytes


class Clients:
    """Counters of the bytes that come in at each client, the foreground's first. They are read every
    INTERVAL_S until anything comes in there: when its transfer began, is only known when it ends."""

    def __init__(self, received_bytes: Sequence[Callable[[], int]], supervisor: Supervisor) -> None:
        self._received_bytes, self._supervisor = received_bytes, supervisor
        self._readings: list[tuple[float, list[int]]] = []
        self.read()

    def read(self) -> None:
        """Read the counters of all clients."""
        now, counts = time.monotonic(), [received() for received in self._received_bytes]
        self._readings.append((now, counts))
        is_before = counts[0] == self._readings[0][1][0]
        self._supervisor.set_alarm(_READING, now + INTERVAL_S if is_before else None, self.read)

    def rates_mbps(self, lasted_s: float) -> tuple[float, list[float]]:
        """Return the time before the last reading, of `lasted_s` or since the first one, and the rates in it.
        Between two readings, bytes come evenly."""
        ended_s, counts = self._readings[-1]
        begun_s = self._readings[0][0]
        if lasted_s > 0:  # an impossible report fails the trial
            begun_s = max(begun_s, ended_s - lasted_s)
        place = max(n for n, (at_s, _) in enumerate(self._readings[:-1]) if at_s <= begun_s)
        (at_s, before), (next_s, after) = self._readings[place : place + 2]
        share = (begun_s - at_s) / (next_s - at_s)
        rates = [
            8e-6 * (now - (1 - share) * first - share * second) / (ended_s - begun_s)
            for now, first, second in zip(counts, before, after, strict=True)
        ]
        return ended_s - begun_s, rates


def metrics(task: Task, competition: Competition) -> dict[str, float]:
    """Return the metrics of two transfers that shared a link, by their names.

    A rate is of the time that the foreground took, which is another with each variant: the background may
    lack more bytes, and have a higher rate. So there are the bytes, too, where the link has one rate, nobody
    else takes a part of it, and a background fills it all the time.
    """
    measured: dict[str, float] = competition.model_dump(exclude_none=True, exclude={"lasted_s"})
    lasted_s, mbps = competition.lasted_s, competition.background_mbps
    (shared,) = task.links.values()  # a topology of several pairs has no other link
    _, *backgrounds = task.pairs
    is_full = any(pair.begins_s is None and pair.lasts_s is None for pair in backgrounds)
    rate_bps = shared.settings.down.steady_bps
    if is_full and lasted_s is not None and mbps is not None and rate_bps is not None:
        measured["taken_bytes"] = max(0.0, (rate_bps - 1e6 * mbps) * lasted_s / 8)
    return measured
