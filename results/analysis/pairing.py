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

import numpy as np
import pandas as pd

from fecbench.results import metrics
from fecbench.results.analysis import outcomes
from fecbench.results.analysis.one_host import COLUMNS as HOST_AND_ENGINE
from fecbench.results.analysis.one_host import of_several_hosts
from fecbench.results.analysis.point_statistic import by_group
from fecbench.results.metrics import Metric
from fecbench.results.store.records import FEWEST_OF_P95, P95, CampaignInfo

_POINT = ["workload", "point"]
PAIR = [*_POINT, "repetition"]
"""The columns that compared trials of two variants share."""
_READ = (*PAIR, "variant", "state", *HOST_AND_ENGINE)  # of a frame of trials, besides the metric
OTHER_HOSTS = "ran on different hosts"
"""The reason of a pair that is left out since it would compare hosts as much as variants."""
_TIMEOUTS = ["baseline_timeouts", "variant_timeouts", "both_timeouts"]
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
    """One row a (workload, point) that shows which arm was better: those of `ratios`, and those at which the
    baseline's statistic is 0. `faster`: whether the variant was better, of a time faster, by the statistic;
    `equal`: whether both were the same to the last bit, as they are where nothing is lost in virtual time.
    `baseline_timeouts` and `variant_timeouts` count the repetitions in which that arm alone failed or timed
    out."""
    timeouts: pd.DataFrame
    """One row a (workload, point) with a timeout, whether it has a ratio or not: `baseline_timeouts` and
    `variant_timeouts` count the repetitions in which that arm alone failed or timed out, `both_timeouts` the
    others."""

    def __repr__(self) -> str:
        arms = f"{self.variant_label} / {self.baseline_label}"
        return f"<{arms}: {len(self.ratios)} ratios of {len(self.matched)} pairs>"

    def _repr_html_(self) -> str:
        from fecbench.results.analysis.cards import of_pairing  # loaded where a notebook shows it

        return of_pairing(self)


def paired(
    frame: pd.DataFrame,
    baseline: str,
    variant: str,
    metric: str | Mapping[str, str] = metrics.DEFAULT,
    statistic: str = "median",
) -> Pairing:
    """Compare two variants in each workload and point, over the repetitions in which each is ok, failed or
    timed out.

    `metric` names the metric for all workloads, or for each by its label. The ratio is that of the statistics
    (of `point_statistic.STATISTICS`) over these repetitions (Networking 2019, §IV-A: the median DCT of the
    runs of a configuration is considered), not the statistic of ratios. A point is unpaired as a whole where
    it has no ratio: where both statistics are timeouts, where the baseline's is 0, since its other
    repetitions are those in which the metric was greater, and where there are too few repetitions for a p95.
    """
    frame = _read(frame, [metric] if isinstance(metric, str) else metric.values())
    if isinstance(metric, str):
        return _paired_by(metrics.of(metric), frame, baseline, variant, statistic)
    parts = [
        _paired_by(metrics.of(name), frame[frame["workload"].isin(labels)], baseline, variant, statistic)
        for name, labels in metrics.labels_of_metrics(metric).items()
    ]
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
    counts_as = outcomes.values(frame, metric)
    trials = frame[[*PAIR, "state"]].assign(value=counts_as)
    pairs = _beside(*(trials[frame["variant"] == label] for label in (baseline, variant)))
    values = {"value_baseline": "baseline", "value_variant": "variant"}
    pairs = pairs.rename(columns=values).sort_values(PAIR, ignore_index=True).assign(reason="")
    lacking = pairs[pairs["baseline"].isna() | pairs["variant"].isna()]
    if len(lacking):
        of_baseline = _why_none(lacking["baseline"], lacking["state_baseline"], baseline, metric)
        of_variant = _why_none(lacking["variant"], lacking["state_variant"], variant, metric)
        both = (of_baseline != "") & (of_variant != "")
        pairs.loc[lacking.index, "reason"] = of_baseline + np.where(both, "; ", "") + of_variant
    elsewhere = of_several_hosts(frame, [baseline, variant])
    if len(elsewhere):
        of_several = pairs.set_index(PAIR).index.isin(elsewhere)
        pairs.loc[of_several & (pairs["reason"] == ""), "reason"] = f"{baseline} and {variant}: {OTHER_HOSTS}"
    comparable = pairs["reason"] == ""
    points = _points(pairs[comparable], metric, statistic)
    unknown = (points["baseline"] == metric.worst) & (points["variant"] == metric.worst)
    for without, reason in (
        (unknown, f"{baseline} and {variant}: {statistic} of {metric.name} is a failure or a timeout"),
        (points["baseline"] == 0, f"{baseline}: {statistic} of {metric.name} is 0"),
        (points["baseline"].isna(), f"fewer than {FEWEST_OF_P95} repetitions have no {statistic}"),
    ):
        if without.any():
            at_point = pairs.set_index(_POINT).index.isin(points.index[without])
            pairs.loc[comparable & at_point, "reason"] = reason
    complete = pairs["reason"] == ""
    matched = pairs.loc[complete, [*PAIR, *values.values()]].reset_index(drop=True)
    ratios = points[~unknown & (points["baseline"] != 0) & points["baseline"].notna()]
    by_kind = points[_TIMEOUTS]
    better = points["variant"].gt if metric.more_is_better else points["variant"].lt
    compared = by_kind.assign(
        faster=better(points["baseline"]), equal=points["variant"] == points["baseline"]
    )
    decided = compared.drop(columns="both_timeouts")[~unknown & points["baseline"].notna()]
    unpaired = pairs[~complete].groupby(["workload", "reason"], observed=True).size()
    return Pairing(
        baseline,
        variant,
        pd.DataFrame(
            {
                "metric": metric.name,
                **ratios[["pairs", "baseline", "variant"]],
                "ratio": ratio_of(ratios, metric),
                "timeouts": by_kind.sum(axis=1)[ratios.index],
                "censored": is_censored(ratios, metric),
            }
        ).reset_index(),
        unpaired.rename("repetitions").reset_index(),
        matched.assign(ratio=ratio_of(matched, metric), censored=is_censored(matched, metric)),
        decided.reset_index(),
        by_kind[by_kind.any(axis=1)].reset_index(),
    )


def _beside(baseline: pd.DataFrame, variant: pd.DataFrame) -> pd.DataFrame:
    """Return the trials of both arms by PAIR. In most campaigns both have the same, in the same order, and
    nothing has to be looked up."""
    first, second = (arm.reset_index(drop=True) for arm in (baseline, variant))
    if not all(first[name].equals(second[name]) for name in PAIR):
        return baseline.merge(variant, how="outer", on=PAIR, suffixes=("_baseline", "_variant"))
    first = first.rename(columns={"state": "state_baseline", "value": "value_baseline"})
    return first.assign(state_variant=second["state"], value_variant=second["value"])


def _points(pairs: pd.DataFrame, metric: Metric, statistic: str) -> pd.DataFrame:
    """Return, of comparable pairs by (workload, point), the number of `pairs`, the statistic of each arm,
    and in how many the `baseline` or the `variant` alone timed out, or `both`."""
    of_baseline, of_variant = (pairs[arm] == metric.worst for arm in ("baseline", "variant"))
    kinds = (of_baseline & ~of_variant, of_variant & ~of_baseline, of_baseline & of_variant)
    counted = pairs.assign(**dict(zip(_TIMEOUTS, kinds, strict=True)))
    by_point = counted.groupby(_POINT, observed=True)
    arms = ["baseline", "variant"]
    columns: list[pd.Series | pd.DataFrame]
    if statistic == P95:
        columns = [by_group(counted, _POINT, arm, statistic, metric.more_is_better) for arm in arms]
    else:
        columns = [by_point[arms].agg(statistic)]
    return pd.concat([by_point.size().rename("pairs"), *columns, by_point[_TIMEOUTS].sum()], axis=1)


def _why_none(values: pd.Series, states: pd.Series, label: str, metric: Metric) -> pd.Series:
    """Return why each trial of a variant, by its value and its state, cannot be compared; "" where it can."""
    reasons = states.astype(object).fillna("not run").replace("ok", f"no {metric.name}")
    return (f"{label}: " + reasons).mask(values.notna(), "")


def ratio_of(arms: pd.DataFrame, metric: Metric) -> pd.Series:
    """`variant` / `baseline`, NaN for a baseline of 0. It is infinite or 0 where one of them is a timeout, as
    what is worse than the other is greater or less; NaN where both are."""
    baseline, variant = arms["baseline"].to_numpy(np.float64), arms["variant"].to_numpy(np.float64)
    of_timeout, of_baseline_timeout = (0.0, math.inf) if metric.more_is_better else (math.inf, 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(baseline == 0, math.nan, variant / baseline)
    ratio[variant == metric.worst] = of_timeout
    ratio[baseline == metric.worst] = of_baseline_timeout
    ratio[(baseline == metric.worst) & (variant == metric.worst)] = math.nan
    return pd.Series(ratio, arms.index)


def is_censored(arms: pd.DataFrame, metric: Metric) -> pd.Series:
    """Whether one of `baseline` and `variant` alone is a timeout."""
    return (arms["baseline"] == metric.worst) != (arms["variant"] == metric.worst)


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
    or else `baseline_of`, if one timer took the times of both."""
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
    return {label: of_variant for label, of_variant in compared_with.items() if of_variant}


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
    of_workloads = metrics.of_workloads(campaign)
    return {
        variant: paired(frame, baseline, variant, of_workloads, campaign.statistic)
        for variant, baseline in baselines_of(campaign).items()
    }


def in_order(rows: pd.DataFrame) -> pd.Series:
    """The ratios of `Pairing.ratios` or `Pairing.matched` as medians are taken of them: the 0 of a timeout is
    -∞, so that no mean of it and a number is taken for a ratio."""
    is_lowest = rows["censored"].eq(True) & (rows["ratio"] == 0)
    return rows["ratio"].mask(is_lowest, -math.inf)


def median_ratio(rows: pd.DataFrame) -> float:
    """The median of the ratios of `Pairing.ratios` or `Pairing.matched`, which may be 0 or ∞ (a half of them
    or more is censored on that side); NaN where it may be anything."""
    with np.errstate(invalid="ignore"):  # -∞ and ∞ in the middle
        return max(float(in_order(rows).median()), 0.0)


def median_ratios(rows: pd.DataFrame, by: list[str]) -> pd.Series:
    """Return the `median_ratio` of the rows that have the same values in the columns `by`."""
    return rows.assign(ratio=in_order(rows)).groupby(by, observed=True)["ratio"].median().clip(lower=0)


def left_out(pairing: Pairing, campaign: CampaignInfo, baseline: str, variant: str) -> str:
    """Return a sentence about the planned pairs that the ratios of a comparison lack; "" for none."""
    planned = campaign.planned_pairs
    compared = len(pairing.matched)
    by_kind = pairing.timeouts[["variant_timeouts", "baseline_timeouts", "both_timeouts"]].sum()
    if compared == planned and not by_kind.any():
        return ""
    sentence = f"Of {planned} planned pairs of “{variant}” and “{baseline}”, {compared} have a ratio."
    if not by_kind.any():
        return sentence
    alone, of_baseline, both = (int(count) for count in by_kind)
    return (
        f"{sentence} “{variant}” alone failed or timed out in {alone} pairs, “{baseline}” alone in"
        f" {of_baseline}, both in {both}: that counts as worse than any value; which of two is worse, nobody"
        " can tell."
    )
