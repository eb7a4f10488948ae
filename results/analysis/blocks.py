"""A campaign in the field by its blocks: each has every variant once, back to back, in an order drawn anew.

Arms are compared within blocks: the geometric mean of their ratios, with an interval that bears neighbouring
blocks that depend on each other (`dependent`). Beside it is lines whether the order within blocks mattered,
and whether the ratio drifted.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from fecbench.quantities import counted
from fecbench.results.analysis import circle, dependent
from fecbench.results.analysis.pairing import Pairing, baselines_of
from fecbench.results.metrics import of_workloads
from fecbench.results.metrics.units import number
from fecbench.results.store.database import Database
from fecbench.results.store.records import CampaignInfo, TrialRecord

SURELY = 0.05


def with_intervals(pairing: Pairing, level: float, margins: pd.Series) -> pd.DataFrame:
    """Return the rows of `pairing.ratios` with the ratio within blocks, `low`, `high` and `p_value`.

    The ratio is the geometric mean over blocks; the others are NaN for fewer than `dependent.FEWEST` blocks.
    Where a block has no ratio above 0 and below ∞, as where one arm timed out, they are NaN, too, and the
    ratio is that of the statistics. `p_value`: of arms that
    differ by no more than the margin.
    """
    rows = pairing.ratios.assign(low=math.nan, high=math.nan, p_value=math.nan)
    by_place = pairing.matched.sort_values("repetition").groupby(["workload", "point"], observed=True)
    of_rows = zip(rows.index, margins, rows.to_dict("records"), strict=True)
    for index, margin, row in of_rows:
        ratios = by_place.get_group((row["workload"], row["point"]))["ratio"].to_numpy(np.float64)
        if not (np.isfinite(ratios) & (ratios > 0)).all():
            continue
        logs = np.log(ratios)
        mean = float(logs.mean())
        rows.loc[index, "ratio"] = math.exp(mean)
        if len(logs) < dependent.FEWEST:
            continue
        posterior = dependent.mean_of(logs)
        bound = math.copysign(math.log1p(margin), mean)
        is_within = abs(mean) <= abs(bound)
        rows.loc[index, ["low", "high"]] = np.exp(posterior.interval(level))
        rows.loc[index, "p_value"] = 1.0 if is_within else posterior.p_value(bound)
    return rows


@dataclass(frozen=True)
class Course:
    """The ratios of a variant to its baseline over the blocks of one workload."""

    variant: str
    baseline: str
    workload: str
    blocks: int
    left_out: int
    """Blocks without a ratio: a trial of one of the two failed, timed out, is invalid or has 0."""
    order: dependent.Posterior
    """Log of the ratio's change where the variant ran before its baseline."""
    drift: dependent.Posterior
    """Log of the ratio's change from the first block to the last."""


def courses(database: Database, campaign: CampaignInfo) -> list[Course]:
    """Return the course of each comparison with enough blocks."""
    all_courses = []
    for variant, baseline, workload, pairs, left_out in _compared(database, campaign):
        if (course := _course(pairs)) is not None:
            all_courses.append(Course(variant, baseline, workload, len(pairs), left_out, *course))
    return all_courses


class _Pair(NamedTuple):
    """The log of the ratio of a block, and the two trials."""

    log: float
    variant: TrialRecord
    baseline: TrialRecord


def _compared(database: Database, campaign: CampaignInfo) -> Iterator[tuple[str, str, str, list[_Pair], int]]:
    """Yield a variant, its baseline, a workload, the blocks with a ratio as they ran, and how many have none.

    A block counts where it has both trials, whatever became of them. Several networks have
    their first `averaged_repetitions` alone.
    """
    by_repetition: defaultdict[tuple[str, int, int], dict[str, TrialRecord]] = defaultdict(dict)
    for stored in database.trials(campaign.id):
        key = stored.record.key
        if key.repetition < campaign.averaged_repetitions:
            by_repetition[key.workload, key.point, key.repetition][key.variant] = stored.record
    for variant, baseline in baselines_of(campaign).items():
        for workload, metric in of_workloads(campaign).items():
            both = [
                (arms[variant], arms[baseline])
                for (label, _, _), arms in by_repetition.items()
                if label == workload and {variant, baseline} <= arms.keys()
            ]
            pairs = [pair for trials in both if (pair := _pair(*trials, metric)) is not None]
            pairs.sort(key=lambda pair: pair.variant.started_at)
            yield variant, baseline, workload, pairs, len(both) - len(pairs)


def _pair(variant: TrialRecord, baseline: TrialRecord, metric: str) -> _Pair | None:
    """Return the pair; None where one has no value above 0, or they ran in different blocks."""
    values = [_value(record, metric) for record in (variant, baseline)]
    block, other = (record.checks.get("path", {}).get("block", "") for record in (variant, baseline))
    if min(values) <= 0 or block != other:
        return None
    return _Pair(math.log(values[0] / values[1]), variant, baseline)


@dataclass(frozen=True)
class Hour:
    """The ratio of a variant to its baseline within one hour of the day, of all days."""

    variant: str
    baseline: str
    workload: str
    hour: int
    """The hour, in UTC."""
    blocks: int
    left_out: int
    """Blocks of all hours without a ratio, as in `Course`."""
    elsewhere: int
    """Blocks with a ratio in hours that have too few."""
    mean: float
    """The mean of the logs of the ratios."""
    ratio: dependent.Posterior
    """Knowledge of it."""


def hours(database: Database, campaign: CampaignInfo) -> list[Hour]:
    """Return the ratios of each hour that has enough blocks, where two hours or more have."""
    strata = list[Hour]()
    for variant, baseline, workload, pairs, left_out in _compared(database, campaign):
        logs = defaultdict[int, list[float]](list)
        for pair in pairs:
            logs[int(pair.variant.started_at[11:13])].append(pair.log)
        of_hours = {hour: of for hour, of in sorted(logs.items()) if len(of) >= dependent.FEWEST}
        elsewhere = len(pairs) - sum(map(len, of_hours.values()))
        if len(of_hours) > 1:
            strata += [
                Hour(
                    *(variant, baseline, workload, hour, len(of), left_out, elsewhere, float(np.mean(of))),
                    dependent.mean_of(np.array(of)),
                )
                for hour, of in of_hours.items()
            ]
    return strata


def _course(pairs: Sequence[_Pair]) -> tuple[dependent.Posterior, dependent.Posterior] | None:
    """Return the change by the order within blocks, and that over all blocks."""
    logs = np.array([pair.log for pair in pairs])
    earlier = np.array([_place(pair.variant) < _place(pair.baseline) for pair in pairs])
    if len(pairs) < dependent.FEWEST or earlier.all() or not earlier.any():
        return None
    ones, along = np.ones(len(pairs)), np.linspace(-0.5, 0.5, len(pairs))
    order = dependent.coefficient(logs, np.column_stack([ones, earlier.astype(np.float64)]))
    return order, dependent.coefficient(logs, np.column_stack([ones, along]))


def _value(record: TrialRecord, metric: str) -> float:
    """Return the value of the metric; 0 where the trial has none."""
    group, _, name = metric.partition(".")
    return float(record.metrics.get(group, {}).get(name, 0.0)) if record.state == "ok" else 0.0


def _place(record: TrialRecord) -> int:
    return int(record.checks["path"]["place"])


def lead(database: Database, campaign: CampaignInfo) -> str:
    """Return on which path, when, and over how many blocks it was measured; "" for any other engine."""
    if campaign.engine != "field":
        return ""
    records = [stored.record for stored in database.trials(campaign.id)]
    path = campaign.provenance.get("field", {}).get("path", "")
    if not records:
        return f"On the path “{path}”: no block was run yet."
    begin, end = min(r.started_at for r in records), max(r.started_at for r in records)
    blocks = {name for record in records if (name := record.checks.get("path", {}).get("block"))}
    until = end[11:16] if begin[:10] == end[:10] else f"{end[:10]} {end[11:16]}"
    count = counted(len(blocks), "block")
    return f"On the path “{path}”, {begin[:10]} {begin[11:16]} to {until} UTC, over {count}."


def sentences(database: Database, campaign: CampaignInfo) -> list[str]:
    """Return what a reader of a campaign in the field has to know, the `lead` first; nothing of others."""
    if campaign.engine != "field":
        return []
    lines = [lead(database, campaign), _of_path(database, campaign)]
    for course in courses(database, campaign):
        effects = {
            "where it ran before its baseline": course.order,
            "from the first block to the last": course.drift,
        }
        for when, posterior in effects.items():
            low, high = np.exp(posterior.interval(SURELY))
            surely = posterior.p_value() < SURELY
            lines.append(
                f"{course.variant}, {course.workload}: its ratio to {course.baseline}"
                f" {'changed' if surely else 'did not surely change'} {when}: by a factor of"
                f" {number(math.exp(posterior.mean), '.3f')} ({number(low, '.3f')} to {number(high, '.3f')})"
                f"{_without(course.left_out)}."
            )
    lines += _of_hours(hours(database, campaign))
    lines += circle.sentences(database, campaign)
    lines.append(
        "Ratios are geometric means within blocks; where a trial of a block failed, timed out or has 0, they"
        f" are those of the {campaign.statistic}, without an interval. Nobody vouches for the path: other"
        " traffic on it is in the numbers. What was checked are both hosts: processors, sockets, clocks,"
        " addresses and MTU."
    )
    return [sentence for sentence in lines if sentence]


def _of_hours(strata: Sequence[Hour]) -> Iterator[str]:
    """Yield a sentence for each comparison."""
    by_comparison = defaultdict[tuple[str, str, str], list[Hour]](list)
    for one in strata:
        by_comparison[one.variant, one.workload, one.baseline].append(one)
    for (variant, workload, baseline), of in by_comparison.items():
        parts = []
        for one in of:
            low, high = np.exp(one.ratio.interval(SURELY))
            value = number(math.exp(one.mean), ".3f")
            parts.append(
                f"{one.hour:02}: {value} ({number(low, '.3f')} to {number(high, '.3f')},"
                f" {counted(one.blocks, 'block')})"
            )
        if (blocks := of[0].elsewhere) > 0:
            parts.append(f"{counted(blocks, 'block')} in hours with fewer than {dependent.FEWEST}")
        yield (
            f"{variant}, {workload}: ratio to {baseline} by the hour (UTC): {'; '.join(parts)}"
            f"{_without(of[0].left_out)}."
        )


def _without(left_out: int) -> str:
    if not left_out:
        return ""
    return f", without {counted(left_out, 'block', 'that has/that have')} no ratio"


def _of_path(database: Database, campaign: CampaignInfo) -> str:
    """Return what the probes say of the path, in a sentence."""
    paths: list[Mapping[str, Any]] = [
        path for stored in database.trials(campaign.id) if (path := stored.record.checks.get("path"))
    ]
    probes = sum(path["probes"] for path in paths)
    if not probes:
        return ""
    least = min(path["least_rtt_ms"] for path in paths)
    medians = [path["rtt_ms"] for path in paths if path["rtt_ms"] is not None]
    up, down = (sum(path[name] for path in paths) for name in ("lost_up", "lost_down"))
    restless = sum(not path["is_rested"] for path in paths)
    lost_up, lost_down = 100 * up / probes, 100 * down / max(1, probes - up)
    middle = f"{median(medians):.3g}" if medians else "?"
    rest = (
        f"; before {restless:,} of {counted(len(paths), 'transfer')} the queue had not drained"
        if restless
        else ""
    )
    return (
        f"{counted(probes, 'probe')} beside the blocks: round trip {least:.3g} ms at least, {middle}"
        " ms in the middle;"
        f" lost up {lost_up:.2g} %, down {lost_down:.2g} %{rest}."
    )
