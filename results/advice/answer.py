"""Advice for a network: which FEC to use, or none, or that nothing can be said."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from fecbench.results.advice import prediction
from fecbench.results.advice.likeness import Floats, nearest, places
from fecbench.results.advice.network import Network
from fecbench.results.advice.prediction import Interval
from fecbench.results.advice.ranges import Range, standing, within
from fecbench.results.advice.record import CONTROLLERS, RECORD, by_kind, margin_of
from fecbench.results.advice.recorded_rows import Rows
from fecbench.results.advice.student import two_sided_quantile
from fecbench.results.analysis import tolerances

if TYPE_CHECKING:
    import pandas as pd

Effect = Literal["shortens", "no gain", "open"]
Answer = Literal["use", "none", "nothing"]
_WORSE = ["harm", "undecided", "gain", "equivalent"]
"""A network has the first of these that is its verdict at any of several sizes."""


@dataclass(frozen=True)
class Candidate:
    """A controller, and what it does in networks like this one."""

    controller: str
    effect: Effect
    """"shortens": their mean is surely shorter, and by more than a mean in virtual time is vouched for, and
    of 100 such networks no more than 5 take longer by more than the margin. "no gain": no more than 5 take
    less by more than the margin. Else it is "open"."""
    prediction: Interval
    """The ratio of the time with FEC to that without, in 90 of 100 such networks."""
    ratio: float
    """Geometric mean of the ratio over the recorded networks near by."""
    interval: Interval
    """The interval of that mean, 95 %: it says nothing of a single network."""
    sizes_bytes: list[int]
    """The recorded sizes that this rests on: the one asked for, or the two beside it."""
    margins: list[float]
    """Differences by which networks are counted at these sizes: the tolerances of virtual time."""
    harmed: int
    """The number of networks near by in which it surely takes longer, beyond the margin, at any size."""
    undecided: int
    """The number of the others in which the trials do not decide whether it does."""
    helped: int
    """The number of the rest in which it surely takes less, by more than the margin, at any size."""
    decided: int
    """The number of all of them in which the trials decide."""


@dataclass(frozen=True)
class Advice:
    """Advice, and its reasons."""

    answer: Answer
    """Use FEC, or use none, or nothing can be said."""
    use: dict[str, str] | None
    """Options of noq-fec; None when nothing can be said."""
    ratio: float | None
    interval: Interval | None
    prediction: Interval | None
    """Numbers of the candidate that is advised. 1 for no FEC; None when nothing can be said."""
    networks: int
    """The number of recorded networks that it rests on."""
    outside: bool
    """Whether the network is outside of what was recorded."""
    beyond: dict[str, Range]
    """Parameters beyond the ranges, with the least and the greatest that were recorded."""
    between: dict[str, Range]
    """Parameters in a gap between recorded networks, with the last on either side."""
    far: list[str]
    """Parameters so far beyond the ranges that nothing can be said; "burst", too, where time ends bursts."""
    size_bytes: int
    """The recorded size next to the one asked for."""
    margin: float
    """Margin of differences at the size that is asked for, as a share."""
    candidates: list[Candidate]
    near: Rows
    """The rows of `nearest`."""

    @property
    def nearest(self) -> pd.DataFrame:
        """The recorded networks that it rests on, a row for each of them, each controller and each size."""
        return self.near.frame()

    def document(self) -> dict[str, Any]:
        named = {field.name: getattr(self, field.name) for field in fields(self) if field.name != "near"}
        return named | {"candidates": list(map(asdict, self.candidates))}


def advise(network: Network, record: pd.DataFrame | None = None) -> Advice:
    """Return what to use there: the first of CONTROLLERS that shortens downloads in the networks near by,
    unless another surely shortens them more. None where each of them surely has no gain. Else nothing can
    be said."""
    recorded = Rows.read(RECORD) if record is None else Rows.of(record)
    of_kinds = by_kind(recorded, network.congestion_control)
    found = standing(network, of_kinds)
    kinds = () if found.far else found.kinds
    parts = {
        controller: [_of_kind(network, kind, controller, of_kinds[kind]) for kind in kinds]
        for controller in CONTROLLERS.values()
    }
    candidates = [_candidate(controller, network, near) for controller, near in parts.items() if near]
    answer, best = _answer(candidates)
    use: dict[str, str] | None = None
    ratio, interval, predicted = None, None, None
    if best is not None:
        use = {"scheme": "rlc", "controller": best.controller}
        ratio, interval, predicted = best.ratio, best.interval, best.prediction
    elif answer == "none":
        use = {"scheme": "none"}
        ratio, interval, predicted = 1.0, (1.0, 1.0), (1.0, 1.0)
    near_rows = [part.rows for of_controller in parts.values() for part in of_controller]
    return Advice(
        answer=answer,
        use=use,
        ratio=ratio,
        interval=interval,
        prediction=predicted,
        networks=sum(len(part.logs) for part in next(iter(parts.values()))),
        outside=bool(found.beyond or found.between or found.far),
        beyond=found.beyond,
        between=found.between,
        far=list(found.far),
        size_bytes=_next_to(network.size_bytes, np.unique(recorded["size_bytes"]).tolist()),
        margin=margin_of(network.size_bytes),
        candidates=candidates,
        near=recorded.at(slice(0)).joined(near_rows),
    )


@dataclass(frozen=True)
class _Near:
    """The recorded networks near by of one kind of losses, with one controller."""

    rows: Rows
    """One for each network and each of the sizes."""
    logs: Floats
    """The logarithm of each network's ratio, at the size that is asked for."""
    prediction: Interval
    """Interval of logarithms."""
    sizes: list[int]


def _of_kind(network: Network, kind: str, controller: str, of_kind: Rows) -> _Near:
    by_queue = network.queue_bdp is not None
    moved = asdict(within(network, kind, of_kind))
    here = places(Rows({name: np.array([value]) for name, value in moved.items()}), by_queue=by_queue)
    rows = of_kind.at(of_kind["controller"] == controller)
    of_sizes = prediction.by_size(rows, by_queue=by_queue)
    sizes = _beside(network.size_bytes, sorted(of_sizes))
    recorded = rows.at(np.isin(rows["size_bytes"], sizes))
    of_both = recorded.at(np.bincount(recorded["network"])[recorded["network"]] == len(sizes))
    first = of_both.at(of_both["size_bytes"] == sizes[0])
    numbers = first["network"][nearest(here, places(first, by_queue=by_queue))]
    near = of_both.at(np.isin(of_both["network"], numbers))
    ratios = [_ratios(near.at(near["size_bytes"] == size), numbers) for size in sizes]
    logs = np.log(np.column_stack(ratios)) @ _weights(network.size_bytes, sizes)
    return _Near(near, logs, prediction.interval(here, of_sizes, sizes), sizes)


def _ratios(rows: Rows, numbers: NDArray[np.int64]) -> Floats:
    """Return the ratios of the networks of these numbers, in their order; each has one row."""
    ascending = np.argsort(rows["network"])
    places_of_numbers = ascending[np.searchsorted(rows["network"], numbers, sorter=ascending)]
    return rows["ratio"][places_of_numbers].astype(np.float64)


def _beside(size_bytes: float, recorded: Sequence[int]) -> list[int]:
    """The recorded size that is asked for, or the two beside it, or the last one where it is beyond all."""
    shorter, longer = (
        [size for size in recorded if is_on(size)] for is_on in (size_bytes.__ge__, size_bytes.__le__)
    )
    return sorted({*shorter[-1:], *longer[:1]})


def _weights(size_bytes: float, sizes: Sequence[int]) -> Floats:
    """Return the weight of each size: as near as it is in orders of magnitude."""
    if len(sizes) == 1:
        return np.ones(1)
    low, high = sizes
    share = math.log(size_bytes / low) / math.log(high / low)
    return np.array([1 - share, share])


def _next_to(size_bytes: float, sizes: Sequence[int]) -> int:
    return int(min(sizes, key=lambda size: abs(math.log(size / size_bytes))))


def _candidate(controller: str, network: Network, near: Sequence[_Near]) -> Candidate:
    logs = np.concatenate([part.logs for part in near])
    mean = float(logs.mean())
    half = float(logs.std(ddof=1) / math.sqrt(len(logs)) * two_sided_quantile(0.95, len(logs) - 1))
    interval = math.exp(mean - half), math.exp(mean + half)
    lows, highs = zip(*(part.prediction for part in near), strict=True)
    predicted = math.exp(min(lows)), math.exp(max(highs))
    sizes = sorted({size for part in near for size in part.sizes})
    worst = np.concatenate([_worst(part.rows) for part in near])
    harmed, undecided, helped = (int((worst == place).sum()) for place in range(3))
    return Candidate(
        controller=controller,
        effect=_effect(math.exp(mean), interval, predicted, margin_of(network.size_bytes)),
        prediction=predicted,
        ratio=math.exp(mean),
        interval=interval,
        sizes_bytes=sizes,
        margins=[margin_of(size) for size in sizes],
        harmed=harmed,
        undecided=undecided,
        helped=helped,
        decided=len(worst) - undecided,
    )


def _worst(rows: Rows) -> NDArray[np.int64]:
    """Return the place in _WORSE of the verdict of each network."""
    names, of_row = np.unique(rows["network"], return_inverse=True)
    worst = np.full(len(names), len(_WORSE), dtype=np.int64)
    np.minimum.at(worst, of_row, [_WORSE.index(verdict) for verdict in rows["verdict"]])
    return worst


def _effect(ratio: float, interval: Interval, predicted: Interval, margin: float) -> Effect:
    is_shorter = interval[1] < 1 and ratio < 1 / (1 + tolerances.OVERALL)
    if is_shorter and predicted[1] <= 1 + margin:
        return "shortens"
    return "no gain" if predicted[0] >= 1 / (1 + margin) else "open"


def _best(helping: Sequence[Candidate]) -> Candidate | None:
    """The first of those that help, unless another surely helps more."""
    best = None
    for candidate in helping:
        best = candidate if best is None or candidate.interval[1] < best.interval[0] else best
    return best


def _answer(candidates: Sequence[Candidate]) -> tuple[Answer, Candidate | None]:
    best = _best([candidate for candidate in candidates if candidate.effect == "shortens"])
    if best is not None:
        return "use", best
    has_no_gain = candidates and all(candidate.effect == "no gain" for candidate in candidates)
    return ("none" if has_no_gain else "nothing"), None
