"""Variants compared in pairs that met the same losses, workload by workload.

A comparison holds the repetitions in which each arm is ok, failed or timed out, both on one host
(`one_host`); what is left out is counted with its reason. A trial that failed or timed out counts as worse
than any that is ok, whatever the metric (`outcomes`): infinite, if less is better. Below, a timeout is
either. So the ratio at a point is

- a number where the statistics of both arms are: a median that fewer than half of the trials missed by
  timing out is what it would be, however long these had taken;
- 0 or ∞, on the side of the arm that did better, where the statistic of one arm alone is infinite;
- unknown where those of both are: no such point has a ratio, and none counts as gain or harm.

Tables, figures, sentences, rules and claims take the ratio from here, and there is no other.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fecbench.quantities import counted
from fecbench.results import metrics
from fecbench.results.analysis import outcomes
from fecbench.results.analysis.one_host import COLUMNS as HOST_AND_ENGINE
from fecbench.results.analysis.one_host import of_several_hosts
from fecbench.results.analysis.point_statistic import by_group
from fecbench.results.metrics import Metric
from fecbench.results.store.records import FEWEST_OF_P95, P95, CampaignInfo

Floats = NDArray[np.float64]
Column = Any
"""An array of NumPy or of pandas."""

_POINT = ["workload", "point"]
PAIR = [*_POINT, "repetition"]
"""The columns that compared trials of two variants share."""
_READ = (*PAIR, "variant", "state", *HOST_AND_ENGINE)  # of a frame of trials, besides the metric
OTHER_HOSTS = "ran on different hosts"
"""The reason of a pair that is left out since it would compare hosts as much as variants."""
BELOW_ZERO = "a value is below 0"
"""The reason of all pairs of a workload in which any value is: -2 / -1 is 2, and worse where more is better.
Were single networks left out, it would be those in which an arm fares worst."""
_TIMEOUTS = ["baseline_timeouts", "variant_timeouts", "both_timeouts"]
_RATIOS = [*_POINT, "metric", "pairs", "baseline", "variant", "ratio", "timeouts", "censored"]
_DECIDED = [*_POINT, "baseline", "variant", *_TIMEOUTS[:2], "faster", "equal"]
_TABLES = ("ratios", "unpaired", "matched", "decided", "timeouts")  # of a pairing


@dataclass(frozen=True, repr=False)
class Pairing:
    """A variant compared with a baseline that met the same losses."""

    baseline_label: str
    variant_label: str
    ratios: pd.DataFrame
    """One row a (workload, point) that has a ratio: the `metric` that is compared, `pairs` (repetitions
    compared), `baseline` and `variant` (the metric's statistic over these repetitions, infinite where it is a
    timeout), and `ratio` = variant / baseline. `timeouts` counts the repetitions in which an arm failed
    or timed out, or both did. `censored`: the ratio is 0 or ∞ since the statistic of one arm is a timeout."""
    unpaired: pd.DataFrame
    """One row a (workload, reason): `repetitions` that are in no ratio."""
    matched: pd.DataFrame
    """One row a (workload, point, repetition) that is in a ratio of `ratios`, in this order: the metric's
    values `baseline` and `variant`, infinite for a timeout, and their `ratio`, `censored` where one of them
    is a timeout, NaN where both are and for a baseline of 0."""
    decided: pd.DataFrame
    """One row a (workload, point) that shows which arm was better: those of `ratios`, those at which the
    baseline's statistic is 0, and those of a workload with a value below 0. `baseline` and `variant` are the
    metric's statistics. `faster`: whether the variant was better, of a time faster, by the statistic;
    `equal`: whether both were the same to the last bit, as they are where nothing is lost in virtual time.
    `baseline_timeouts` and `variant_timeouts` count the repetitions in which that arm alone failed or timed
    out."""
    timeouts: pd.DataFrame
    """One row a (workload, point) with a timeout, whether it has a ratio or not: of so many comparable
    `pairs`, `baseline_timeouts` and `variant_timeouts` count the repetitions in which that arm alone failed
    or timed out, `both_timeouts` those in which both did."""
    first: Pairing | None = None
    """The same comparison over the first repetitions alone, where averages over networks are of these."""

    @property
    def averaged(self) -> Pairing:
        """The comparison of which averages over networks are made (`CampaignInfo.averaged_repetitions`)."""
        return self if self.first is None else self.first

    @property
    def averaged_ratios(self) -> pd.DataFrame:
        """The `ratios` of `averaged`, of those networks that have a ratio over all repetitions, too."""
        rows = self.averaged.ratios
        places, of_all = (pd.MultiIndex.from_frame(table[_POINT]) for table in (rows, self.ratios))
        return rows[places.isin(of_all)]

    def __repr__(self) -> str:
        arms = f"{self.variant_label} / {self.baseline_label}"
        return f"<{arms}: {len(self.ratios)} ratios of {counted(len(self.matched), 'pair')}>"

    def _repr_html_(self) -> str:
        from fecbench.results.analysis.cards import of_pairing  # loaded where a notebook shows it

        return of_pairing(self)


def paired(
    frame: pd.DataFrame,
    baseline: str,
    variant: str,
    metric: str | Mapping[str, str] = metrics.DEFAULT,
    statistic: str = "median",
    averaged: int | None = None,
) -> Pairing:
    """Compare two variants in each workload and point, over the repetitions in which each is ok, failed or
    timed out. Averages over networks are of the first `averaged` repetitions; None: of all.

    `metric` names the metric for all workloads, or for each by its label. The ratio is that of the statistics
    (of `point_statistic.STATISTICS`) over these repetitions (Networking 2019, §IV-A: the median DCT of the
    runs of a configuration is considered), not the statistic of ratios. A point is unpaired as a whole where
    it has no ratio: where both statistics are timeouts, where the baseline's is 0, since its other
    repetitions are those in which the metric was greater, where the workload has a value below 0, and where
    there are too few repetitions for a p95.
    """
    if averaged is not None and not (is_first := frame["repetition"] < averaged).all():
        first = paired(frame[is_first], baseline, variant, metric, statistic)
        return replace(paired(frame, baseline, variant, metric, statistic), first=first)
    if isinstance(metric, str):
        return _paired_by(metrics.of(metric), frame, baseline, variant, statistic)
    parts = []
    for name, labels in metrics.labels_of_metrics(metric).items():
        is_compared = frame["workload"].isin(labels)
        part = frame if is_compared.all() else _read(frame, [name])[is_compared]
        parts.append(_paired_by(metrics.of(name), part, baseline, variant, statistic))
    return parts[0] if len(parts) == 1 else _joined(parts)


def only_compared(frame: pd.DataFrame, campaign: CampaignInfo) -> pd.DataFrame:
    """The columns of a frame of trials by which variants are compared. It has a hundred more, and each step
    would copy them."""
    return _read(frame, metrics.of_workloads(campaign).values())


def _read(frame: pd.DataFrame, names: Iterable[str]) -> pd.DataFrame:
    read = {*_READ, *names}
    return frame[[name for name in frame.columns if name in read]]


def _joined(parts: list[Pairing]) -> Pairing:
    """Pairings of different workloads as one, in the order of the design."""
    tables = {}
    for name in _TABLES:
        table = pd.concat([getattr(part, name) for part in parts], ignore_index=True)
        tables[name] = table.sort_values(
            [key for key in (*PAIR, "reason") if key in table], ignore_index=True
        )
    return replace(parts[0], **tables)


def _paired_by(metric: Metric, frame: pd.DataFrame, baseline: str, variant: str, statistic: str) -> Pairing:
    """Columns are in NumPy until they are whole: each step of pandas costs as much as to pair hundreds of
    trials."""
    pairs = _pairs(frame, outcomes.values(frame, metric), baseline, variant)
    reasons = _why_unpaired(pairs, baseline, variant, metric)
    elsewhere = of_several_hosts(frame, [baseline, variant])
    if len(elsewhere):
        of_several = pairs.set_index(PAIR).index.isin(elsewhere)
        reasons[of_several & (reasons == "")] = f"{baseline} and {variant}: {OTHER_HOSTS}"
    comparable = np.flatnonzero(reasons == "")
    points, point_of_pair = _points(pairs, comparable, metric, statistic)
    of_baseline, of_variant = points["baseline"], points["variant"]
    unknown = (of_baseline == metric.worst) & (of_variant == metric.worst)
    has_statistic = ~np.isnan(of_baseline)
    negative = _are_below_zero(points["workload"], pairs, comparable)
    for without, reason in (
        (unknown, f"{baseline} and {variant}: {statistic} of {metric.name} is a failure or a timeout"),
        (of_baseline == 0, f"{baseline}: {statistic} of {metric.name} is 0"),
        (negative, f"{metric.name}: {BELOW_ZERO}"),
        (~has_statistic, f"fewer than {FEWEST_OF_P95} repetitions have no {statistic}"),
    ):
        if without.any():
            reasons[comparable[without[point_of_pair]]] = reason
    timeouts = sum(points[kind] for kind in _TIMEOUTS)
    better = np.greater if metric.more_is_better else np.less
    of_points = {
        **points,
        "metric": np.full(len(of_baseline), metric.name),
        "ratio": _ratio(of_baseline, of_variant, metric),
        "timeouts": timeouts,
        "censored": _is_censored(of_baseline, of_variant, metric),
        "faster": better(of_variant, of_baseline),
        "equal": of_variant == of_baseline,
    }
    of_pairs = {name: pairs[name].array for name in (*PAIR, "baseline", "variant")}
    arms = pairs["baseline"].to_numpy(), pairs["variant"].to_numpy()
    of_pairs |= {"ratio": _ratio(*arms, metric), "censored": _is_censored(*arms, metric)}
    return Pairing(
        baseline,
        variant,
        _table(of_points, _RATIOS, ~unknown & (of_baseline != 0) & ~negative & has_statistic),
        _unpaired(pairs["workload"], reasons),
        _table(of_pairs, of_pairs, reasons == ""),
        _table(of_points, _DECIDED, ~unknown & has_statistic),
        _table(of_points, [*_POINT, "pairs", *_TIMEOUTS], timeouts > 0),
    )


def _pairs(frame: pd.DataFrame, values: pd.Series, baseline: str, variant: str) -> pd.DataFrame:
    """Return the trials of both arms by PAIR, in this order, each with its state and its value. In most
    campaigns both have the same, in the same order, and nothing has to be looked up."""
    columns = {**{name: frame[name].array for name in (*PAIR, "state")}, "value": values.to_numpy()}
    first, second = (
        {name: column.take(rows) for name, column in columns.items()}
        for rows in (np.flatnonzero(frame["variant"] == label) for label in (baseline, variant))
    )
    if all(first[name].equals(second[name]) for name in PAIR):
        pairs = pd.DataFrame(
            {
                **{name: first[name] for name in PAIR},
                **{"state_baseline": first["state"], "baseline": first["value"]},
                **{"state_variant": second["state"], "variant": second["value"]},
            }
        )
    else:
        both = pd.DataFrame(first).merge(
            pd.DataFrame(second), how="outer", on=PAIR, suffixes=("_baseline", "_variant")
        )
        pairs = both.rename(columns={"value_baseline": "baseline", "value_variant": "variant"})
    codes = [pd.factorize(pairs[name], sort=True)[0] for name in PAIR]
    order = np.lexsort(codes[::-1])
    in_order = np.array_equal(order, np.arange(len(order)))
    return pairs if in_order else pairs.take(order).reset_index(drop=True)


def _table(columns: Mapping[str, Column], names: Iterable[str], rows: NDArray[np.bool_]) -> pd.DataFrame:
    """Return these rows of columns as a table."""
    if rows.all():
        return pd.DataFrame({name: columns[name] for name in names})
    return pd.DataFrame({name: columns[name][rows] for name in names})


def _why_unpaired(pairs: pd.DataFrame, baseline: str, variant: str, metric: Metric) -> NDArray[np.object_]:
    """Return why each pair cannot be compared; "" where it can."""
    reasons = np.full(len(pairs), "", dtype=object)
    lacking = (pairs["baseline"].isna() | pairs["variant"].isna()).to_numpy()
    if lacking.any():
        rows = pairs[lacking]
        of_baseline = _why_none(rows["baseline"], rows["state_baseline"], baseline, metric)
        of_variant = _why_none(rows["variant"], rows["state_variant"], variant, metric)
        both = (of_baseline != "") & (of_variant != "")
        reasons[lacking] = of_baseline + np.where(both, "; ", "") + of_variant
    return reasons


def _unpaired(workloads: pd.Series, reasons: NDArray[np.object_]) -> pd.DataFrame:
    """Return the number of repetitions by workload and reason."""
    is_unpaired = reasons != ""
    if not is_unpaired.any():
        nothing = {"workload": workloads[:0], "reason": np.array([], dtype=str)}
        return pd.DataFrame({**nothing, "repetitions": np.array([], dtype=np.int64)})
    left_out = pd.DataFrame({"workload": workloads[is_unpaired], "reason": reasons[is_unpaired]})
    return left_out.groupby(["workload", "reason"], observed=True).size().rename("repetitions").reset_index()


def _points(
    pairs: pd.DataFrame, comparable: NDArray[np.int64], metric: Metric, statistic: str
) -> tuple[dict[str, Column], NDArray[np.int64]]:
    """Return columns by (workload, point) of comparable pairs, and for each of these the row of its point:
    the number of `pairs`, the statistic of each arm, and in how many the `baseline` or the `variant` alone
    timed out, or `both`."""
    workloads = pd.factorize(pairs["workload"])[0][comparable]
    numbers = pairs["point"].to_numpy()[comparable]
    is_first = np.ones(len(comparable), np.bool_)
    is_first[1:] = (workloads[1:] != workloads[:-1]) | (numbers[1:] != numbers[:-1])
    place = is_first.cumsum() - 1
    firsts = np.flatnonzero(is_first)
    arms = {name: pairs[name].to_numpy()[comparable] for name in ("baseline", "variant")}
    table = pd.DataFrame({"place": place, **arms})
    if statistic == P95:
        of_arms = {name: by_group(table, ["place"], name, statistic, metric.more_is_better) for name in arms}
    else:
        of_arms = dict(table.groupby("place").agg(statistic))
    of_baseline, of_variant = (values == metric.worst for values in arms.values())
    kinds = (of_baseline & ~of_variant, of_variant & ~of_baseline, of_baseline & of_variant)
    return {
        **{name: pairs[name].array.take(comparable[firsts]) for name in _POINT},
        "pairs": np.diff(firsts, append=len(comparable)),
        **{name: of_arms[name].to_numpy() for name in arms},
        **{
            name: np.bincount(place[kind], minlength=len(firsts))
            for name, kind in zip(_TIMEOUTS, kinds, strict=True)
        },
    }, place


def _are_below_zero(
    workloads: Column, pairs: pd.DataFrame, comparable: NDArray[np.int64]
) -> NDArray[np.bool_]:
    """Whether a comparable trial of each of these workloads has a value below 0; -∞ is a timeout's."""
    is_below = np.zeros(len(comparable), np.bool_)
    for name in ("baseline", "variant"):
        values = pairs[name].to_numpy()[comparable]
        is_below |= (values < 0) & np.isfinite(values)
    if not is_below.any():
        return np.zeros(len(workloads), np.bool_)
    return np.asarray(workloads.isin(pairs["workload"].array[comparable[is_below]].unique()))


def _why_none(values: pd.Series, states: pd.Series, label: str, metric: Metric) -> pd.Series:
    """Return why each trial of a variant, by its value and its state, cannot be compared; "" where it can."""
    reasons = states.astype(object).fillna("not run").replace("ok", f"no {metric.name}")
    return (f"{label}: " + reasons).mask(values.notna(), "")


def ratio_of(arms: pd.DataFrame, metric: Metric) -> pd.Series:
    """`variant` / `baseline`, NaN for a baseline of 0. It is infinite or 0 where one of them is a timeout, as
    what is worse than the other is greater or less; NaN where both are."""
    baseline, variant = arms["baseline"].to_numpy(np.float64), arms["variant"].to_numpy(np.float64)
    return pd.Series(_ratio(baseline, variant, metric), arms.index)


def _ratio(baseline: Floats, variant: Floats, metric: Metric) -> Floats:
    of_timeout, of_baseline_timeout = (0.0, math.inf) if metric.more_is_better else (math.inf, 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(baseline == 0, math.nan, variant / baseline)
    ratio[variant == metric.worst] = of_timeout
    ratio[baseline == metric.worst] = of_baseline_timeout
    ratio[(baseline == metric.worst) & (variant == metric.worst)] = math.nan
    return ratio


def is_censored(arms: pd.DataFrame, metric: Metric) -> pd.Series:
    """Whether one of `baseline` and `variant` alone is a timeout."""
    return pd.Series(
        _is_censored(arms["baseline"].to_numpy(), arms["variant"].to_numpy(), metric), arms.index
    )


def _is_censored(baseline: Floats, variant: Floats, metric: Metric) -> NDArray[np.bool_]:
    return np.asarray((baseline == metric.worst) != (variant == metric.worst))


def values_of(frame: pd.DataFrame, label: str, metric: Metric) -> pd.DataFrame:
    """Return the value of each trial of a variant (`outcomes.values`, of the same frame), with its state:
    `value` is NaN where it cannot be compared."""
    is_arm = frame["variant"] == label
    return frame.loc[is_arm, [*PAIR, "state"]].assign(value=outcomes.values(frame, metric)[is_arm])


def baseline_of(campaign: CampaignInfo) -> str | None:
    """The label of the variant that those are compared with that name none, if the design has one."""
    return next((variant["label"] for variant in campaign.variants if variant["baseline"]), None)


def baselines_of(campaign: CampaignInfo) -> dict[str, str]:
    """Return the baseline's label of each variant that is compared, in the order of the design: its own,
    or else `baseline_of`, if one timer took the times of both. A variant that a selection
    of arms leaves out is no baseline."""
    usual = baseline_of(campaign)

    def baseline(label: str, own: str | None) -> str | None:
        if own is not None:
            return own
        return usual if usual is not None and campaign.same_timer(label, usual) else None

    compared_with = {
        variant["label"]: baseline(variant["label"], variant.get("compared_with"))
        for variant in campaign.variants
        if not variant["baseline"]
    }
    labels = {variant["label"] for variant in campaign.variants}
    return {label: of_variant for label, of_variant in compared_with.items() if of_variant in labels}


def with_fec(campaign: CampaignInfo) -> dict[str, str]:
    """Return `baselines_of` for variants that have FEC."""
    off = {variant["label"] for variant in campaign.variants if variant["options"].get("scheme") == "none"}
    return {variant: baseline for variant, baseline in baselines_of(campaign).items() if variant not in off}


def to_baseline(campaign: CampaignInfo) -> str:
    """Return the denominator of ratios, in a sentence about several variants."""
    several = len(set(baselines_of(campaign).values())) > 1
    return "of each variant to its own baseline" if several else "to the baseline"


def comparisons(frame: pd.DataFrame, campaign: CampaignInfo) -> dict[str, Pairing]:
    """Each variant compared with its baseline (`baselines_of`) by the metric of each workload; empty without
    a baseline or another variant."""
    return {
        variant: of_arms(frame, campaign, baseline, variant)
        for variant, baseline in baselines_of(campaign).items()
    }


def of_arms(frame: pd.DataFrame, campaign: CampaignInfo, baseline: str, variant: str) -> Pairing:
    """Compare two variants of a campaign by the metric of each workload and the statistic of the design."""
    return paired(
        *(frame, baseline, variant, metrics.of_workloads(campaign)),
        campaign.statistic,
        campaign.averaged_repetitions,
    )


def in_order(rows: pd.DataFrame) -> pd.Series:
    """The ratios of `Pairing.ratios` or `Pairing.matched` as medians are taken of them: the 0 of a timeout is
    -∞, so that no mean of it and a number is taken for a ratio."""
    ratios = rows["ratio"].to_numpy(np.float64)
    is_lowest = (rows["censored"].to_numpy() == 1) & (ratios == 0)  # NaN where a table has none
    return pd.Series(np.where(is_lowest, -math.inf, ratios), rows.index, name="ratio")


def median_ratio(rows: pd.DataFrame) -> float:
    """The median of the ratios of `Pairing.ratios` or `Pairing.matched`, which may be 0 or ∞ (a half of them
    or more is censored on that side); NaN where it may be anything."""
    with np.errstate(invalid="ignore"):  # -∞ and ∞ in the middle
        return max(float(in_order(rows).median()), 0.0)


def median_ratios(rows: pd.DataFrame, by: list[str]) -> pd.Series:
    """Return the `median_ratio` of the rows that have the same values in the columns `by`."""
    return rows.assign(ratio=in_order(rows)).groupby(by, observed=True)["ratio"].median().clip(lower=0)


def left_out(pairing: Pairing, campaign: CampaignInfo, baseline: str, variant: str) -> str:
    """Return sentences about the planned pairs and networks that the ratios of a comparison lack; "" for
    none."""
    planned = campaign.planned_pairs
    compared = len(pairing.matched)
    by_kind = pairing.timeouts[["variant_timeouts", "baseline_timeouts", "both_timeouts"]].sum()
    if compared == planned and not by_kind.any():
        return ""
    sentences = [f"Of {planned} planned pairs of “{variant}” and “{baseline}”, {compared} have a ratio."]
    if by_kind.any():
        alone, of_baseline, both = (int(count) for count in by_kind)
        sentences.append(
            f"“{variant}” alone failed or timed out in {counted(alone, 'pair')}, “{baseline}” alone"
            f" in {of_baseline},"
            f" both in {both}: that counts as worse than any value; which of two is worse, nobody can tell."
        )
    if len(no_ratio := _decided_without_ratio(pairing)):
        equal, better = int(no_ratio["equal"].sum()), int(no_ratio["faster"].sum())
        several = len(campaign.workloads) > 1
        below_zero = pairing.unpaired["reason"].str.endswith(BELOW_ZERO).any()
        why = (
            f"the {campaign.statistic} of “{baseline}” is 0{', or a value is below 0' if below_zero else ''}"
        )
        sentences.append(
            f"In {len(no_ratio)} of {len(campaign.points) * len(campaign.workloads)}"
            f" {'cases (workloads in networks)' if several else 'networks'} there is no ratio, since"
            f" {why}: that of “{variant}” is the same in {equal}, better"
            f" in {better}, and worse in {len(no_ratio) - equal - better}."
        )
    return " ".join(sentences)


def _decided_without_ratio(pairing: Pairing) -> pd.DataFrame:
    """Return the rows of `Pairing.decided` that have no ratio."""
    with_ratio = pairing.ratios.set_index(_POINT).index
    return pairing.decided[~pairing.decided.set_index(_POINT).index.isin(with_ratio)]
