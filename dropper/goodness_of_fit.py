"""Distance of recorded losses from those that a model makes, by many comparisons at once.

The model makes 200 recordings of as many packets. Compared are

- distributions: lengths of bursts, of gaps between losses, the share of losses by the length of their burst,
  and the losses in windows of 10 to 1,000 packets. The distance from the mean of all recordings is Kuiper's
  (Proceedings of the KNAW A 63, 1960): the greatest difference of the shares that lie in any one range. It
  sees what is too regular, which Kolmogorov's sees less;
- the course: the share of losses in the first half, and where in the recording the mean loss is.

Each distance is divided by its standard deviation over the recordings, and the greatest of a recording
counts. So however many comparisons there are, a right model is refused in the share UNUSUAL at most. Its
parameters were fitted to the recorded losses, which makes that less.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fecbench.dropper.model import GilbertElliott, Uniform, verdicts
from fecbench.dropper.recordings import Verdicts

SIMULATED = 200
"""The number of recordings, of as many packets, that the model makes."""
UNUSUAL = 0.01
"""A model is refused if no more than this share of recordings, the recorded one among them, is as far off."""
WINDOWS = (10, 30, 100, 300, 1000)
"""Packets, in each of which losses are counted."""
FEWEST_WINDOWS = 10
"""Windows of a length of which a recording has fewer are not compared."""
BY_BURST = "losses by length of burst"

_MOST_STEPS = 2000  # at which distributions are compared: each recording has as many values in memory

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


@dataclass(frozen=True)
class Distribution:
    """Counts of each value, shape (values,) both; values ascend."""

    values: Integers
    weights: Floats

    @classmethod
    def of(cls, values: Integers) -> "Distribution":
        counts = np.bincount(values)
        distinct = np.flatnonzero(counts)
        return cls(distinct, counts[distinct].astype(np.float64))

    def up_to(self, steps: Integers) -> Floats:
        """The share of all that is at most each of these; 0 of none."""
        cumulated = np.concatenate([[0.0], self.weights.cumsum()])
        shares: Floats = cumulated[np.searchsorted(self.values, steps, "right")] / max(cumulated[-1], 1.0)
        return shares


@dataclass(frozen=True)
class Comparison:
    """One comparison of recordings: the distance of each from the mean of all, the recorded one first, and
    the difference of that one in words."""

    name: str
    distances: Floats
    difference: str

    @property
    def standardised(self) -> Floats:
        """Distances in standard deviations above their mean; 0 where all are equal."""
        spread = float(self.distances.std())
        return (self.distances - self.distances.mean()) / spread if spread else np.zeros(len(self.distances))


@dataclass(frozen=True)
class Likeness:
    """A comparison of recorded losses with those of a model."""

    as_far: int
    """The number of the SIMULATED whose greatest distance is as great."""
    farthest: str
    """The greatest difference of the recorded losses, in words."""
    seen_from: dict[str, float]
    """The distance, by comparison, from which the model would have been refused: a difference of shares.
    Smaller ones are not detected."""

    @property
    def is_like(self) -> bool:
        return (self.as_far + 1) / (SIMULATED + 1) > UNUSUAL


def likeness(lost: Verdicts, model: Uniform | GilbertElliott, seed: int) -> Likeness:
    """Compare recorded losses with recordings that the model makes, with seeds from `seed` on."""
    recordings = (verdicts(model, seed + number, lost.size) for number in range(SIMULATED))
    comparisons = _comparisons([_features(lost), *map(_features, recordings)])
    standardised = np.array([comparison.standardised for comparison in comparisons])
    farthest = standardised.max(axis=0)
    bound = np.sort(farthest[1:])[-round(UNUSUAL * SIMULATED)]  # at most so many recordings are as far off
    return Likeness(
        as_far=int((farthest[1:] >= farthest[0]).sum()),
        farthest=comparisons[int(standardised[:, 0].argmax())].difference,
        seen_from={
            comparison.name: float(comparison.distances.mean() + bound * comparison.distances.std())
            for comparison in comparisons
        },
    )


def runs(lost: Verdicts) -> tuple[Verdicts, Integers]:
    """The value of each run of equal verdicts, and its length."""
    edges = np.flatnonzero(np.diff(lost.astype(np.int8))) + 1
    begins = np.concatenate([[0], edges])
    return lost[begins], np.diff(np.concatenate([begins, [lost.size]]))


@dataclass(frozen=True)
class _Features:
    """The features of one recording that are compared."""

    distributions: dict[str, Distribution]
    course: dict[str, float]


def _features(lost: Verdicts) -> _Features:
    values, lengths = runs(lost)
    bursts = Distribution.of(lengths[values])
    distributions = {
        "bursts": bursts,
        BY_BURST: Distribution(bursts.values, bursts.weights * bursts.values),
        "gaps": Distribution.of(lengths[~values]),
    }
    before = np.concatenate([[0], np.cumsum(lost)])
    for window in WINDOWS:
        if lost.size // window >= FEWEST_WINDOWS:
            distributions[f"windows of {window}"] = Distribution.of(np.diff(before[::window]))
    places = (np.flatnonzero(lost) + 0.5) / lost.size
    course = {
        "halves": float((places < 0.5).mean()) if places.size else 0.5,
        "mean place": float(places.mean()) if places.size else 0.5,
    }
    return _Features(distributions, course)


def _comparisons(recordings: Sequence[_Features]) -> list[Comparison]:
    return [*_of_distributions(recordings), *_of_courses(recordings)]


def _of_distributions(recordings: Sequence[_Features]) -> Iterator[Comparison]:
    for name in recordings[0].distributions:
        distributions = [recording.distributions[name] for recording in recordings]
        steps = np.unique(np.concatenate([distribution.values for distribution in distributions]))
        if steps.size > _MOST_STEPS:
            steps = steps[np.linspace(0, steps.size - 1, _MOST_STEPS).astype(np.int64)]
        shares = np.zeros((len(distributions), steps.size + 1))
        for row, distribution in zip(shares, distributions, strict=True):
            row[1:] = distribution.up_to(steps)
        mean = shares.mean(axis=0)
        excess = shares - mean
        # The range that differs most lies between the places where a recording is farthest ahead and behind.
        first, last = sorted((int(excess[0].argmin()), int(excess[0].argmax())))
        of_range = [float(cumulated[last] - cumulated[first]) for cumulated in (shares[0], mean)]
        least, greatest = (int(steps[min(place, steps.size - 1)]) for place in (first, last - 1))
        words = _RANGES["windows" if name.startswith("windows") else name]
        within = f"{least}" if least == greatest else f"{least} to {greatest}"
        yield Comparison(
            name, excess.max(axis=1) - excess.min(axis=1), words(name, _beside(*of_range), within)
        )


_RANGES: dict[str, Callable[[str, str, str], str]] = {
    "bursts": lambda _, shares, within: f"{shares} of bursts are {within} packets long",
    BY_BURST: lambda _, shares, within: f"{shares} of losses are in bursts of {within} packets",
    "gaps": lambda _, shares, within: f"{shares} of gaps between losses are {within} packets long",
    "windows": lambda name, shares, within: f"{shares} of {name} packets have {within} losses",
}


def _of_courses(recordings: Sequence[_Features]) -> Iterator[Comparison]:
    words = {
        "halves": "{} of losses are in the first half",
        "mean place": "the mean loss is after {} of the packets",
    }
    for name, sentence in words.items():
        values = np.array([recording.course[name] for recording in recordings])
        beside = _beside(float(values[0]), float(values.mean()))
        yield Comparison(name, np.abs(values - values.mean()), sentence.format(beside))


def _beside(recorded: float, of_model: float) -> str:
    return f"{100 * recorded:.0f} % (of the model's {100 * of_model:.0f} %)"
