"""Tidy data frames of a campaign, and the comparison of variants that they allow.

Only trials in state ok ever enter a comparison; what is left out is counted with its reason.
"""

from __future__ import annotations

import math
import os
from collections.abc import Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import astuple, dataclass
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from results.analysis.harness import frame as harness_frame
from results.analysis.harness import in_order
from results.store import arrow
from results.store.database import Database, DatabaseError
from results.store.records import STATES, TRIAL_COLUMNS, CampaignInfo, TrialSeries
from results.store.series import unpack

DCT = "client.dct_s"

_Values = np.ndarray[Any, np.dtype[np.float64]]
_Ids = np.ndarray[Any, np.dtype[np.int64]]

_POINT = ["workload", "point"]
_PAIR = [*_POINT, "repetition"]
_ENDPOINTS = ("client.", "server.", "background_client.", "background_server.", "competition.")
_PAGE_TRIALS = 10_000  # read at once


@dataclass(frozen=True)
class Pairing:
    """A variant compared with a baseline that met the same losses.

    ratios: one row a (workload, point): `pairs` (repetitions compared), `baseline` and `variant` (the
    metric's statistic over these repetitions), and `ratio` = variant / baseline.
    `timeouts` counts the repetitions in which one arm alone timed out: what the ratio does not hold.
    unpaired: one row a (workload, reason): `repetitions` that could not be compared.
    matched: one row a (workload, point, repetition) that was compared, in this order: the metric's values
    `baseline` and `variant`, and their `ratio`, NaN for a baseline of 0.
    decided: one row a (workload, point) of which a repetition tells which arm took longer, because both are
    ok or because one alone timed out. `baseline_timeouts` and `variant_timeouts` count the latter. `faster`:
    whether the variant's statistic is below the baseline's when a timeout is longer than any time. Of use for
    a metric that is a time.
    """

    ratios: pd.DataFrame
    unpaired: pd.DataFrame
    matched: pd.DataFrame
    decided: pd.DataFrame


def trials(
    database: Database,
    campaign: CampaignInfo,
    metrics: Collection[str] | None = None,
    harness: bool | None = None,
) -> pd.DataFrame:
    """One row a trial, sorted by variant, workload, point and repetition, in the order of the design.

    Columns: those of the trial, the factors of its point (`bandwidth_mbps`, `loss.p`, …), the parameters of
    its workload (`size_bytes`, …), its metrics (`client.dct_s`, …), NaN where a trial has none, and what the
    harness itself measured (`results.analysis.harness`), but for names that the design gives to its factors.
    `metrics` names the metrics to read; None reads all. `harness` says whether to read what the harness
    measured; None reads it with all metrics.
    """
    bounds = database.id_range(campaign.id)
    first, last = bounds or (0, -1)
    pages = [range(i, min(i + _PAGE_TRIALS, last + 1)) for i in range(first, last + 1, _PAGE_TRIALS)]
    pages.append(range(-1, 0))  # no trial: a campaign without any has the columns too
    with ThreadPoolExecutor(os.cpu_count()) as threads:
        read = list(threads.map(lambda page: _page(database, campaign, page, metrics), pages))
        frame = pd.concat(read).sort_values(["variant", *_PAIR], ignore_index=True)
        measured = pd.DataFrame(index=frame["id"])
        if metrics is None if harness is None else harness:
            of_harness = list(threads.map(lambda page: _harness_page(database, campaign, page), pages))
            measured = pd.concat(of_harness).reindex(frame["id"])
    parameters = pd.DataFrame([workload["parameters"] for workload in campaign.workloads])
    own = list(TRIAL_COLUMNS)
    parts = [
        frame[own],
        pd.DataFrame(campaign.points).iloc[frame["point"]].reset_index(drop=True),
        parameters.iloc[frame["workload"].cat.codes].reset_index(drop=True),
        frame[sorted(frame.columns.drop(own))],
    ]
    table = pd.concat(parts, axis=1)
    others = [name for name in in_order(measured.columns) if name not in table]
    return pd.concat([table, measured[others].reset_index(drop=True)], axis=1)


def points(campaign: CampaignInfo) -> pd.DataFrame:
    """One row a point of the design: `point`, then a column for each factor."""
    frame = pd.DataFrame(campaign.points)
    frame.insert(0, "point", range(len(frame)))
    return frame


def metrics(frame: pd.DataFrame) -> pd.DataFrame:
    """The metrics of `trials` in long form, one row a (trial, metric) that was measured.

    Columns: `id`, the trial's key and its `state`, `metric` ("client.dct_s") and `value`, in the unit that
    the metric's name ends with.
    """
    measured = [name for name in frame.columns if name.startswith(_ENDPOINTS)]
    kept = ["id", "variant", *_PAIR, "state"]
    return frame.melt(kept, measured, var_name="metric").dropna(subset="value", ignore_index=True)


def series(
    database: Database, campaign: CampaignInfo, name: str, columns: Sequence[str] | None = None
) -> pd.DataFrame:
    """The series of that name, one row for each row that an endpoint left of a trial.

    Columns: the trial's `id` and key, `endpoint`, and the columns of the series that are named (None: all),
    NaN where an endpoint did not have one. Trials are in the order of the design, rows in that of the table.

    Raises DatabaseError when a table cannot be read.
    """
    stored, tables = [], []
    for trial in database.series(campaign.id, name):
        stored.append((trial.trial_id, *astuple(trial.key), trial.table.endpoint, trial.table.rows))
        tables.append(_unpacked(database, trial, columns))
    keys = pd.DataFrame(stored, columns=["id", "variant", *_PAIR, "endpoint", "rows"])
    keys = keys.astype(_in_order(campaign)).sort_values(["variant", *_PAIR, "endpoint"])
    values = pa.concat_tables([tables[i] for i in keys.index], promote_options="permissive").to_pandas()
    frame = keys.loc[keys.index.repeat(keys["rows"])].drop(columns="rows").reset_index(drop=True)
    wanted = list(values.columns) if columns is None else columns
    return frame.join(values.reindex(columns=wanted))


def _unpacked(database: Database, trial: TrialSeries, columns: Sequence[str] | None) -> pa.Table:
    try:
        return unpack(trial.table.data, columns)
    except DatabaseError as error:
        raise DatabaseError(f"{database.address}: trial {trial.trial_id}: {error}") from error


def _in_order(campaign: CampaignInfo) -> dict[str, pd.CategoricalDtype]:
    """The types of the columns that are sorted as the design has them."""
    labels: dict[str, list[str]] = {
        "variant": [variant["label"] for variant in campaign.variants],
        "workload": [workload["label"] for workload in campaign.workloads],
    }
    return {name: pd.CategoricalDtype(order, ordered=True) for name, order in labels.items()}


def _page(
    database: Database, campaign: CampaignInfo, ids: range, metrics: Collection[str] | None
) -> pd.DataFrame:
    """The campaign's trials with these ids: TRIAL_COLUMNS, and those metrics that any of them has."""
    trials = arrow.trials(database, campaign.id, ids[0], ids[-1])
    types = _in_order(campaign) | {"state": pd.CategoricalDtype(list(STATES), ordered=True)}
    frame: pd.DataFrame = trials.to_pandas(categories=list(types)).astype(types)
    if frame.empty:
        return frame
    measured = arrow.metrics(database, ids[0], ids[-1], metrics)
    return pd.concat([frame, pd.DataFrame(_columns(frame["id"].to_numpy(), measured))], axis=1)


def _harness_page(database: Database, campaign: CampaignInfo, ids: range) -> pd.DataFrame:
    """What the harness measured of the campaign's trials with these ids, by id."""
    try:
        return harness_frame(arrow.harness(database, campaign.id, ids[0], ids[-1]))
    except ValueError as error:
        where = f"{database.address}: what the harness measured of trials {ids[0]} to {ids[-1]}"
        raise DatabaseError(f"{where} cannot be read: {str(error).splitlines()[0]}") from error


def _columns(trials: _Ids, measured: pa.Table) -> dict[str, _Values]:
    """The rows of `tables.metrics` as a column for each metric that any of these trials has.

    `trials`: their ids, ascending.
    """
    endpoints, of_endpoint = _encoded(measured["endpoint"])
    names, of_name = _encoded(measured["name"])
    column = of_endpoint * len(names) + of_name
    run = measured["trial_id"].to_numpy()
    row = np.searchsorted(trials, run)
    ours = trials.take(row, mode="clip") == run
    values = np.full((len(endpoints) * len(names), len(trials)), np.nan)
    values[column[ours], row[ours]] = measured["value"].to_numpy()[ours]
    found = {
        f"{endpoints[i // len(names)]}.{names[i % len(names)]}": values[i]
        for i in np.flatnonzero(np.bincount(column[ours]))
    }
    return {name: found[name] for name in sorted(found)}


def _encoded(column: pa.ChunkedArray) -> tuple[list[str], _Ids]:
    """The different texts, and for each row the index of its own."""
    encoded = column.combine_chunks().dictionary_encode()
    return encoded.dictionary.to_pylist(), encoded.indices.to_numpy().astype(np.int64)


def paired(
    frame: pd.DataFrame, baseline: str, variant: str, metric: str = DCT, statistic: str = "median"
) -> Pairing:
    """Compare two variants in each workload and point, over the repetitions in which both are ok.

    The ratio is that of the statistics ("median" or "mean") over these repetitions (Networking 2019, §IV-A:
    the median DCT of the runs of a configuration is considered), not the statistic of ratios. There is none
    where the baseline's statistic is 0: such a point is unpaired as a whole, since its other repetitions are
    those in which the metric was greater.
    """
    pairs = _arm(frame, baseline, metric).merge(
        _arm(frame, variant, metric), how="outer", on=_PAIR, suffixes=("_baseline", "_variant")
    )
    missing_baseline = pairs["missing_baseline"].fillna(f"{baseline}: not run")
    missing_variant = pairs["missing_variant"].fillna(f"{variant}: not run")
    pairs["reason"] = (missing_baseline + "; " + missing_variant).str.strip("; ")
    values = {"value_baseline": "baseline", "value_variant": "variant"}
    pairs = pairs.rename(columns=values).sort_values(_PAIR, ignore_index=True)
    both_ok = pairs["reason"] == ""
    of_points = pairs[both_ok].groupby(_POINT, observed=True)["baseline"].agg(statistic)
    at_zero = pairs.set_index(_POINT).index.isin(of_points.index[of_points == 0])
    pairs.loc[both_ok & at_zero, "reason"] = f"{baseline}: {statistic} of {metric} is 0"
    complete = pairs["reason"] == ""
    decided = _decided(pairs, statistic)
    matched = pairs.loc[complete, [*_PAIR, *values.values()]].reset_index(drop=True)
    by_point = matched.groupby(_POINT, observed=True)
    ratios = pd.DataFrame(
        {"pairs": by_point.size(), **{arm: by_point[arm].agg(statistic) for arm in values.values()}}
    )
    for each in (matched, ratios):
        each["ratio"] = each["variant"] / each["baseline"].where(each["baseline"] != 0)
    alone = decided["baseline_timeouts"] + decided["variant_timeouts"]
    ratios["timeouts"] = alone.reindex(ratios.index)  # an empty frame would be given the rows of all
    unpaired = pairs[~complete].groupby(["workload", "reason"], observed=True).size()
    return Pairing(
        ratios.reset_index(), unpaired.rename("repetitions").reset_index(), matched, decided.reset_index()
    )


def _arm(frame: pd.DataFrame, label: str, metric: str) -> pd.DataFrame:
    """The metric's value in each trial of a variant (∞ for a timeout, NaN for no value), and why it cannot be
    compared ("" when it can)."""
    arm = frame[frame["variant"] == label]
    value = arm[metric] if metric in arm else pd.Series(float("nan"), arm.index)
    ok = arm["state"] == "ok"
    missing = (f"{label}: " + arm["state"].astype(str)).mask(ok, "")
    return arm[_PAIR].assign(
        value=value.astype("float64").where(ok).mask(arm["state"] == "timeout", math.inf),
        missing=missing.mask(ok & value.isna(), f"{label}: no {metric}"),
    )


def _decided(pairs: pd.DataFrame, statistic: str) -> pd.DataFrame:
    """`Pairing.decided`, with (workload, point) as its index."""
    timed_out = pairs[["baseline", "variant"]] == math.inf
    known = pairs["baseline"].notna() & pairs["variant"].notna() & ~timed_out.all(axis=1)
    by_point = (
        pairs.assign(baseline_timeouts=timed_out["baseline"], variant_timeouts=timed_out["variant"])
        .loc[known]
        .groupby(_POINT, observed=True)
    )
    decided = by_point[["baseline_timeouts", "variant_timeouts"]].sum()
    baseline, variant = (by_point[arm].agg(statistic) for arm in ("baseline", "variant"))
    return decided.assign(faster=variant < baseline)


def baseline_of(campaign: CampaignInfo) -> str | None:
    """The label of the variant that the others are compared with, if the design names one."""
    return next((variant["label"] for variant in campaign.variants if variant["baseline"]), None)


def comparisons(frame: pd.DataFrame, campaign: CampaignInfo) -> dict[str, Pairing]:
    """The DCT of each variant compared with the baseline's; empty without a baseline or another variant."""
    baseline = baseline_of(campaign)
    if baseline is None:
        return {}
    others = (variant["label"] for variant in campaign.variants if variant["label"] != baseline)
    return {label: paired(frame, baseline, label, DCT, campaign.statistic) for label in others}


def left_out(pairing: Pairing, campaign: CampaignInfo, baseline: str, variant: str) -> str:
    """What the ratios of a comparison lack of the pairs that were planned, in a sentence; "" for nothing."""
    planned = len(campaign.points) * len(campaign.workloads) * campaign.repetitions
    compared = len(pairing.matched)
    if compared == planned:
        return ""
    by_arm = {arm: int(pairing.decided[f"{arm}_timeouts"].sum()) for arm in ("variant", "baseline")}
    alone = (
        f" {variant} alone timed out in {by_arm['variant']} pairs, {baseline} alone in {by_arm['baseline']}:"
        " these are in no ratio."
    )
    sentence = f"Of {planned} planned pairs of {variant} and {baseline}, {compared} have a ratio."
    return sentence + (alone if any(by_arm.values()) else "")


def summary(frame: pd.DataFrame, campaign: CampaignInfo) -> pd.DataFrame:
    """What a campaign found, one row a (workload, variant) of its design.

    Columns: `workload`, `variant`, `trials` that were run, `ok` of them, `median_dct_s` of the ok ones; and
    against the baseline: `points` that have a ratio of the DCT, `planned_points`, `median_ratio` over those
    that have one; `decided_points`, with those at which one arm alone timed out (`Pairing.decided`), and
    `faster`, the share of them at which the variant was faster (NaN where there is none).
    """
    compared = comparisons(frame, campaign)
    dct = frame[DCT] if DCT in frame else pd.Series(float("nan"), frame.index)
    rows = []
    for workload in (workload["label"] for workload in campaign.workloads):
        for variant in (variant["label"] for variant in campaign.variants):
            run = (frame["workload"] == workload) & (frame["variant"] == variant)
            ok = run & (frame["state"] == "ok")
            ratio, faster = _of_workload(compared.get(variant), workload)
            rows.append(
                {
                    "workload": workload,
                    "variant": variant,
                    "trials": int(run.sum()),
                    "ok": int(ok.sum()),
                    "median_dct_s": dct[ok].median(),
                    "points": len(ratio),
                    "planned_points": len(campaign.points) if variant in compared else 0,
                    "median_ratio": ratio.median(),
                    "decided_points": len(faster),
                    "faster": faster.mean(),
                }
            )
    return pd.DataFrame(rows)


def _of_workload(pairing: Pairing | None, workload: str) -> tuple[pd.Series, pd.Series]:
    """The ratio at each point that has one, and whether the variant was faster at each that is decided."""
    if pairing is None:
        return pd.Series(dtype="float64"), pd.Series(dtype="float64")
    ratios, decided = (each[each["workload"] == workload] for each in (pairing.ratios, pairing.decided))
    return ratios["ratio"], decided["faster"]
