"""The path of a campaign in the field, by direction: from probes that the server answered, and from volleys.

- **Rate**: packets of a volley come as far apart as the slowest link sends them. That is of packets that came
  one after another, so losses do not change it. Where they come no farther apart than they were sent, the
  path is as fast at least.
- **Queue**: a volley's packets wait for those before them. Where many more are lost behind the longest waits
  than elsewhere, the queue was full there: the longest wait is its length. Otherwise it is longer.
- **Losses**: of probes, which are 20 ms apart, and of volleys' packets that met no full queue, which are near
  each other. So they tell whether packets or time end a burst.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from fecbench.runners.paths import losses
from fecbench.runners.paths.packets import at_full_queue, noticed_wait_s, queue_bdp
from fecbench.runners.paths.path import Estimate, Path
from fecbench.runners.paths.probes import least

Floats = NDArray[np.float64]

FRAME_BYTES = 42
"""Headers of UDP, IPv4 and Ethernet, as an emulated link counts a frame."""
PROBE_BYTES, FULL_BYTES = 64 + FRAME_BYTES, 1200 + FRAME_BYTES
FEWEST_VOLLEYS = 5
_SLOWER = 1.3
"""Packets that come so much farther apart than they were sent were spread by the path."""
_FEWEST_GAPS = 10
_INEXACT = 0.01
"""Share by which clocks of arrival may be wrong over a volley."""
_OUTLIERS = 0.99
"""Quantile of waits beyond which they are the hosts' own."""
_PAUSE_S = 1.0
"""Probes that are farther apart do not follow one another."""


@dataclass(frozen=True, eq=False)
class Observed:
    """One direction of a path: what was sent over it, and what came."""

    probe_at_s: Floats
    probe_lost: NDArray[np.bool_]
    volleys: Sequence[tuple[Floats, Floats]] = field(default=())
    """Of each volley, when its packets were sent, and when they came (NaN: never), by the clock of each
    end."""


def path_of(observed: Observed, round_trips_ms: Floats, direction: str) -> Path:
    """Return the path in one direction."""
    rates = [rate for sent_s, came_s in observed.volleys if (rate := _rate_mbps(sent_s, came_s))]
    rate = _rate(rates)
    waits, lost, starts = _waits(observed.volleys)
    rtt = least(round_trips_ms)
    noticed_s = noticed_wait_s(rtt.value / 1e3)
    full = at_full_queue(lost, waits, noticed_s) if lost.size else None
    queue = None
    if full is not None and (full & lost).any():
        queue = queue_bdp(waits, full & lost, rtt.value / 1e3)
    kept = ~full if full is not None else np.ones(lost.size, dtype=np.bool_)
    follows = ~starts & np.concatenate(([False], kept[:-1])) if lost.size else starts
    gaps_s = np.diff(observed.probe_at_s, prepend=-math.inf)
    fates = losses.estimated(
        np.concatenate([observed.probe_lost, lost[kept]]),
        np.concatenate([gaps_s < _PAUSE_S, follows[kept]]),
        np.concatenate([observed.probe_at_s, _met_s(observed.volleys)[kept]]),
    )
    at_full = int((lost & ~kept).sum())
    return Path(
        form=f"probes and volleys, {direction}",
        rtt_ms=rtt,
        bandwidth_mbps=rate,
        loss=fates.loss,
        burst=fates.burst,
        queue_bdp=queue,
        ends=fates.ends,
        burst_s=fates.burst_s,
        packets=int(observed.probe_lost.size + kept.sum()),
        lost=int(observed.probe_lost.sum() + lost[kept].sum()),
        queue_losses=at_full,
        lasts_s=float(np.ptp(observed.probe_at_s)) if observed.probe_at_s.size else None,
    )


def longest_wait_ms(observed: Observed) -> float:
    """Return the longest wait of a packet of a volley behind those before it."""
    waits, lost, _ = _waits(observed.volleys)
    return 1e3 * float(waits[~lost].max()) if (~lost).any() else 0.0


def _rate_mbps(sent_s: Floats, came_s: Floats) -> tuple[float, bool] | None:
    """Return the rate of a volley, and whether the path spread it; None: too few packets came."""
    both = np.isfinite(came_s[1:]) & np.isfinite(came_s[:-1])
    if both.sum() < _FEWEST_GAPS:
        return None
    took_s = float(np.diff(came_s)[both].sum())
    were_s = float(np.diff(sent_s)[both].sum())
    rate = int(both.sum()) * FULL_BYTES * 8 / 1e6 / max(took_s, 1e-6)
    return rate, took_s > _SLOWER * were_s


def _rate(rates: Sequence[tuple[float, bool]]) -> Estimate | None:
    """Return the median of the volleys' rates, with its interval by their order."""
    if len(rates) < FEWEST_VOLLEYS:
        return None
    values = np.sort([rate for rate, _ in rates])
    value = float(np.median(values))
    if 2 * sum(is_spread for _, is_spread in rates) < len(rates):
        return Estimate(value, float(values[0]), math.inf)
    # The places between which the median is in 95 of 100 cases (Hollander and Wolfe, "Nonparametric
    # Statistical Methods", §3.6), by the normal approximation.
    reach = 1.96 * math.sqrt(len(values)) / 2
    low = max(0, math.floor(len(values) / 2 - reach))
    high = min(len(values) - 1, math.ceil(len(values) / 2 + reach))
    nearest, farthest = value * (1 - _INEXACT), value * (1 + _INEXACT)
    return Estimate(value, min(float(values[low]), nearest), max(float(values[high]), farthest))


def _waits(volleys: Sequence[tuple[Floats, Floats]]) -> tuple[Floats, NDArray[np.bool_], NDArray[np.bool_]]:
    """Return the waits of all packets of volleys in which any came, those of lost ones as their neighbours';
    which were lost; and which are the first of a volley."""
    waits, lost, starts = [np.empty(0)], [np.empty(0, dtype=np.bool_)], [np.empty(0, dtype=np.bool_)]
    for sent_s, came_s in volleys:
        came = np.isfinite(came_s)
        if not came.any():
            continue
        late_s = came_s[came] - sent_s[came]
        places = np.arange(came.size, dtype=np.float64)
        waits.append(np.interp(places, places[came], late_s - late_s.min()))
        lost.append(~came)
        starts.append(places == 0)
    all_waits = np.concatenate(waits)
    if all_waits.size:
        all_waits = np.minimum(all_waits, np.quantile(all_waits, _OUTLIERS))
    return all_waits, np.concatenate(lost), np.concatenate(starts)


def _met_s(volleys: Sequence[tuple[Floats, Floats]]) -> Floats:
    """Return when each packet met the losses: behind the slowest link, as far apart as the others came."""
    times = [np.empty(0)]
    for _, came_s in volleys:
        came = np.isfinite(came_s)
        if not came.any():
            continue
        places = np.arange(came.size, dtype=np.float64)
        gap_s = float(np.ptp(came_s[came])) / max(1.0, float(np.ptp(places[came])))
        met = np.interp(places, places[came], came_s[came])
        first, last = places[came][0], places[came][-1]
        met -= gap_s * np.maximum(0.0, first - places)
        met += gap_s * np.maximum(0.0, places - last)
        times.append(met)
    return np.concatenate(times)
