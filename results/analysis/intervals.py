"""Uncertainty of a comparison: intervals, ECDF bands, and which points have gain and harm.

The unit is what was drawn independently. Within a point that is a repetition: it has seeds of its own, and
both variants of a pair meet the same losses, so a pair stays whole. Over points it is a point: its workloads
meet the same losses, so they stay together. An interval over points is about networks drawn from the ranges
of the design, and not about those that people use.

Too few units give no interval (NaN): even when all of five lie on one side, that happens by chance in 2 · 2⁻⁵
> LEVEL of cases. One repetition says what happened, not how sure it is.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fecbench.results import metrics
from fecbench.results.analysis.bootstrap import quantile_ratio_intervals
from fecbench.results.analysis.margins import of_points
from fecbench.results.analysis.pairing import Pairing, in_order, median_ratio
from fecbench.results.analysis.point_statistic import place_of_p95
from fecbench.results.analysis.quantiles import (
    false_discoveries,
    heads,
    normal_beyond,
    ranks_of_rows,
    share_interval,
    t_quantile,
)
from fecbench.results.store.records import P95, CampaignInfo

LEVEL = 0.05  # intervals and bands have the confidence 1 - LEVEL
FEWEST = 6  # units of an interval of that confidence
FEWEST_OF_TAIL = (
    300  # pairs of an interval of the 95th percentile: of fewer, it would hold the truth too seldom
)
VERDICTS = ("gain", "harm", "equivalent", "undecided")
EFFECTS = VERDICTS[:2]
_VERDICTS = pd.Index(VERDICTS)
WORDS = {"gain": "helps", "harm": "harms", "equivalent": "no difference", "undecided": "undecided"}
"""The words of verdicts for a reader; `docs/glossary.md` says what they mean."""
SHARES = (
    *("workload", "points", *VERDICTS, "by_chance"),
    *("discovered_gain", "discovered_harm", "median", "low", "high"),
)
AVERAGED = {f"averaged_{name}": name for name in ("ratio", "censored", "low", "high", "pairs", "timeouts")}
"""Columns of what averages over networks are made of, by the columns of what is of all repetitions."""

_MOST_EXACT = 50  # values of a signed-rank test

Floats = NDArray[np.float64]
Interval = tuple[float, float]


def why_undecided(statistic: str) -> str:
    """Return the reason why no ratio of this statistic has an interval, in words."""
    of_means = ", or means that are 0 or have a timeout" if statistic == "mean" else ""
    return f"too few repetitions{of_means}"


def of_campaign(pairing: Pairing, campaign: CampaignInfo) -> pd.DataFrame:
    """The `ratio_intervals` of a comparison, by the statistic and the margins of its campaign.

    Where averages over networks are of the first repetitions alone, the columns AVERAGED have what is of
    these, with intervals of the plain level; NaN for a network without a ratio of them (`averaged`).
    """
    rows = _of_statistic(pairing, campaign, len(campaign.looks))
    if pairing.averaged is pairing:
        return rows
    place = ["workload", "point"]
    first = _of_statistic(pairing.averaged, campaign, looks=1).set_index(place)
    return rows.join(first[list(AVERAGED.values())].set_axis(list(AVERAGED), axis=1), on=place)


def averaged(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of `of_campaign` as averages over networks take them: with what is of the first
    repetitions alone, where the campaign runs until its results decide; else the rows themselves."""
    if not set(AVERAGED) <= set(rows):
        return rows
    rows = rows[rows["averaged_ratio"].notna()]
    types = rows[list(AVERAGED.values())].dtypes
    return rows.assign(**{name: rows[of_first] for of_first, name in AVERAGED.items()}).astype(types)


def _of_statistic(pairing: Pairing, campaign: CampaignInfo, looks: int) -> pd.DataFrame:
    margins = of_points(pairing.ratios, campaign)
    if campaign.engine == "field":
        return _in_blocks(pairing, margins, looks)
    return ratio_intervals(pairing, campaign.statistic, margins=margins, looks=looks)


def ratio_intervals(
    pairing: Pairing,
    statistic: str = "median",
    level: float = LEVEL,
    margins: float | Floats = 0.0,
    looks: int = 1,
) -> pd.DataFrame:
    """The rows of `pairing.ratios`, how sure each ratio is, and what it says.

    `looks`: after how many of its repetitions a point may have stopped because of what they say. Each of
    these looks may err in an equal part of `level`, so that all of them together err in no more than that:
    intervals are of 1 - `level` / `looks`, and p-values `looks` times as great (repeated confidence
    intervals: Jennison and Turnbull, "Group Sequential Methods", 2000, chapter 9; by Bonferroni, which holds
    for any statistic). The ratio where a point stopped is a little too far from 1 on average.

    `margins`: the difference that does not matter, as a share (0.02 for 2 %), or one of each row. Columns
    added:

    - `low` and `high`, the interval of confidence 1 - `level` of the ratio of the statistics over the
      repetitions: `quantile_ratio_intervals` or `_of_means`. NaN below FEWEST pairs (FEWEST_OF_TAIL for the
      95th percentile), and for means with a timeout;
    - `margin`, and `verdict`, by the interval against the margin (`verdicts`);
    - `p_value`, of arms that differ by no more than the margin at this point (`signed_rank` of the log ratios
      less the margin, 1 where the pairs are on the other side of it than the ratio), NaN where there is no
      interval;
    - `discovery`: the verdicts that are left when no more than the share LEVEL of gains and harms of a
      workload may be false (`_discoveries`).

    Where arms differ by no more than the margin, the share `level` of points is called gain or harm at most
    by the median; by the mean about that share.
    """
    ratios, matched = pairing.ratios, pairing.matched
    arms = [matched[name].to_numpy(np.float64) for name in ("baseline", "variant")]
    of_points, counts = ratios["ratio"].to_numpy(np.float64), ratios["pairs"].to_numpy()
    margin = np.full(len(ratios), 1.0) * margins
    more_is_better = _more_is_better(ratios)
    low, high, p_value = np.full((3, len(ratios)), math.nan)
    sizes = np.repeat(counts, counts)  # pairs are in the order of the ratios
    for pairs in np.unique(counts[counts >= FEWEST]).tolist():
        baseline, variant = (values[sizes == pairs].reshape(-1, pairs) for values in arms)
        rows = counts == pairs
        ends = of_statistics(baseline, variant, statistic, level / looks, more_is_better[rows])
        low[rows], high[rows] = ends.T
        with np.errstate(divide="ignore", invalid="ignore"):
            p_values = _beyond_margin(_log_ratios(baseline, variant), np.log(of_points[rows]), margin[rows])
            p_value[rows] = np.minimum(looks * p_values, 1)
    p_value[np.isnan(low)] = math.nan
    ratios = ratios.assign(low=low, high=high, p_value=p_value, margin=margin)
    ratios["verdict"] = _verdicts(low, high, more_is_better, margin)
    return ratios.assign(discovery=_discoveries(ratios))


def _more_is_better(ratios: pd.DataFrame) -> NDArray[np.bool_]:
    """Return whether more is better of the metric of each row."""
    numbers, names = pd.factorize(ratios["metric"])
    return np.array([metrics.of(name).more_is_better is True for name in names], np.bool_)[numbers]


def _in_blocks(pairing: Pairing, margins: float | Floats, looks: int) -> pd.DataFrame:
    """The `ratio_intervals` of a campaign in the field, whose repetitions are blocks in the order of time."""
    from fecbench.results.analysis import blocks  # which knows pairings, too

    margin = pd.Series(margins, pairing.ratios.index, dtype=np.float64)
    ratios = blocks.with_intervals(pairing, LEVEL / looks, margin).assign(margin=margin)
    ratios["p_value"] = (looks * ratios["p_value"]).clip(upper=1)
    ratios = ratios.assign(verdict=verdicts(ratios["low"], ratios["high"], _more_is_better(ratios), margin))
    return ratios.assign(discovery=_discoveries(ratios))


def of_statistics(
    baseline: Floats, variant: Floats, statistic: str, level: float, more_is_better: NDArray[np.bool_]
) -> Floats:
    """The intervals (points × 2) of the ratios of the statistics of two arms, each points × pairs;
    `more_is_better` of the metric of each point."""
    if statistic == "mean":
        return _of_means(baseline, variant, level)
    pairs = baseline.shape[1]
    if statistic != P95:
        return quantile_ratio_intervals(baseline, variant, level, (pairs - 1) // 2, pairs // 2)
    if pairs < FEWEST_OF_TAIL:
        return np.full((len(baseline), 2), math.nan)
    place = place_of_p95(pairs)
    ends = quantile_ratio_intervals(baseline, variant, level, place, place)
    if more_is_better.any():
        from_below = quantile_ratio_intervals(baseline, variant, level, pairs - 1 - place, pairs - 1 - place)
        ends[more_is_better] = from_below[more_is_better]
    return ends


def _log_ratios(baseline: Floats, variant: Floats) -> Floats:
    """The log ratios of pairs. They are infinite where one value is 0 or a timeout, and 0 where values are
    equal, also both 0: a pair of which one alone is 0 says which arm is better, whichever it is. Of two
    timeouts NaN."""
    logs: Floats = np.log(variant / baseline)
    logs[variant == baseline] = 0
    logs[np.isneginf(variant)], logs[np.isneginf(baseline)] = -math.inf, math.inf  # timeouts of a share
    logs[(variant == baseline) & np.isinf(variant)] = math.nan
    return logs


def _beyond_margin(logs: Floats, of_points: Floats, margins: Floats) -> Floats:
    """The p-values that the arms of each point differ by no more than the margin: `logs` has the log ratios
    of the pairs (points × pairs), `of_points` those of the statistics. 1 where these are within it.

    Only pairs beyond the margin speak against it. Most pairs of equal arms are within it, and a mean with a
    rare long delay may be beyond.
    """
    bounds = np.copysign(np.log1p(margins), of_points)
    outwards = np.copysign(1.0, of_points)[:, np.newaxis]
    p_values = _signed_ranks(outwards * (logs - bounds[:, np.newaxis]), above=True)
    within = np.abs(of_points) <= np.abs(bounds)
    beyond: Floats = np.where(within & (margins > 0), 1.0, p_values)
    return beyond


def _of_means(baseline: Floats, variant: Floats, level: float) -> Floats:
    """The intervals (points × 2) of the ratios of the means of two arms, each points × pairs.

    Student's, of the log ratio: to first order it is the mean of variant / its mean - baseline / its mean
    over the pairs (the delta method; Cochran, "Sampling Techniques", 1977, §6.3). Where rare trials take many
    times as long in one arm alone, it holds the truth less often, as any interval of few values does: what is
    too rare to be among them, it doesn't know.
    """
    pairs = baseline.shape[1]
    with np.errstate(divide="ignore", invalid="ignore"):
        means = [arm.mean(axis=1, keepdims=True) for arm in (variant, baseline)]
        influence = variant / means[0] - baseline / means[1]
        ratio = (means[0] / means[1])[:, 0]
        half = t_quantile(1 - level / 2, pairs - 1) * influence.std(axis=1, ddof=1) / math.sqrt(pairs)
        ends = np.stack([ratio * np.exp(-half), ratio * np.exp(half)], axis=1)
    intervals: Floats = np.where((np.isfinite(ratio) & (ratio > 0))[:, None], ends, math.nan)
    return intervals


def signed_rank(logs: Floats) -> float:
    """The p-value of the two-sided Wilcoxon signed-rank test that log ratios are symmetric about 0 (Wilcoxon
    1945). 1 where none differs from 0.

    It assumes no distribution: log ratios have heavy tails, since one loss more or less can cost a timeout.
    Equal arms can be exchanged, so their log ratios are symmetric, and however few they are, the share of
    p-values below a level is that level at most. The sign test would need no symmetry, but half as many pairs
    again when the spread is normal. Equal pairs are dropped, and so are unknown ones (NaN);
    an infinite one counts as the farthest. Values that tie share their ranks, and the test is exact for up to
    _MOST_EXACT of them all the same; of more, the sum of ranks is taken for normal.
    """
    return float(_signed_ranks(logs[np.newaxis])[0])


def _signed_ranks(logs: Floats, *, above: bool = False) -> Floats:
    """The `signed_rank` of each row, of rows × pairs; with `above`, only against log ratios above 0."""
    differing = np.where(np.isnan(logs), 0.0, logs)
    dropped = (differing == 0).sum(axis=1, keepdims=True)
    # Twice the ranks: those of values that tie are halves.
    ranks = (2 * (ranks_of_rows(np.abs(differing)) - dropped)).astype(np.int64)
    ranks[differing == 0] = 0
    positive = ranks.sum(axis=1, where=differing > 0)
    ties, of_row = np.unique(np.sort(ranks, axis=1), axis=0, return_inverse=True)
    p_values = np.empty(len(logs))
    for index, alike in enumerate(ties):
        rows = of_row == index
        p_values[rows] = _p_values(alike[alike > 0], positive[rows], above=above)
    return p_values


def _p_values(ranks: NDArray[np.int64], sums: NDArray[np.int64], *, above: bool) -> Floats:
    """Return how often the sum of the positive ones of these ranks is as far from its mean as each of
    `sums`, if the sign of each is by chance; with `above`, 1 for those below their mean."""
    if len(ranks) > _MOST_EXACT:
        deviations = (sums - ranks.sum() / 2) / math.sqrt((ranks.astype(np.float64) ** 2).sum() / 4)
        normal: Floats = np.minimum(1, 2 * normal_beyond(deviations if above else np.abs(deviations)))
        return normal
    ways = np.zeros(ranks.sum() + 1)  # in which the signs give each sum
    ways[0], greatest = 1, 0
    for rank in ranks.tolist():
        ways[rank : greatest + rank + 1] += ways[: greatest + 1]
        greatest += rank
    at_most = ways.cumsum() / 2.0 ** len(ranks)
    at_least = ways[::-1].cumsum()[::-1] / 2.0 ** len(ranks)
    exact: Floats = np.minimum(1, 2 * (at_least if above else np.minimum(at_most, at_least))[sums])
    return exact


def _discoveries(ratios: pd.DataFrame) -> pd.Series:
    """Return the verdicts that Benjamini and Hochberg's procedure leaves: among them, no more than the
    share LEVEL is expected to be of equal arms (Journal of the Royal Statistical Society B 57, 1995).
    Each workload is a family of its own, as it is a row in tables.

    A point whose interval says neither gain nor harm has the p-value 1 here. That only makes p-values
    greater, so the bound holds, and nothing is discovered that its own interval denies.
    """
    codes = ratios["verdict"].cat.codes.to_numpy().copy()
    has_effect = codes < len(EFFECTS)
    p_values = np.where(has_effect, ratios["p_value"].to_numpy(np.float64), 1.0)
    workloads = np.where(ratios["low"].notna(), pd.factorize(ratios["workload"])[0], -1)
    for workload in np.unique(workloads[workloads >= 0]):
        family = workloads == workload
        false = false_discoveries(p_values[family]) > LEVEL
        codes[np.flatnonzero(family)[false & has_effect[family]]] = VERDICTS.index("undecided")
    return pd.Series(pd.Categorical.from_codes(codes, _VERDICTS), ratios.index, name="discovery")


def verdicts(
    low: pd.Series,
    high: pd.Series,
    more_is_better: pd.Series | NDArray[np.bool_] | bool = False,
    margin: pd.Series | float = 0.0,
) -> pd.Series:
    """Return the verdicts of intervals of ratios against a margin of practical equivalence; a categorical
    of VERDICTS.

    "gain": the whole interval is on the better side of 1 by more than the margin; "harm": on the worse side;
    "equivalent": the whole interval is within 1 / (1 + margin) and 1 + margin, so there is no difference that
    matters; else, and where there is no interval, "undecided". An interval of 95 % makes that two one-sided
    tests at 2.5 % each (TOST: Schuirmann, Journal of Pharmacokinetics and Biopharmaceutics 15, 1987).
    """
    words = _verdicts(*map(np.asarray, (low, high, more_is_better, margin)))
    return pd.Series(words, low.index, name="verdict")


def _verdicts(
    low: Floats, high: Floats, more_is_better: NDArray[np.bool_], margin: Floats
) -> pd.Categorical[str]:
    least, greatest = 1 / (1 + margin), 1 + margin
    below, above = high < least, low > greatest
    equivalent = (low >= least) & (high <= greatest)
    gain = np.where(more_is_better, above, below)
    harm = np.where(more_is_better, below, above)
    codes = np.select([gain, harm, equivalent], range(3), 3)
    return pd.Categorical.from_codes(codes, _VERDICTS)


def shares(intervals: pd.DataFrame) -> pd.DataFrame:
    """Return the shares of verdicts in `ratio_intervals`, one row a workload.

    Columns: `points` compared, the share of them in each of VERDICTS (0 to 1), `by_chance`: how many of these
    points would be called gain or harm at most, on average, if the arms were equal; `discovered_gain` and
    `discovered_harm`, the shares of points that are discoveries; their `median` ratio, and its interval `low`
    to `high` over points.
    """
    rows = []
    for workload, of_workload in intervals.groupby("workload", observed=True):
        of_averages = averaged(of_workload)
        median, low, high = median_ratio_interval(of_averages, of_averages["point"])
        rows.append(
            {
                "workload": workload,
                "points": len(of_workload),
                **{verdict: float((of_workload["verdict"] == verdict).mean()) for verdict in VERDICTS},
                "by_chance": LEVEL * int(of_workload["low"].notna().sum()),
                **{
                    f"discovered_{verdict}": float((of_workload["discovery"] == verdict).mean())
                    for verdict in EFFECTS
                },
                "median": median,
                "low": low,
                "high": high,
            }
        )
    return pd.DataFrame(rows, columns=SHARES)


def counts(intervals: pd.DataFrame, margin: float) -> pd.DataFrame:
    """Return counts of `ratio_intervals`, one row a workload: how many `points` have a ratio, their geometric
    mean `ratio`, and in how many of them the ratio is surely `below` 1 / (1 + margin), surely `above` 1 +
    margin, surely `not_above` it, and `open`: neither of the last two. A ratio of 0 or ∞, of which one arm
    did not get through, is counted as any other, and so is the mean with it (NaN with both).

    `share_low` to `share_high` bounds the share in which the ratio is above 1 + margin, of all networks of
    these ranges that have a ratio. They are ends of intervals of 95 % (`quantiles.share_interval`), the upper
    one as if every open point were above. So 0 `above` is no "none": it has an upper bound.
    """
    low, high, most = intervals["low"], intervals["high"], 1 + margin
    sure = {"below": high < 1 / most, "above": low > most, "not_above": high <= most}
    with np.errstate(divide="ignore", invalid="ignore"):  # 0 and ∞
        logs = np.log(averaged(intervals)["ratio"].astype(float))
        rows = intervals[["workload"]].assign(log=logs, points=1, **sure)
        table: pd.DataFrame = rows.groupby("workload", observed=True).agg(
            points=("points", "sum"), ratio=("log", "mean"), **{name: (name, "sum") for name in sure}
        )
    table = table.assign(
        ratio=np.exp(table["ratio"]), open=table["points"] - table["above"] - table["not_above"]
    )
    ends = [
        (share_interval(above, points, LEVEL)[0], share_interval(above + undecided, points, LEVEL)[1])
        for above, undecided, points in table[["above", "open", "points"]].astype(int).itertuples(index=False)
    ]
    return table.assign(
        share_low=[low for low, _ in ends], share_high=[high for _, high in ends]
    ).reset_index()


def median_ratio_interval(
    rows: pd.DataFrame, units: Sequence[Any] | pd.Series, level: float = LEVEL
) -> tuple[float, float, float]:
    """`pairing.median_ratio` of rows that have a ratio, and the ends of its `median_interval`, which may be 0
    or ∞, too."""
    low, high = median_interval(in_order(rows), units, level)
    return median_ratio(rows), max(low, 0.0), max(high, 0.0)


def mean_ratio_interval(rows: pd.DataFrame, level: float = LEVEL) -> tuple[float, float, float]:
    """Return the geometric mean of the ratios of points, and its interval by Student's t over the logarithms.

    The interval is for other networks that the same plan could have drawn. For a plan without chance, such as
    a grid, it only says how much its points differ.
    NaN where a ratio is 0, infinite or censored, for it has no mean; the interval alone below FEWEST points.
    """
    values = rows["ratio"].to_numpy(np.float64)
    if rows["censored"].any() or not len(values) or not (np.isfinite(values) & (values > 0)).all():
        return math.nan, math.nan, math.nan
    logs = np.log(values)
    mean = float(logs.mean())
    if len(logs) < FEWEST:
        return math.exp(mean), math.nan, math.nan
    half = t_quantile(1 - level / 2, len(logs) - 1) * float(logs.std(ddof=1)) / math.sqrt(len(logs))
    return math.exp(mean), math.exp(mean - half), math.exp(mean + half)


def median_interval(
    values: Sequence[float] | pd.Series | Floats, units: Sequence[Any] | pd.Series, level: float = LEVEL
) -> Interval:
    """The interval of the median of `values` that the sign test does not reject; NaN for too few units, of
    which all lie on one side of the truth by chance in more than the share `level` of cases: below FEWEST.

    `units[i]` names what value i belongs to: the point of a ratio, or the seed of a time. With one value a
    unit, it is that of order statistics. It holds the median with confidence 1 - `level` and more, whatever
    the distribution is, and however few they are (David and Nagaraja, "Order Statistics", 2003, §7.1). Of
    several, each unit has as many votes as it has more values on one side than on the other, all with one
    sign, which is by chance. Values may be -∞ or ∞, and so may the ends.
    """
    data = np.asarray(values, dtype=np.float64)
    codes, names = pd.factorize(np.asarray(units))
    if 2.0 ** (1 - len(names)) > level:
        return math.nan, math.nan
    return _lowest(data, codes, level), -_lowest(-data, codes, level)


def _lowest(data: Floats, codes: NDArray[np.int64], level: float) -> float:
    """The least that the median may be: candidates are the values, and what lies between two of them."""
    distinct, place = np.unique(data, return_inverse=True)
    # Candidate 2 i is value i, and 2 i + 1 is the range between it and the next.
    rejected, accepted = -1, 2 * int(np.sort(place)[(len(data) - 1) // 2])
    while accepted - rejected > 1:
        middle = (rejected + accepted) // 2
        votes = np.bincount(codes, np.sign(2 * place - middle)).astype(np.int64)
        if _share_of_sums(votes) <= level / 2:
            rejected = middle
        else:
            accepted = middle
    return float(distinct[accepted // 2])


def _share_of_sums(votes: NDArray[np.int64]) -> float:
    """Return how often these numbers have at least the sum that they have, if the sign of each is by
    chance."""
    sizes, counts = np.unique(np.abs(votes[votes != 0]), return_counts=True)
    positive = np.ones(1)  # the distribution of the sum of those that are positive
    for size, count in zip(sizes, counts, strict=True):
        of_size = np.zeros(size * count + 1)
        of_size[::size] = heads(count)
        positive = of_size if len(sizes) == 1 else _convolved(positive, of_size)
    return float(positive[votes[votes > 0].sum() :].sum())


def _convolved(one: Floats, other: Floats) -> Floats:
    """The distribution of the sum of two independent numbers. `scipy.signal`, which has it, takes longer to
    load than most commands take to run."""
    length = len(one) + len(other) - 1
    size = 1 << (length - 1).bit_length()
    product: Floats = np.fft.irfft(np.fft.rfft(one, size) * np.fft.rfft(other, size), size)
    return product[:length]


def ecdf(values: Sequence[float] | pd.Series) -> pd.DataFrame:
    """The empirical distribution function of independent values (one a point), with a band.

    One row for what is left of all values (`value` is -inf), and one a distinct value, ascending. Each holds
    until the next: `share` of values at most it, and `low` and `high`, between which the whole true function
    lies with confidence 1 - LEVEL: share ± √(ln(2/LEVEL) / 2n), by the inequality of Dvoretzky, Kiefer and
    Wolfowitz with Massart's constant (Annals of Probability 18, 1990). Points of a space-filling design are
    spread more evenly than independent ones, for which this holds: of them, the band is rather too wide. No
    values have no rows.
    """
    data = np.asarray(values, dtype=np.float64)
    if not len(data):
        return pd.DataFrame(columns=["value", "share", "low", "high"], dtype=np.float64)
    distinct, counts = np.unique(data, return_counts=True)
    share = np.concatenate([[0], counts.cumsum() / len(data)])
    half = math.sqrt(math.log(2 / LEVEL) / (2 * len(data)))
    return pd.DataFrame(
        {
            "value": np.concatenate([[-math.inf], distinct]),
            "share": share,
            "low": np.clip(share - half, 0, 1),
            "high": np.clip(share + half, 0, 1),
        }
    )
