"""The path of probes that are answered, such as pings: round-trip times, and which were lost.

A probe is lost in either direction. So the share of one direction is between none of that and all of it; half
is its value. Where probes that are near each other are lost in a row, that takes time, in which a transfer
sends many packets. So time is taken to end these bursts. Other probes tell nothing of what is lost in a row.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fecbench.errors import BadInput
from fecbench.runners.paths import loss_estimate
from fecbench.runners.paths.path import Estimate, Path

FEWEST = 5
_NEAR_S = 0.025
"""Probes that are no farther apart tell of bursts."""
_WINDOWS = 10
_ENDPOINT = 19.0


@dataclass(frozen=True)
class Probe:
    """A probe, and its answer."""

    sent_s: float
    """NaN: not known."""
    rtt_ms: float | None
    """None: it was lost."""


def path_of(probes: Sequence[Probe], form: str, source: str = "", notes: Sequence[str] = ()) -> Path:
    """Return the path of probes, in the order in which they were sent. Raises BadInput for too few."""
    rtts = np.array([probe.rtt_ms for probe in probes if probe.rtt_ms is not None], dtype=np.float64)
    if len(probes) < FEWEST or rtts.size == 0:
        raise BadInput(
            f"has {len(probes)} probes and {rtts.size} answers: must have {FEWEST} probes or more, and an"
            " answer"
        )
    lost = np.array([probe.rtt_ms is None for probe in probes])
    losses = loss_estimate.estimated(lost)
    both_ways = losses.loss
    sent_s = np.array([probe.sent_s for probe in probes])
    lasts_s = float(sent_s[-1] - sent_s[0])
    apart_s = float(np.median(np.diff(sent_s)))
    remarks = [*notes]
    burst_s = None
    if lost.any():
        remarks.append("A probe is lost in either direction: half of the losses are taken for each.")
        if apart_s <= _NEAR_S:
            burst_s = loss_estimate.lasting(losses, apart_s)
    if burst_s is not None:
        remarks.append(
            f"Probes are {1e3 * apart_s:.3g} ms apart, and {losses.burst.value:.3g} are lost in a row: that"
            " takes time, so time is taken to end a burst."
        )
    one_way = 1 - math.sqrt(1 - both_ways.value)
    return Path(
        form=form,
        source=source,
        rtt_ms=least(rtts),
        loss=Estimate(one_way, min(both_ways.low / 2, one_way), both_ways.high),
        ends="" if burst_s is None else "time",
        burst_s=burst_s,
        packets=len(probes),
        lost=int(lost.sum()),
        lasts_s=lasts_s if math.isfinite(lasts_s) else None,
        notes=tuple(remarks),
    )


def least(rtts: "np.typing.NDArray[np.float64]") -> Estimate:
    """Return the least round-trip time, and an interval of the bound that it has (Robson and Whitlock,
    "Estimation of a truncation point", Biometrika 1964), of the least of each of _WINDOWS windows."""
    windows = [window for window in np.array_split(rtts, _WINDOWS) if window.size]
    least = np.sort([float(window.min()) for window in windows])
    gap = float(least[1] - least[0]) if least.size > 1 else float(least[0])
    return Estimate(
        float(least[0]), max(float(least[0]) - _ENDPOINT * gap, float(least[0]) / 2), float(least[0])
    )
