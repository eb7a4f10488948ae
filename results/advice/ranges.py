"""The place of a network among those recorded: within their ranges, beyond them, or in a gap.

Losses are the gap. Networks without losses were recorded, and networks that lose a packet in 1,000 or more;
none that loses fewer. So were single losses, and bursts of 2 packets or more. A network in a gap is answered
from both of its sides. Packets end the bursts of all that were recorded: nothing is said of bursts that time
ends.
"""

from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from fecbench.results.advice.network import Network
from fecbench.results.advice.record import BURSTS, NO_LOSSES, SINGLE_LOSSES
from fecbench.results.advice.recorded_rows import Rows

Range = tuple[float, float]
FAR = 10.0
"""Factor beyond the ranges from which nothing can be said."""
_EDGE = 1.02  # so near to the last network of a range is as good as within: 100 Mbit/s beside 99.4


@dataclass(frozen=True)
class Standing:
    """The place of a network among those recorded."""

    kinds: tuple[str, ...]
    """The kinds of losses whose networks are asked: two or three for a network in a gap."""
    beyond: dict[str, Range] = field(default_factory=dict)
    """Parameters beyond the ranges, with the least and the greatest that were recorded."""
    between: dict[str, Range] = field(default_factory=dict)
    """Parameters in a gap, with the last that was recorded on either side."""
    far: tuple[str, ...] = ()
    """Parameters beyond by more than a factor of FAR, and bursts that time ends."""


def standing(network: Network, of_kinds: dict[str, Rows]) -> Standing:
    """Return the place of a network among the rows of each kind of losses."""
    kinds, between = _kinds(network, of_kinds)
    asked = [(kind, of_kinds[kind]) for kind in kinds]
    measured = {
        name: _range(np.concatenate([rows[name] for _, rows in asked]))
        for name in ("rtt_ms", "bandwidth_mbps", "queue_bdp", "size_bytes")
        if getattr(network, name) is not None
    }
    if network.loss > 0:
        ends = [_losses_at(network.burst, kind, rows) for kind, rows in asked]
        measured["loss"] = min(low for low, _ in ends), max(high for _, high in ends)
        if network.loss < measured["loss"][0] / _EDGE:
            between |= {"loss": (0.0, measured.pop("loss")[0])}
            kinds = (*kinds, NO_LOSSES)
    is_unlike = network.by_time and BURSTS in kinds
    if BURSTS in kinds and "burst" not in between and not is_unlike:
        measured["burst"] = _range(of_kinds[BURSTS]["burst"])
    factors = {name: _factor(name, getattr(network, name), *ends) for name, ends in measured.items()}
    far = [name for name, factor in factors.items() if factor > FAR]
    return Standing(
        kinds=kinds,
        beyond={name: measured[name] for name, factor in factors.items() if factor > _EDGE},
        between=between,
        far=tuple(far + ["burst"] * is_unlike),
    )


def within(network: Network, kind: str, rows: Rows) -> Network:
    """The network moved to the nearest edge of the rows of a kind of losses, where it is outside of them."""
    loss = 0.0 if kind == NO_LOSSES else _clipped(network.loss, *_losses_at(network.burst, kind, rows))
    bursts = {NO_LOSSES: 1.0, SINGLE_LOSSES: 1 / (1 - loss)}
    queue = network.queue_bdp
    return replace(
        network,
        rtt_ms=_clipped(network.rtt_ms, *_range(rows["rtt_ms"])),
        bandwidth_mbps=_clipped(network.bandwidth_mbps, *_range(rows["bandwidth_mbps"])),
        loss=loss,
        burst=bursts.get(kind, _clipped(network.burst, *_range(rows["burst"]))),
        queue_bdp=None if queue is None else _clipped(queue, *_range(rows["queue_bdp"])),
    )


def _kinds(network: Network, of_kinds: dict[str, Rows]) -> tuple[tuple[str, ...], dict[str, Range]]:
    """The kinds of losses that a network has, and the gap of bursts that it is in."""
    if network.loss == 0:
        return (NO_LOSSES,), {}
    longest_single, shortest_burst = of_kinds[SINGLE_LOSSES]["burst"].max(), of_kinds[BURSTS]["burst"].min()
    if network.burst <= longest_single * _EDGE:
        return (SINGLE_LOSSES,), {}
    if network.burst >= shortest_burst / _EDGE:
        return (BURSTS,), {}
    return (SINGLE_LOSSES, BURSTS), {"burst": (float(longest_single), float(shortest_burst))}


def _losses_at(burst: float, kind: str, rows: Rows) -> Range:
    """The least and the greatest share of losses that were recorded for bursts of this length. The designs
    vary how often a burst begins (p of Gilbert's model), so longer bursts lose more."""
    loss = rows["loss"]
    if kind == SINGLE_LOSSES:
        return _range(loss)
    begins = loss / ((1 - loss) * rows["burst"])
    in_a_row = _clipped(burst, *_range(rows["burst"]))
    low, high = (p * in_a_row / (1 + p * in_a_row) for p in _range(begins))
    return low, high


def _range(values: NDArray[np.float64]) -> Range:
    return float(values.min()), float(values.max())


def _clipped(value: float, low: float, high: float) -> float:
    return min(max(value, low), high)


def _factor(name: str, value: float, low: float, high: float) -> float:
    """Return how many times a value is beyond a range; 1 within. Shares are compared as odds, without end."""
    if name == "loss":
        value, low, high = (share / (1 - share) for share in (value, low, high))
    return max(low / value, value / high, 1.0)
