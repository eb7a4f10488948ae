"""Pairs of uploads in the slides' strata, and the ratios of their quantiles.

A pair is a repetition: both arms meet the same losses. Strata are those of the baseline, by what the loss
model dropped of its data packets (`results.analysis.losses`): the arms meet the same verdicts but send
different packets, so each arm's own losses would select other uploads for it. A stratum of the baseline's is
the same uploads for both, and its ratio is that of uploads that FEC could help.
`own_pairs` has the other way.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fecbench.results.analysis import frames
from fecbench.results.analysis.intervals import FEWEST, LEVEL
from fecbench.results.analysis.pairing import paired, with_fec
from fecbench.results.figures.nothing import NothingToDraw
from fecbench.results.papers.claim import Estimate
from fecbench.results.papers.starlink2022.slides import STATISTICS, STRATA
from fecbench.results.store.records import CampaignInfo

DCT = "client.dct_s"
BURST = "mean_burst_packets"

_KEY = ["point", "repetition"]
_LOSSES = [column for column in STRATA.values() if column is not None]
_RESAMPLES = 1000
_SEED = 0  # the same pairs give the same interval

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Ratio:
    """A quantile with FEC divided by the baseline's, over the pairs of a stratum."""

    pairs: int
    without_s: float
    with_fec_s: float
    resampled: Floats
    """The ratio in resamples of the pairs, in order; empty where there are too few for an interval."""

    def estimate(self, level: float = LEVEL) -> Estimate:
        """Return the estimate with the interval of confidence 1 - `level`: that of the percentiles of the
        resamples."""
        return _estimate(self.value, self.resampled, level)

    @property
    def value(self) -> float:
        return self.with_fec_s / self.without_s if self.pairs else math.nan


@dataclass(frozen=True)
class Gain:
    """The gain of a stratum: how far its ratio is below that of another, with which it shares pairs."""

    value: float
    resampled: Floats
    """The same of resamples of the pairs of both; empty where either has too few for an interval."""

    def estimate(self, level: float = LEVEL) -> Estimate:
        """Return the estimate as a `Ratio` does."""
        return _estimate(self.value, self.resampled, level)


def _estimate(value: float, resampled: Floats, level: float) -> Estimate:
    if not len(resampled):
        return Estimate(value)
    low, high = np.quantile(resampled, [level / 2, 1 - level / 2], method="inverted_cdf")
    return Estimate(value, float(low), float(high))


def fewest(quantile: float) -> int:
    """Pairs below which a quantile has no interval: FEWEST for the median, and for others as many as leave as
    many beyond the quantile, FEWEST / 2. The 95th percentile of fewer is about the greatest alone."""
    return math.ceil(FEWEST / 2 / min(quantile, 1 - quantile) - 1e-9)


def bursts(campaign: CampaignInfo) -> dict[int, str]:
    """The mean length of bursts of each point, by number."""
    points = frames.points(campaign)
    if BURST not in points:
        raise NothingToDraw(f"This design has no factor {BURST}.")
    return dict(zip(points["point"], points[BURST].astype(str), strict=True))


def pairs(frame: pd.DataFrame, baseline: str, variant: str) -> pd.DataFrame:
    """One row a pair in which each arm is ok, failed or timed out: `point`, `repetition`, `baseline` and
    `variant`, its times in seconds, infinite for the latter two, and what the baseline lost, NaN where that
    is not known."""
    return _beside(frame, baseline, variant, baseline)


def own_pairs(frame: pd.DataFrame, baseline: str, variant: str) -> pd.DataFrame:
    """Return the `pairs`, with the losses of the variant itself."""
    return _beside(frame, baseline, variant, variant)


def _beside(frame: pd.DataFrame, baseline: str, variant: str, loser: str) -> pd.DataFrame:
    if not set(_LOSSES) <= set(frame.columns):
        raise NothingToDraw("No endpoint left the series content, which tells what data packets were lost.")
    matched = paired(frame, baseline, variant, DCT).matched[[*_KEY, "baseline", "variant"]]
    lost = frame.loc[frame["variant"] == loser, [*_KEY, *_LOSSES]]
    return matched.merge(lost, on=_KEY, how="left")


def in_stratum(of_pairs: pd.DataFrame, stratum: str) -> pd.DataFrame:
    column = STRATA[stratum]
    return of_pairs if column is None else of_pairs[of_pairs[column] > 0]


def ratios(frame: pd.DataFrame, campaign: CampaignInfo) -> dict[tuple[str, str, str, str], Ratio]:
    """Return the ratios by variant with FEC, mean length of bursts, stratum and statistic.

    Raises NothingToDraw without a pair.
    """
    of_points = bursts(campaign)
    table = {}
    for variant, baseline in with_fec(campaign).items():
        of_variant = pairs(frame, baseline, variant)
        for point, burst in of_points.items():
            of_point = of_variant[of_variant["point"] == point]
            for stratum in STRATA:
                of_stratum = in_stratum(of_point, stratum)[["baseline", "variant"]].to_numpy(np.float64)
                for name, ratio in zip(STATISTICS, _ratios(of_stratum), strict=True):
                    table[variant, burst, stratum, name] = ratio
    if not any(ratio.pairs for ratio in table.values()):
        raise NothingToDraw("No upload is ok with and without FEC.")
    return table


def gains(frame: pd.DataFrame, campaign: CampaignInfo, statistic: str) -> dict[tuple[str, str], list[Gain]]:
    """Return, by variant with FEC and mean length of bursts, how far the ratio of this statistic in the
    last stratum is below that in each of the others."""
    of_points = bursts(campaign)
    return {
        (variant, burst): _gains(of_variant[of_variant["point"] == point], STATISTICS[statistic])
        for variant, baseline in with_fec(campaign).items()
        for of_variant in [pairs(frame, baseline, variant)]
        for point, burst in of_points.items()
    }


def _gains(of_point: pd.DataFrame, of: float) -> list[Gain]:
    """The pairs are drawn, and each takes its strata along, as each takes both of its arms along."""
    count = len(of_point)
    rows = of_point.reset_index(drop=True)
    members = [in_stratum(rows, stratum).index.to_numpy() for stratum in STRATA]
    times = rows[["baseline", "variant"]].to_numpy(np.float64)
    *others, last = (
        quantile(times[member, 1], of) / quantile(times[member, 0], of) if len(member) else math.nan
        for member in members
    )
    resampled = [np.empty(0)] * len(others)
    if min(map(len, members)) >= fewest(of):
        times_drawn = np.random.default_rng(_SEED).multinomial(count, [1 / count] * count, size=_RESAMPLES)
        with np.errstate(invalid="ignore"):  # two timeouts: which is longer is unknown
            *of_others, of_last = (
                np.divide(*(_resampled(times[member, arm], times_drawn[:, member], of) for arm in (1, 0)))
                for member in members
            )
            resampled = [of_other - of_last for of_other in of_others]
    return [
        Gain(other - last, np.empty(0) if np.isnan(differences).any() else differences)
        for other, differences in zip(others, resampled, strict=True)
    ]


def _resampled(values: Floats, times_drawn: NDArray[np.int64], of: float) -> Floats:
    """The quantile in each resample (rows), which has drawn each value (columns) so many times."""
    order = np.argsort(values)
    at_most = times_drawn[:, order].cumsum(axis=1)
    needed = np.ceil(of * at_most[:, -1:] - 1e-9)
    quantiles: Floats = values[order][(at_most < needed).sum(axis=1)]
    return quantiles


def quantile(values: Floats, of: float) -> float:
    """The least value that this share of them does not exceed; NaN of none."""
    return float(np.quantile(values, of, method="inverted_cdf")) if len(values) else math.nan


def _ratios(times: Floats) -> list[Ratio]:
    """Return the ratio of each statistic; `times` has a row a pair: without FEC, and with it."""
    count = len(times)
    draws = np.random.default_rng(_SEED).integers(count, size=(_RESAMPLES, count)) if count else None
    ratios_of_statistics = []
    for of in STATISTICS.values():
        without, with_fec = (quantile(times[:, arm], of) for arm in (0, 1))
        resampled = np.empty(0)
        if draws is not None and count >= fewest(of):
            place = math.ceil(of * count - 1e-9) - 1
            arms = [np.partition(times[:, arm][draws], place, axis=1)[:, place] for arm in (0, 1)]
            with np.errstate(invalid="ignore"):  # two timeouts: which is longer is unknown
                resampled = np.sort(arms[1] / arms[0])
            resampled = np.empty(0) if np.isnan(resampled).any() else resampled
        ratios_of_statistics.append(Ratio(count, without, with_fec, resampled))
    return ratios_of_statistics
