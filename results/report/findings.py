"""What a campaign found, as a table and in sentences for a person."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pandas as pd

from results import metrics
from results.analysis.intervals import LEVEL, SHARES, shares
from results.analysis.pairing import Pairing, comparisons, left_out
from results.analysis.summary import summary
from results.analysis.units import number
from results.figures import workload_names
from results.metrics import Metric
from results.store.records import CampaignInfo


def findings(frame: pd.DataFrame, campaign: CampaignInfo, ratios: pd.DataFrame) -> pd.DataFrame:
    """What a campaign found, one row a (workload, variant): the columns of `summary.summary` and, of
    `intervals.shares`, all but the first two and the median; NaN where no point is compared."""
    kept = [column for column in SHARES if column not in ("points", "median")]
    of_variants = [
        shares(rows)[kept].assign(variant=variant) for variant, rows in _by_variant(ratios, campaign)
    ]
    sure = pd.concat([pd.DataFrame(columns=[*kept, "variant"]), *of_variants])
    table = summary(frame, campaign)
    return table.merge(sure.astype({"workload": str}), how="left", on=["workload", "variant"])


def _by_variant(ratios: pd.DataFrame, campaign: CampaignInfo) -> Iterator[tuple[str, pd.DataFrame]]:
    for variant in campaign.variants:
        rows = ratios[ratios["variant"] == variant["label"]] if len(ratios) else ratios
        if len(rows):
            yield variant["label"], rows


def headline(
    frame: pd.DataFrame, campaign: CampaignInfo, table: pd.DataFrame, run: pd.DataFrame | None = None
) -> list[str]:
    """What the campaign found (`findings`), in a few sentences; each variant's says what its ratios lack.

    `run`: all trials that were run, where those compared are some of them.
    """
    run = frame if run is None else run
    ok, planned = int((run["state"] == "ok").sum()), campaign.planned_trials
    counts = f"(not ok: {len(run) - ok}, not run: {planned - len(run)})"
    sentences = [f"{ok} of {planned} planned trials are ok {counts}."]
    for variant, pairing in comparisons(frame, campaign).items():
        rows = table.query("variant == @variant and decided_points > 0")
        of_variant = [
            *_where_better(rows, pairing, campaign),
            left_out(pairing, campaign, pairing.baseline_label, variant),
        ]
        if sentence := " ".join(filter(None, of_variant)):
            sentences.append(sentence)
    if not table["decided_points"].any():
        sentences.append("No variant could be compared with a baseline.")
    return sentences


def _where_better(rows: pd.DataFrame, pairing: Pairing, campaign: CampaignInfo) -> Iterator[str]:
    """A sentence for each word that workloads have for better: "faster" where they compare a time."""
    names, of_workloads = workload_names(campaign), metrics.of_workloads(campaign)
    equal = pairing.decided.groupby("workload", observed=True)["equal"].sum().to_dict()
    places: dict[str, list[str]] = {}
    for row in rows.itertuples(index=False):
        metric = metrics.of(of_workloads[str(row.workload)])
        place = _place(row, int(equal[str(row.workload)]), names[str(row.workload)], metric)
        places.setdefault(metric.comparative.gain, []).append(place)
    for better, of_word in places.items():
        yield f"{pairing.variant_label} was {better} than {pairing.baseline_label} at {listed(of_word)}."


def _place(row: Any, equal: int, workload: str, metric: Metric) -> str:
    points, planned = row.decided_points, row.planned_points
    of = f"{points} point{'s' if points > 1 else ''}" + (f" (planned: {planned})" if points < planned else "")
    ties = f", equal at {equal}," if equal else ""
    return f"{row.faster * points:.0f} of {of}{ties} for {workload} ({_ratio_of(row, metric)})"


def _ratio_of(row: Any, metric: Metric) -> str:
    if not row.points:
        return f"there is no {metric.ratio}"
    interval = "" if pd.isna(row.low) else f" [{number(row.low)}, {number(row.high)}]"
    some = f" at the {row.points} that have one" if row.points < row.decided_points else ""
    return f"median {metric.ratio} {number(row.median_ratio)}{interval}{some}{_decisions(row)}"


def _decisions(row: Any) -> str:
    """At how many points there is gain and harm; "" where no point is decided."""
    if not row.gain + row.harm > 0:
        return ""
    shares = row.discovered_gain, row.discovered_harm, row.gain, row.harm
    found_gain, found_harm, gain, harm = (f"{share * row.points:.0f}" for share in shares)
    return (
        f"; gain at {found_gain}, harm at {found_harm}, of which {LEVEL:.0%} may be false".replace("%", " %")
        + f"; by each point's interval alone at {gain} and {harm}, of equal arms at about {row.by_chance:.1f}"
    )


def listed(parts: Sequence[str]) -> str:
    return " and ".join(filter(None, [", ".join(parts[:-1]), parts[-1]]))
