"""Measurements of the networks of a look: how much worse the arm did in each, and how sure that is.

Ratios, margins and verdicts are those of every campaign (`results.analysis`). Besides, `estimates` has what a
search is led by: of one pair, too, where no interval can be.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fecbench.results import metrics
from fecbench.results.analysis import outcomes
from fecbench.results.analysis.intervals import ratio_intervals
from fecbench.results.analysis.margins import of_points
from fecbench.results.analysis.pairing import Pairing, paired, ratio_of
from fecbench.results.analysis.quantiles import heads_at_least
from fecbench.results.store.records import CampaignInfo
from fecbench.runners.hunt.hunt_question import Question

Floats = NDArray[np.float64]

MOST = math.log(10)
"""The greatest log ratio that a search knows: a failure is worth no more than ten times as long."""


@dataclass(frozen=True)
class Part:
    """The trials of one workload of a look."""

    campaign: CampaignInfo
    trials: pd.DataFrame
    """Trials as `frames.trials` has them."""
    places: Sequence[int]
    """Place in the look of the network of each point of the campaign."""


@dataclass(frozen=True)
class Judged:
    """A verdict about each network of a look; arrays by its place."""

    ratio: Floats
    """NaN where there is none."""
    low: Floats
    high: Floats
    margin: Floats
    is_sure: NDArray[np.bool_]
    """Whether what is sought is surely there, by more than the margin."""
    is_open: NDArray[np.bool_]
    """Whether it may be there: neither sure, nor surely not."""
    by_failures: NDArray[np.bool_]
    """Whether the ratio is 0 or ∞ since one arm failed or timed out, and not since a value is 0."""
    pairs: NDArray[np.int64]


class Judging(Protocol):
    """The outcome of a look, by which networks can be judged."""

    def judged(self, level: float) -> Judged: ...

    def pair(self, place: int, ratio: float) -> tuple[int, int]: ...


class Measured:
    """A look that was measured."""

    def __init__(self, question: Question, count: int, parts: Sequence[Part]) -> None:
        self._question = question
        self._count = count
        self._parts = parts

    @property
    def trials(self) -> int:
        return sum(len(part.trials) for part in self._parts)

    @cached_property
    def _pairings(self) -> list[Pairing]:
        return [
            paired(
                part.trials,
                self._question.against,
                self._question.arm,
                metrics.of_workloads(part.campaign),
                part.campaign.statistic,
            )
            for part in self._parts
        ]

    def estimates(self) -> tuple[Floats, Floats, Floats]:
        """Return for each network the logarithm of the ratio, the standard deviation of that of one pair, and
        the number of pairs. The logarithm is positive where it is what is sought; NaN: not known."""
        log, deviation = np.full(self._count, math.nan), np.full(self._count, math.nan)
        pairs = np.zeros(self._count)
        for part, pairing in zip(self._parts, self._pairings, strict=True):
            ratios = pairing.ratios
            places = np.asarray(part.places)[ratios["point"].to_numpy(np.int64)]
            with np.errstate(divide="ignore"):
                log[places] = self._signs(ratios) * np.log(ratios["ratio"].to_numpy(np.float64))
            pairs[places] = ratios["pairs"].to_numpy(np.float64)
            for point, of_pair in _deviations(pairing, part.campaign.statistic).items():
                deviation[part.places[int(point)]] = of_pair
        return np.clip(log, -MOST, MOST), deviation, pairs

    def judged(self, level: float) -> Judged:
        """Return the verdict of each network, by intervals of confidence 1 - `level`."""
        columns = {name: np.full(self._count, math.nan) for name in ("ratio", "low", "high", "margin")}
        pairs = np.zeros(self._count, np.int64)
        verdict = np.full(self._count, "", dtype=object)
        surely_not, by_failures = (np.zeros(self._count, np.bool_) for _ in range(2))
        for part, pairing in zip(self._parts, self._pairings, strict=True):
            margins = of_points(pairing.ratios, part.campaign)
            rows = ratio_intervals(pairing, part.campaign.statistic, level, margins)
            places = np.asarray(part.places)[rows["point"].to_numpy(np.int64)]
            for name, values in columns.items():
                values[places] = rows[name].to_numpy(np.float64)
            pairs[places] = rows["pairs"].to_numpy(np.int64)
            verdict[places] = rows["verdict"].astype(str).to_numpy()
            upwards = self._signs(rows) > 0
            bound = np.where(
                upwards, rows["high"] <= 1 + rows["margin"], rows["low"] >= 1 / (1 + rows["margin"])
            )
            surely_not[places] = bound
            by_failures[places] = rows["censored"].to_numpy(np.bool_)
            for point, ratio, compared in self._by_failures(part, pairing, level):
                place = part.places[point]
                columns["ratio"][place] = columns["low"][place] = columns["high"][place] = ratio
                columns["margin"][place] = part.campaign.margin
                verdict[place], pairs[place], by_failures[place] = self._question.sought, compared, True
        is_sure = verdict == self._question.sought
        return Judged(
            **columns, is_sure=is_sure, is_open=~is_sure & ~surely_not, by_failures=by_failures, pairs=pairs
        )

    def pair(self, place: int, ratio: float) -> tuple[int, int]:
        """Return the trials of the baseline and of the arm, by id: of a network's pair whose ratio is nearest
        to this one."""
        part = next(part for part in self._parts if place in part.places)
        (name,) = metrics.of_workloads(part.campaign).values()
        # Not those of the pairing, which lacks a point where the statistics of both arms are timeouts.
        values = outcomes.values(part.trials, metrics.of(name))
        of_point = part.trials.assign(value=values)[part.trials["point"] == list(part.places).index(place)]
        baseline, variant = (
            of_point[of_point["variant"] == label].set_index("repetition")[["id", "value"]]
            for label in (self._question.against, self._question.arm)
        )
        pairs = baseline.join(variant.add_suffix("_variant"), how="inner").dropna()
        arms = pairs.set_axis(["id", "baseline", "id_variant", "variant"], axis=1)
        with np.errstate(divide="ignore", invalid="ignore"):
            ratios = ratio_of(arms, metrics.of(name)).to_numpy(np.float64)
            far = np.where(ratios == ratio, 0.0, np.abs(np.log(ratios / ratio)))
        row = arms.iloc[int(np.nan_to_num(far, nan=math.inf).argmin())]
        return int(row["id"]), int(row["id_variant"])

    def _by_failures(self, part: Part, pairing: Pairing, level: float) -> Iterator[tuple[int, float, int]]:
        """Return the points at which one arm alone surely fails or times out, by the sign test, where that is
        what is sought: each with its ratio, ∞ or 0, and the number of comparable pairs."""
        worse, better = ("variant_timeouts", "baseline_timeouts")
        (name,) = metrics.of_workloads(part.campaign).values()
        is_greater = self._question.sought == "harm"
        if not is_greater:
            worse, better = better, worse
        if metrics.of(name).more_is_better:
            is_greater = not is_greater
        for row in pairing.timeouts.to_dict("records"):
            more, alone = int(row[worse]), int(row[worse] + row[better])
            if more > alone / 2 and 2 * heads_at_least(more, alone) <= level:
                yield int(row["point"]), math.inf if is_greater else 0.0, int(row["pairs"])

    def _signs(self, ratios: pd.DataFrame) -> Floats:
        """1 where a greater ratio is what is sought, -1 where a smaller one is."""
        more_is_better = ratios["metric"].map(lambda name: metrics.of(name).more_is_better is True)
        signs = np.where(more_is_better.to_numpy(np.bool_), -1.0, 1.0)
        return signs if self._question.sought == "harm" else -signs


def _deviations(pairing: Pairing, statistic: str) -> dict[int, float]:
    """Return the standard deviation of one pair's log ratio, for each point with two pairs or more."""
    matched = pairing.matched
    groups = matched.groupby("point", observed=True)
    with np.errstate(divide="ignore", invalid="ignore"):
        if statistic == "mean":
            of_arms = [matched[arm] / groups[arm].transform("mean") for arm in ("variant", "baseline")]
            influence = of_arms[0] - of_arms[1]
        else:
            logs = np.log(matched["ratio"].to_numpy(np.float64))
            influence = pd.Series(np.clip(logs, -MOST, MOST), matched.index)
    spread = influence.groupby(matched["point"], observed=True).std().dropna()
    return dict(zip(map(int, spread.index.to_list()), spread.tolist(), strict=True))
