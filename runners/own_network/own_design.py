"""A design of the networks that a path may be: points drawn by the planner within its intervals.

Parameters that the recording leaves open are drawn, too: the limit of the queue, a rate above the greatest
that was seen, and how many packets are lost in a row.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from fecbench.runners.paths import LONGEST, Estimate

if TYPE_CHECKING:
    from fecbench.designs import Design
    from fecbench.results.advice import CongestionControl
    from fecbench.runners.paths import Path

POINTS, REPETITIONS = 16, 20
PAIRS = POINTS * REPETITIONS
"""Number of pairs: as many as an interval of the 95th percentile needs (`intervals.FEWEST_OF_TAIL`)."""
LONGEST_BYTES = 20_000_000
"""Longer downloads are not run: each takes seconds, and FEC saves one round trip of many."""
QUEUE_BDP = Estimate(1.0, 0.25, 4.0)
BURST = Estimate(1.0, 1.0, LONGEST)
"""Lengths of bursts where the recording does not say them."""
FASTER = 4.0
"""Greatest rate that is drawn if the path may be faster, in times of the greatest that was seen."""
LABELS: dict[CongestionControl, str] = {"cubic": "Cubic", "bbr3": "BBRv3"}
NONE = "no FEC"
CONTROLLERS = ("safe", "tail")
_NAMED = "own-network"
TIMEOUT_S = 600
"""A download that has not ended by then is given up."""
_HALF_RTT = 0.5


def label(congestion_control: CongestionControl, controller: str) -> str:
    """Return the label of an arm; `controller` may be NONE."""
    return f"{LABELS[congestion_control]}, {controller}"


def design_of(path: Path, size_bytes: int) -> Design:
    """Return the design of a path that has a round-trip time, a rate and losses.

    Raises DesignError for what no design can have.
    """
    from fecbench import designs
    from fecbench.designs.ranges import divided, factor, nested

    estimates = _estimates(path)
    varied, fixed = divided({name: (estimate.low, estimate.high) for name, estimate in estimates.items()})
    identity = [f"{name} {estimate}" for name, estimate in sorted(estimates.items())]
    tables: dict[str, Any] = {
        "base": None,
        "without": None,
        "name": _NAMED,
        "title": "Does FEC help in your network?",
        "question": "In this network, does FEC shorten a download, and which congestion control does?",
        "seed": designs.seed(2026, _NAMED, f"{size_bytes} bytes", *identity) >> 1,
        "repetitions": REPETITIONS if varied else PAIRS,
        "timeout_s": TIMEOUT_S,
        "plan": {"method": "sobol", "points": POINTS} if varied else None,
        "factors": nested({name: factor(ends) for name, ends in varied.items()}) if varied else None,
        "constants": nested({**fixed, "loss.model": model_of(path), "option.controller": "constant"}),
        "workloads": [{"name": "download", "size_bytes": size_bytes}],
        "variants": list(_variants()),
    }
    return designs.rewritten(designs.load(designs.catalogue()["never-harms"]), **tables)


def _estimates(path: Path) -> dict[str, Estimate]:
    """The parameters of a path as a design names them."""
    assert path.rtt_ms is not None and path.bandwidth_mbps is not None and path.loss is not None
    rate = path.bandwidth_mbps
    rtt = path.rtt_ms
    owd = Estimate(_HALF_RTT * rtt.value, _HALF_RTT * rtt.low, _HALF_RTT * rtt.high)
    most = rate.high if math.isfinite(rate.high) else FASTER * rate.value
    return {
        "bandwidth_mbps": Estimate(rate.value, rate.low, most),
        "owd_ms": owd,
        "queue_bdp": path.queue_bdp or QUEUE_BDP,
        **loss_parameters(path),
    }


def model_of(path: Path) -> str:
    """Return the loss model that fits the losses of a path."""
    assert path.loss is not None
    if path.loss.high == 0:
        return "none"
    if path.ends == "time":
        return "ge-time"
    return "uniform" if _is_single(path) else "markov"


def _is_single(path: Path) -> bool:
    """Whether losses come one by one, whatever else the interval allows."""
    assert path.loss is not None
    burst = path.burst or BURST
    return burst.high <= 1 / (1 - path.loss.value) * (1 + 1e-6)


def loss_parameters(path: Path) -> dict[str, Estimate]:
    """Return the parameters of that model, as a design names them."""
    assert path.loss is not None
    loss, model = path.loss, model_of(path)
    if model == "none":
        return {}
    if model == "ge-time":
        assert path.burst_s is not None
        return {"loss.rate": loss, "loss.bad_s": path.burst_s}
    # A recording without a loss bounds how many bursts begin, whatever their length.
    begins = Estimate(0.0, 0.0, loss.high / LONGEST) if path.is_lossless else loss
    if model == "uniform":
        return {"loss.p": begins}
    burst = path.burst or BURST
    if path.is_lossless:
        return {"loss.p": begins, "loss.r": Estimate(1 / burst.value, 1 / burst.high, 1 / burst.low)}
    return {"loss.rate": loss, "loss.burst": burst}


def _variants() -> list[dict[str, Any]]:
    variants = list[dict[str, Any]]()
    for congestion_control in LABELS:
        for controller in (NONE, *CONTROLLERS):
            options = (
                {"scheme": "none"} if controller == NONE else {"scheme": "rlc", "controller": controller}
            )
            baseline: bool | str = label(congestion_control, NONE)
            if controller == NONE:
                baseline = congestion_control == "cubic"
            variants.append(
                {
                    "label": label(congestion_control, controller),
                    "implementation": "noq-fec",
                    "options": {**options, "congestion_control": congestion_control},
                    **({"baseline": baseline} if baseline else {}),
                }
            )
    return variants
