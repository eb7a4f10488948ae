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

from fecbench.runners.paths import loss_estimate
from fecbench.runners.paths.packets import at_full_queue, noticed_wait_s, queue_bdp
from fecbench.runners.paths.path import Estimate, Path
from fecbench.runners.paths.probes import least

Floats = NDArray[np.float64]

FRAME_BYTES = 42
"""Headers of UDP, IPv4 and Ethernet, as an emulated link counts a frame."""
PROBE_BYTES, FULL_BYTES = 64 + FRAME_BYTES, 1200 + FRAME_BYTES
FEWEST_VOLLEYS = 5
Times = tuple[Floats, Floats]
"""Times at which the packets of a volley were sent, and came (NaN: never), by the clock of each end."""
_EVEN, _MOST = 1.2, 0.7
"""A volley is even with the others up to such a factor of the rate, where so great a share of them is."""
_OFTEN = 0.25
"""Share of volleys whose packets at one place meet a full queue, from which on all there do."""
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
    volleys: Sequence[Times] = field(default=())


def path_of(observed: Observed, round_trips_ms: Floats, direction: str) -> Path:
    """Return the path in one direction."""
    rates = [one for volley in observed.volleys if (one := _rate_mbps(*volley)) is not None]
    rate = _rate(rates)
    volleys = _even(observed.volleys)
    waits, lost, starts = _waits(volleys)
    rtt = least(round_trips_ms)
    noticed_s = noticed_wait_s(rtt.value / 1e3)
    full = at_full_queue(lost, waits, noticed_s) if lost.size else None
    queue = None
    if full is not None:
        queue = queue_bdp(waits, full & lost, rtt.value / 1e3)
        full = _in_all_volleys(full, starts)
    kept_packets = ~full if full is not None else np.ones(lost.size, dtype=np.bool_)
    follows = ~starts & np.concatenate(([False], kept_packets[:-1])) if lost.size else starts
    arrivals = [_met_s(came_s) for _, came_s in volleys if np.isfinite(came_s).any()]
    met_s = np.concatenate([np.empty(0), *arrivals])
    gaps_s = np.diff(observed.probe_at_s, prepend=-math.inf)
    fates_of_all = np.concatenate([observed.probe_lost, lost[kept_packets]])
    follow_all = np.concatenate([gaps_s < _PAUSE_S, follows[kept_packets]])
    at_s = np.concatenate([observed.probe_at_s, met_s[kept_packets]])
    fates = loss_estimate.estimated(fates_of_all, follow_all, at_s)
    at_full = int((lost & ~kept_packets).sum())
    return Path(
        form=f"probes and volleys, {direction}",
        rtt_ms=rtt,
        bandwidth_mbps=rate,
        loss=fates.loss if fates.burst_s is None else _clocked(fates.loss, fates.burst_s, follow_all, at_s),
        burst=fates.burst,
        queue_bdp=queue,
        ends=fates.ends,
        burst_s=fates.burst_s,
        packets=int(observed.probe_lost.size + kept_packets.sum()),
        lost=int(observed.probe_lost.sum() + lost[kept_packets].sum()),
        queue_losses=at_full,
        lasts_s=float(np.ptp(observed.probe_at_s)) if observed.probe_at_s.size else None,
    )


def longest_wait_ms(observed: Observed) -> float:
    """Return the longest wait of a packet of a volley behind those before it."""
    waits, lost, _ = _waits(_even(observed.volleys))
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


def _even(volleys: Sequence[Times]) -> Sequence[Times]:
    """Return the volleys that came at about the middle rate: in the others a host may have stalled, and
    packets came later than they left the queue. Where most differ, the path itself does: all of them."""
    rates = [_rate_mbps(*volley) for volley in volleys]
    known_rates = [rate for rate, _ in filter(None, rates)]
    if not known_rates:
        return volleys
    middle = float(np.median(known_rates))
    even = [
        volley
        for volley, rate in zip(volleys, rates, strict=True)
        if rate is not None and middle / _EVEN <= rate[0] <= middle * _EVEN
    ]
    return even if len(even) >= _MOST * len(known_rates) else volleys


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


def _waits(volleys: Sequence[Times]) -> tuple[Floats, NDArray[np.bool_], NDArray[np.bool_]]:
    """Return the waits of all packets of volleys in which any came; which were lost; and which are the first
    of a volley. The wait of a lost one is that of a queue which grows on as it did, up to the longest."""
    waits, lost, starts = [np.empty(0)], [np.empty(0, dtype=np.bool_)], [np.empty(0, dtype=np.bool_)]
    for sent_s, came_s in volleys:
        arrivals = np.isfinite(came_s)
        if not arrivals.any():
            continue
        late_s = _met_s(came_s) - sent_s
        waits.append(late_s - late_s[arrivals].min())
        lost.append(~arrivals)
        starts.append(np.arange(arrivals.size) == 0)
    all_waits, all_lost = np.concatenate(waits), np.concatenate(lost)
    if not all_lost.all():
        all_waits = np.clip(all_waits, 0.0, np.quantile(all_waits[~all_lost], _OUTLIERS))
    return all_waits, all_lost, np.concatenate(starts)


def _clocked(loss: Estimate, burst: Estimate, follows: NDArray[np.bool_], at_s: Floats) -> Estimate:
    """Return the share of losses that time ends, with an interval by how alike packets are that met the path
    after one another: by exp(−t / span), where the path has forgotten its state after the span."""
    from scipy.special import betaincinv  # scipy.stats, which has this distribution, loads far longer

    share = loss.value
    span_s = burst.value * (1 - share)
    alike, total = 0.0, 0.0
    for follow, gap_s in zip(follows.tolist(), np.diff(at_s, prepend=at_s[:1]).tolist(), strict=True):
        alike = (alike + 1) * math.exp(-max(gap_s, 0.0) / span_s) if follow else 0.0
        total += alike
    count = follows.size / (1 + 2 * total / follows.size)  # as many packets as if none were alike
    low, high = betaincinv(count * share + 0.5, count * (1 - share) + 0.5, [0.025, 0.975])
    return Estimate(share, min(float(low), share), max(float(high), share))


def _in_all_volleys(full: NDArray[np.bool_], starts: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Return which packets met a full queue, with those at whose place in a volley many others did: what was
    lost of a volley does not decide which of its packets are left out."""
    begins = np.maximum.accumulate(np.where(starts, np.arange(starts.size), 0))
    places = np.arange(starts.size) - begins
    share = np.bincount(places, full) / np.bincount(places)
    return full | (share > _OFTEN)[places]


def _met_s(came_s: Floats) -> Floats:
    """Return when each packet of a volley met the losses, behind the slowest link: lost ones between those
    that came, and as far apart."""
    arrivals = np.isfinite(came_s)
    places = np.arange(arrivals.size, dtype=np.float64)
    first, last = places[arrivals][0], places[arrivals][-1]
    gap_s = float(came_s[arrivals][-1] - came_s[arrivals][0]) / max(1.0, last - first)
    met_s: Floats = np.interp(places, places[arrivals], came_s[arrivals])
    met_s += gap_s * (np.maximum(0.0, places - last) - np.maximum(0.0, first - places))
    return met_s
