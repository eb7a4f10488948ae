"""The findings of a campaign, as a table and in sentences for a person."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pandas as pd

from fecbench.results import metrics
from fecbench.results.analysis import comparison
from fecbench.results.analysis.intervals import why_undecided
from fecbench.results.analysis.margins import percent
from fecbench.results.analysis.pairing import Pairing, comparisons, left_out
from fecbench.results.analysis.summary import summary
from fecbench.results.analysis.workload_names import workload_names
from fecbench.results.metrics import Metric
from fecbench.results.metrics.units import ratio_text
from fecbench.results.store.records import CampaignInfo


def findings(
    frame: pd.DataFrame,
    campaign: CampaignInfo,
    ratios: pd.DataFrame | None = None,
    pairings: Mapping[str, Pairing] | None = None,
) -> pd.DataFrame:
    """Return the findings of a campaign, one row a (workload, variant): the columns of `summary.summary`
    and those of `comparison.of_pairings` that the summary has not; NaN for a variant that is compared
    with none.

    `ratios` and `pairings`: `ratios.ratio_table` and `pairing.comparisons`, where they were made before.
    """
    pairings = comparisons(frame, campaign) if pairings is None else pairings
    table = summary(frame, campaign, pairings)
    compared = comparison.of_pairings(pairings, campaign, ratios, frame)
    key = ["workload", "variant"]
    new = [column for column in comparison.COLUMNS if column in key or column not in table]
    return table.merge(compared[new], how="left", on=key)


def headline(
    frame: pd.DataFrame,
    campaign: CampaignInfo,
    table: pd.DataFrame,
    run: pd.DataFrame | None = None,
    pairings: Mapping[str, Pairing] | None = None,
) -> list[str]:
    """Return the findings (`findings`) in a few sentences; that of each variant says what its ratios lack.

    `run`: all trials that were run, where those compared are some of them. `pairings`: as `findings` has
    them.
    """
    pairings = comparisons(frame, campaign) if pairings is None else pairings
    run = frame if run is None else run
    ok, planned = int((run["state"] == "ok").sum()), campaign.planned_trials
    counts = f"(not ok: {len(run) - ok}, not run: {planned - len(run)})"
    sentences = [f"{ok} of {planned} planned trials are ok {counts}."]
    for variant, pairing in pairings.items():
        rows = table.query("variant == @variant and compared_points > 0")
        of_variant = [
            *_where_it_helps(rows, pairing, campaign),
            left_out(pairing, campaign, pairing.baseline_label, variant),
        ]
        if sentence := " ".join(filter(None, of_variant)):
            sentences.append(sentence)
    if not table["compared_points"].any():
        sentences.append("No variant could be compared with a baseline.")
    return sentences


def _where_it_helps(rows: pd.DataFrame, pairing: Pairing, campaign: CampaignInfo) -> Iterator[str]:
    """A sentence for each workload, the first of which names the variant and its baseline."""
    names, of_workloads = workload_names(campaign), metrics.of_workloads(campaign)
    subject = f"{pairing.variant_label} against {pairing.baseline_label}, "
    for row in rows.itertuples(index=False):
        metric = metrics.of(of_workloads[str(row.workload)])
        yield f"{subject}{names[str(row.workload)]}: {'; '.join(_parts(row, metric))}."
        subject = ""


def _parts(row: Any, metric: Metric) -> Iterator[str]:
    """The counts, the ratio, and that of the slow trials."""
    if not row.points:
        yield f"in all {_networks(row.compared_points, row)} there is no {metric.ratio}"
        return
    if row.by_chance:
        yield (
            f"helps in {row.helps:.0f} of {_networks(row.points, row)} by more than {percent(row.margin)},"
            f" harms in {row.harms:.0f}, no difference in {row.equivalent:.0f}, undecided in"
            f" {row.undecided:.0f}"
        )
    else:
        yield f"undecided in all {_networks(row.points, row)}: {why_undecided(row.statistic)}"
    some = f" in the {row.points} that have one" if row.points < row.compared_points else ""
    yield f"{row.average} {metric.ratio} {ratio_text(row.ratio, row.ratio_low, row.ratio_high)}{some}"
    if not pd.isna(row.p95_low):
        yield f"ratio of the p95 {ratio_text(row.p95_ratio, row.p95_low, row.p95_high)}"


def _networks(count: int, row: Any) -> str:
    """Return how many networks were compared, and how many were planned."""
    networks = f"{count} network{'s' if count != 1 else ''}"
    return f"{networks} (planned: {row.planned_points})" if count < row.planned_points else networks
