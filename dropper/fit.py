"""The loss model that recorded losses fit, and whether a difference between it and them is detected.

Three models are tried, by maximum likelihood: `uniform`, `markov` (every packet is lost in the bad state and
none in the good one) and `ge` (Gilbert-Elliott, whose states are hidden). The one with the least BIC is
taken. The recorded losses are then compared with those that this model makes (`dropper.goodness_of_fit`).
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import scipy.optimize
from numpy.typing import NDArray

from fecbench.dropper.goodness_of_fit import BY_BURST, SIMULATED, Likeness, likeness, runs
from fecbench.dropper.model import GilbertElliott, Uniform, markov
from fecbench.dropper.recordings import Verdicts

FEWEST_PACKETS, FEWEST_LOSSES = 1_000, 30
"""The fewest packets and losses to which models are fitted."""
FEWEST_STAYS = 5
"""A model with fewer stays in its bad state, over so many packets, is not judged: it is one of many that make
such losses, and a step or a drift makes them, too."""


@dataclass(frozen=True)
class Fit:
    """The model that fits best."""

    model: Uniform | GilbertElliott
    name: str
    usable: bool
    """No difference was found, of losses that are enough to find one."""
    why: str
    """One line: how sure it is that there is no difference, or why not to use the model."""
    packets: int
    losses: int
    bursts: int
    bic: dict[str, float]
    """The BIC of each model that was tried; the least is the best."""
    seen_from: dict[str, float]
    """The smallest difference that each comparison would have detected."""

    @property
    def parameters(self) -> dict[str, object]:
        parameters = {name: value for name, value in self.model.plain.items() if name != "model"}
        return {name: parameters[name] for name in ("p", "r")} if self.name == "markov" else parameters


def fit(lost: Verdicts, seed: int = 0) -> Fit:
    """The model that fits these verdicts best. `seed` is that of the comparison."""
    packets, losses, bursts = lost.size, int(lost.sum()), int(runs(lost)[0].sum()) if lost.size else 0
    if packets < FEWEST_PACKETS or not FEWEST_LOSSES <= losses <= packets - FEWEST_LOSSES:
        share = losses / packets if packets else 0.0
        why = (
            f"{losses} of {packets} packets are lost: too few to tell models apart; at least"
            f" {FEWEST_LOSSES} of {FEWEST_PACKETS} must be, and as many come"
        )
        return Fit(Uniform(share), "uniform", False, why, packets, losses, bursts, {}, {})
    tried = dict(_tried(lost))
    bic = {name: parameters * np.log(packets) - 2 * log for name, (_, parameters, log) in tried.items()}
    name = min(bic, key=lambda model_name: bic[model_name])
    model = tried[name][0]
    if _stays(model, packets) < FEWEST_STAYS:
        why = (
            f"it enters its bad state fewer than {FEWEST_STAYS} times in {packets} packets: too few to judge,"
            " and losses that change over the recording look the same; use the recorded losses as a pattern"
        )
        return Fit(model, name, False, why, packets, losses, bursts, bic, {})
    likeness_of_model = likeness(lost, model, seed)
    return Fit(
        model,
        name,
        likeness_of_model.is_like,
        _why(likeness_of_model),
        packets,
        losses,
        bursts,
        bic,
        likeness_of_model.seen_from,
    )


def _stays(model: Uniform | GilbertElliott, packets: int) -> float:
    """Return how often the model enters its bad state; ∞ without states."""
    if isinstance(model, Uniform):
        return math.inf
    return packets * (1 - model.bad_share) * model.p


def _why(similarity: Likeness) -> str:
    if similarity.is_like:
        unseen = 100 * similarity.seen_from[BY_BURST]
        return (
            f"{similarity.as_far} of {SIMULATED} simulations are as far from the model in some comparison; in"
            f" {BY_BURST}, less than {unseen:.0f} percentage points would not be seen"
        )
    return (
        f"{similarity.farthest}; {similarity.as_far} of {SIMULATED} simulations are as far from it in any"
        " comparison; use the recorded losses as a pattern"
    )


def _tried(lost: Verdicts) -> Iterator[tuple[str, tuple[Uniform | GilbertElliott, int, float]]]:
    """Each model with its number of parameters and its log-likelihood."""
    share = float(lost.mean())
    yield "uniform", (Uniform(share), 1, _log(lost.sum(), share) + _log((~lost).sum(), 1 - share))
    before, after = lost[:-1], lost[1:]
    to_bad, in_good = float((~before & after).sum()), float((~before).sum())
    to_good, in_bad = float((before & ~after).sum()), float(before.sum())
    p, r = to_bad / in_good, to_good / in_bad
    log = _log(to_bad, p) + _log(in_good - to_bad, 1 - p) + _log(to_good, r) + _log(in_bad - to_good, 1 - r)
    yield "markov", (markov(p, r), 2, log)
    yield "ge", _gilbert_elliott(lost, p, r)


def _log(count: float, probability: float) -> float:
    return float(count) * float(np.log(probability)) if count else 0.0


@dataclass(frozen=True)
class _OfValue:
    """The runs of one verdict."""

    places: NDArray[np.intp]
    """Places among all runs."""
    lengths: NDArray[np.int64]
    """Different lengths, ascending."""
    which: NDArray[np.intp]
    """Index of each run's length among these."""
    packets: int


@dataclass(frozen=True)
class _Runs:
    """The runs of equal verdicts of a recording, by their verdict."""

    count: int
    by_value: dict[bool, _OfValue]

    @classmethod
    def of(cls, lost: Verdicts) -> "_Runs":
        values, lengths = runs(lost)
        by_value = {}
        for value in (False, True):
            places = np.flatnonzero(values == value)
            distinct, which = np.unique(lengths[places], return_inverse=True)
            by_value[value] = _OfValue(places, distinct, which, int(lengths[places].sum()))
        return cls(values.size, by_value)


def _gilbert_elliott(lost: Verdicts, p: float, r: float) -> tuple[GilbertElliott, int, float]:
    """The best of a search from several places: the likelihood has more than one peak."""
    share = float(lost.mean())
    course = _Runs.of(lost)

    def minus(at: NDArray[np.float64]) -> float:
        return -_likelihood(course, *_probabilities(at))

    begins = [(p, r, share / 10, 0.9), (p / 3, r / 3, share / 3, 0.5), (share / 10, 0.1, share / 3, 0.3)]
    optima = [
        scipy.optimize.minimize(minus, _free(*begin), method="L-BFGS-B", bounds=[(-16, 16)] * 4)
        for begin in begins
    ]
    best = min(optima, key=lambda optimum: float(optimum.fun))
    to_bad, to_good, loss_good, loss_bad = _probabilities(best.x)
    return GilbertElliott(to_bad, to_good, 1 - loss_good, 1 - loss_bad), 4, -float(best.fun)


def _free(p: float, r: float, loss_good: float, loss_bad: float) -> NDArray[np.float64]:
    """Four numbers without bounds; the good state loses less than the bad one."""
    shares = np.clip([p, r, loss_bad, loss_good / loss_bad], 1e-6, 1 - 1e-6)
    return np.asarray(np.log(shares / (1 - shares)))


def _probabilities(at: NDArray[np.float64]) -> tuple[float, float, float, float]:
    p, r, loss_bad, of_it = (float(value) for value in 1 / (1 + np.exp(-at)))
    return p, r, loss_bad * of_it, loss_bad


def _likelihood(course: _Runs, p: float, r: float, loss_good: float, loss_bad: float) -> float:
    """The log-likelihood of runs: a product of matrices, from the good state on (Rabiner 1989, forward).

    The matrices are rows × columns × runs, and are multiplied two neighbours at a time.
    """
    moves = np.array([[1 - p, p], [r, 1 - r]])
    log, product = 0.0, np.empty((2, 2, course.count))
    for value, of_value in course.by_value.items():
        emits = np.array([loss_good, loss_bad]) if value else 1 - np.array([loss_good, loss_bad])
        own, base = np.linalg.eig(emits[:, None] * moves)
        if np.iscomplexobj(own) or np.linalg.cond(base) > 1e12 or own.max() <= 0:
            return -np.inf
        scaled = (own / own.max())[:, None] ** of_value.lengths
        log += of_value.packets * float(np.log(own.max()))
        powers = np.einsum("ik,kn,kj->ijn", base, scaled, np.linalg.inv(base))
        product[:, :, of_value.places] = powers[:, :, of_value.which]
    while product.shape[2] > 1:
        paired = product.shape[2] & ~1
        one, other = product[:, :, 0:paired:2], product[:, :, 1:paired:2]
        both = one[:, :1] * other[:1] + one[:, 1:] * other[1:]
        product = np.concatenate([both, product[:, :, paired:]], axis=2)
        scale = product.max(axis=(0, 1))
        if (scale <= 0).any() or not np.isfinite(scale).all():
            return -np.inf
        log += float(np.log(scale).sum())
        product /= scale
    last = float(product[0, :, 0].sum())
    return log + float(np.log(last)) if last > 0 else -np.inf
