"""Whether two arms that met the same losses differ, and how many pairs it takes to see that they do.

The unit is the log ratio of a pair of values of the metric that their workload compares, or of one that is
chosen: a pair shares point, workload, repetition and seeds, so that what a point is like cancels, and a ratio
and its inverse are equally far from none.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fecbench.quantities import counted
from fecbench.results import metrics
from fecbench.results.analysis import frames, outcomes
from fecbench.results.analysis.harness import TIME
from fecbench.results.analysis.intervals import LEVEL, median_interval, signed_rank
from fecbench.results.analysis.one_host import of_several_hosts
from fecbench.results.analysis.pairing import PAIR
from fecbench.results.analysis.quantiles import heads_at_least, normal_quantile
from fecbench.results.store import arrow
from fecbench.results.store.database import Database
from fecbench.results.store.records import CampaignInfo

POWER = 0.8
DIFFERENCES = (0.01, 0.02, 0.05, 0.10)
QUANTILES = (0.05, 0.25, 0.75, 0.95)

Logs = NDArray[np.float64]


class NothingToCompare(ValueError):
    """Fewer than two pairs are ok and have values, or some are not above 0."""


@dataclass(frozen=True)
class Equality:
    """The ratios of the second arm to the first; `interval` is the median's, of confidence 1 - LEVEL, NaN
    for too few pairs."""

    pairs: int
    median: float
    interval: tuple[float, float]
    quantiles: dict[float, float]
    beyond: dict[float, float]
    """Share of pairs whose ratio differs from 1 by more than this."""
    p_value: float
    """The p-value of `signed_rank`: of equal arms, at most the share LEVEL of comparisons has one below
    LEVEL."""
    pairs_needed: dict[float, int]
    """The number of pairs to detect a relative difference with power POWER at level LEVEL."""
    took_s: tuple[float, float] | None = None
    """The time for which each of two campaigns ran; None for two variants of one."""
    metrics: tuple[str, ...] = ()
    """The name of each metric that was compared; none where values were compared that have no name."""
    without: int = 0
    """The number of further pairs of which one has no value (NaN) or neither has: it failed, timed out, or
    did not measure it."""
    one_sided: int = 0
    """The number of these that have one value: in equal arms few, and as many of the first as of the
    second."""
    second_lacks: int = 0
    """The number of these in which it is the second that has none."""

    @property
    def one_sided_p_value(self) -> float:
        """The p-value of the sign test that either arm lacks values as often as the other."""
        most = max(self.second_lacks, self.one_sided - self.second_lacks)
        return min(1.0, 2 * heads_at_least(most, self.one_sided))

    @property
    def differ(self) -> bool:
        """Whether the ratios differ, or one arm lacks values more often. Both tests share the level where the
        second one can find anything."""
        if 2.0 ** (1 - self.one_sided) > LEVEL / 2:
            return self.p_value < LEVEL
        return min(self.p_value, self.one_sided_p_value) < LEVEL / 2


def compare(first: Sequence[float], second: Sequence[float]) -> Equality:
    """Compare values in pairs: `first[i]` and `second[i]` met the same losses. Those of which one was not
    measured (NaN) are left out.

    Raises NothingToCompare for fewer than two pairs, or values that are not above 0.
    """
    lacks = np.isnan(np.array([first, second], dtype=np.float64))
    lacking = lacks.sum(axis=0)
    logs = _log_ratios(first, second)
    ratios = np.exp(logs)
    return Equality(
        pairs=len(logs),
        median=float(np.median(ratios)),
        interval=median_interval(ratios, range(len(ratios))),
        quantiles={q: float(np.quantile(ratios, q)) for q in QUANTILES},
        beyond={bound: float(np.mean(np.abs(ratios - 1) > bound)) for bound in (0.01, 0.05)},
        p_value=signed_rank(logs),
        pairs_needed={difference: pairs_needed(logs, difference) for difference in DIFFERENCES},
        without=int((lacking > 0).sum()),
        one_sided=int((lacking == 1).sum()),
        second_lacks=int((lacks[1] & ~lacks[0]).sum()),
    )


def _log_ratios(first: Sequence[float], second: Sequence[float]) -> Logs:
    """Return the log ratios of the pairs that have both values."""
    pairs = np.array([first, second], dtype=np.float64)
    values = pairs[:, ~np.isnan(pairs).any(axis=0)]
    without = pairs.shape[1] - values.shape[1]
    if values.shape[1] < 2:
        lacking = f", {without} more without a value" if without else ""
        raise NothingToCompare(
            f"{counted(values.shape[1], 'pair', 'is/are')} ok{lacking}; a comparison needs at least 2"
        )
    if not (values > 0).all():
        raise NothingToCompare("some values are not above 0, and a ratio of these has no logarithm")
    logs: Logs = np.log(values[1] / values[0])
    return logs


def pairs_needed(logs: Logs, difference: float) -> int:
    """Pairs that show a relative `difference` by `signed_rank`, when log ratios spread like `logs`.

    Noether, "Sample size determination for some common nonparametric tests", JASA 82 (1987):
    n = (z(1 - LEVEL/2) + z(POWER))² / (3 (p - 1/2)²) for the signed-rank test, with p the probability that
    two independent log ratios have a positive sum; here in the spread observed, shifted by the difference.
    A few too many where the difference is large beside the spread: never fewer than 11.
    """
    p = _positive_sums(logs - np.median(logs), math.log1p(difference))
    z = normal_quantile(1 - LEVEL / 2) + normal_quantile(POWER)
    return math.ceil(float(z**2 / (3 * (p - 0.5) ** 2)))


def _positive_sums(logs: Logs, shift: float) -> float:
    """The probability that two of the log ratios, both shifted, have a positive sum; ties count half.

    The spread is made symmetric first, as it is when the arms are equal.
    """
    spread = np.sort(np.concatenate([logs, -logs]))
    below = np.searchsorted(spread, -2 * shift - spread, side="left")
    not_above = np.searchsorted(spread, -2 * shift - spread, side="right")
    return float(1 - np.mean(below + not_above) / (2 * len(spread)))


def values_of_pairs(
    first: pd.DataFrame, second: pd.DataFrame, of_workloads: Mapping[str, str], *, same_variant: bool
) -> tuple[list[float], list[float]]:
    """The values of the trials of both frames (`frames.trials`), pair by pair: of the metric that stands
    beside the label of their workload, NaN for a trial that failed, timed out or has none. Pairs of which the
    harness cannot vouch for one are in neither.

    A pair shares workload, point and repetition, and with `same_variant` the variant.
    """
    on = [*(["variant"] if same_variant else []), "workload", "point", "repetition"]
    values: tuple[list[float], list[float]] = ([], [])
    for metric, labels in metrics.labels_of_metrics(of_workloads).items():
        arms = [
            _of_trials(frame[frame["workload"].isin(labels)], metric)[[*on, metric]]
            for frame in (first, second)
        ]
        pairs = arms[0].merge(arms[1], on=on, suffixes=("_first", "_second"))
        values[0].extend(pairs[f"{metric}_first"])
        values[1].extend(pairs[f"{metric}_second"])
    return values


def _of_trials(frame: pd.DataFrame, metric: str) -> pd.DataFrame:
    """The trials that say something of their variant, with the metric of those that are ok."""
    counted = frame[frame["state"].isin(outcomes.COUNTED)]
    value = counted.reindex(columns=[metric])[metric].where(counted["state"] == "ok")
    return counted.assign(**{metric: value})


def of_itself(database: Database, campaign: CampaignInfo, metric: str = "") -> Equality:
    """The two variants of an A/A campaign, in pairs that one host ran. Raises NothingToCompare."""
    of_workloads = metrics.of_workloads(metrics.choose(campaign, metric))
    frame = frames.trials(database, campaign, set(of_workloads.values()))
    elsewhere = of_several_hosts(frame, [variant["label"] for variant in campaign.variants])
    frame = frame[~frame.set_index(PAIR).index.isin(elsewhere)]
    arms = [frame[frame["variant"] == variant["label"]] for variant in campaign.variants]
    return _compared(arms[0], arms[1], of_workloads, same_variant=False)


def between(database: Database, first: CampaignInfo, second: CampaignInfo, metric: str = "") -> Equality:
    """Two campaigns of one design, trial by trial. Raises NothingToCompare."""
    of_workloads = metrics.of_workloads(metrics.choose(first, metric))
    arms = [frames.trials(database, campaign, set(of_workloads.values())) for campaign in (first, second)]
    equality = _compared(arms[0], arms[1], of_workloads, same_variant=True)
    return replace(equality, took_s=(took_s(database, first), took_s(database, second)))


def _compared(
    first: pd.DataFrame, second: pd.DataFrame, of_workloads: Mapping[str, str], *, same_variant: bool
) -> Equality:
    values = values_of_pairs(first, second, of_workloads, same_variant=same_variant)
    return replace(compare(*values), metrics=tuple(dict.fromkeys(of_workloads.values())))


def took_s(database: Database, campaign: CampaignInfo) -> float:
    """Return the time for which at least one trial of a campaign ran, in s, invalid ones that were run
    again included.

    The pause after an interruption is no part of it.
    """
    runs = arrow.times(database, campaign.id)
    began_us = runs["started_at"].cast(TIME).to_numpy().astype("datetime64[us]").astype(np.int64)
    order = np.argsort(began_us, kind="stable")
    begun_s = (began_us[order] - began_us.min(initial=0)) / 1e6
    end_s = begun_s + runs["duration_s"].to_numpy()[order]
    # The latest end of the trials that began before.
    occupied_s = np.maximum.accumulate(np.append(-math.inf, end_s))[:-1]
    return float(np.clip(end_s - np.maximum(begun_s, occupied_s), 0, None).sum())


def sentences(equality: Equality) -> list[str]:
    """Return the sentences of a comparison, for a person."""
    low, high = equality.interval
    interval = "no interval" if math.isnan(low) else f"{1 - LEVEL:.0%} interval {low:.4f} to {high:.4f}"
    spread = ", ".join(f"{q:.0%} {ratio:.4f}" for q, ratio in equality.quantiles.items())
    beyond = " and ".join(f"{share:.1%} by more than {bound:.0%}" for bound, share in equality.beyond.items())
    of_first = equality.one_sided - equality.second_lacks
    needed = ", ".join(f"{count} for {difference:.0%}" for difference, count in equality.pairs_needed.items())
    both = "; by both tests" if equality.one_sided else ""
    verdict = "a difference" if equality.differ else "no difference"
    nouns = " and ".join(metrics.of(name).noun for name in equality.metrics)
    return [
        f"{counted(equality.pairs, 'pair')}; median ratio {equality.median:.4f}"
        f" ({interval}){f' of {nouns}' if nouns else ''}.",
        *(
            [
                f"Left out: {counted(equality.without, 'pair')} more, in which a trial failed, timed"
                " out or has no"
                f" value; in {equality.one_sided} of them the other trial has one."
            ]
            if equality.without
            else []
        ),
        *(
            [
                f"The first alone lacks a value in {counted(of_first, 'pair')}, the second alone in"
                f" {equality.second_lacks}: sign test, p = {equality.one_sided_p_value:.3g}."
            ]
            if equality.one_sided
            else []
        ),
        f"Quantiles of the ratio: {spread}; {beyond} off 1.",
        f"Wilcoxon signed-rank test: p = {equality.p_value:.3g}{both}, {verdict} at level {LEVEL:g}"
        " (equal variants differ in that share of comparisons).",
        f"Pairs that show a difference with power {POWER:g}: {needed}.",
        *_speed(equality.took_s),
    ]


def _speed(took_s: tuple[float, float] | None) -> list[str]:
    if took_s is None:
        return []
    first, second = took_s
    return [f"The first took {first:.1f} s, the second {second:.1f} s: {first / second:.2f} times as fast."]
