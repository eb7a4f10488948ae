"""Second tries: how many attempts each variant took, and a campaign without the groups that needed one.

A trial that is run until it is valid is kept when it was lucky, and so may be an arm that asks more of the
machine. A group is a (workload, point, repetition): all its variants met the same losses.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping
from typing import Any

import pandas as pd

from fecbench.results.analysis.intervals import LEVEL
from fecbench.results.analysis.pairing import baselines_of
from fecbench.results.analysis.quantiles import fisher, share_interval
from fecbench.results.store.database import Database
from fecbench.results.store.records import STATES, AttemptCount, CampaignInfo

_GROUP = ["workload", "point", "repetition"]


def first_attempts(frame: pd.DataFrame) -> pd.DataFrame:
    """The trials of `frames.trials` but for those of groups in which any was run again, or is invalid."""
    again = (frame["attempt"] > 1) | (frame["state"] == "invalid")
    left_out = again.groupby([frame[column] for column in _GROUP], observed=True).transform("any")
    return frame[~left_out].reset_index(drop=True)


def groups(frame: pd.DataFrame) -> int:
    """Return the number of groups that have a trial in `frames.trials`."""
    return len(frame[_GROUP].drop_duplicates())


def by_variant(
    database: Database, campaign: CampaignInfo, trials: pd.DataFrame | None = None
) -> pd.DataFrame:
    """One row a variant of the design: how often its trials were run, superseded runs included. `trials`:
    `frames.trials`, where they were read before.

    Columns: `variant`, `attempts`, those in each of STATES, `superseded` (those that a later one replaced),
    `retried_groups` (groups in which this variant was run again); `invalid_share` of the attempts, its exact
    binomial interval `low` to `high`, and the `p_value` of Fisher's exact test that its baseline's share is
    the same, NaN for what has none. Attempts of a campaign share a machine: they are not quite independent.
    """
    counts = pd.DataFrame(_counts(database, campaign, trials), columns=AttemptCount._fields)
    superseded = counts["superseded"].astype(bool)
    rows = []
    for label in (variant["label"] for variant in campaign.variants):
        of_variant = counts[counts["variant"] == label]
        counted_runs = counts[(counts["variant"] == label) & ~superseded]
        attempts = int(of_variant["attempts"].sum())
        by_state = {
            str(state): int(of_variant.loc[of_variant["state"] == state, "attempts"].sum())
            for state in STATES
        }
        ends = share_interval(by_state["invalid"], attempts, LEVEL) if attempts else (math.nan, math.nan)
        rows.append(
            {
                "variant": label,
                "attempts": attempts,
                **by_state,
                "superseded": attempts - int(counted_runs["attempts"].sum()),
                "retried_groups": int(counted_runs["again"].sum()),
                "invalid_share": by_state["invalid"] / attempts if attempts else math.nan,
                "low": ends[0],
                "high": ends[1],
            }
        )
    table = pd.DataFrame(rows)
    return table.assign(p_value=_p_values(table, baselines_of(campaign)))


def _counts(database: Database, campaign: CampaignInfo, trials: pd.DataFrame | None) -> list[AttemptCount]:
    """Return `Database.attempt_counts`. It is not asked where trials were read, each a first attempt: then
    none is superseded."""
    if trials is None or (trials["attempt"] > 1).any():
        return database.attempt_counts(campaign.id)
    sizes = trials.groupby(["variant", "state"], observed=True).size().rename("attempts").reset_index()
    return [
        AttemptCount(row["variant"], row["state"], superseded=False, attempts=row["attempts"], again=0)
        for row in sizes.to_dict("records")
    ]


def _p_values(table: pd.DataFrame, baselines: Mapping[str, str]) -> list[float]:
    invalid, valid = table["invalid"].to_list(), (table["attempts"] - table["invalid"]).to_list()
    labels: list[str] = table["variant"].to_list()
    counts = {label: (invalid[i], valid[i]) for i, label in enumerate(labels)}
    return [
        _p_value(of_label, counts[baselines[label]])
        if label in baselines and sum(of_label) and sum(counts[baselines[label]])
        else math.nan
        for label, of_label in counts.items()
    ]


def _p_value(of_variant: tuple[int, int], of_baseline: tuple[int, int]) -> float:
    """Return the p-value that both have the same share of invalid attempts: Fisher's exact test."""
    return fisher(of_variant, of_baseline)


def sentences(table: pd.DataFrame, campaign: CampaignInfo) -> list[str]:
    """Return the sentences of `by_variant`; none where every trial was run once and is valid."""
    if not table[["invalid", "retried_groups"]].to_numpy().any():
        return []
    baselines, rows = baselines_of(campaign), table.to_dict("records")
    shares = "; ".join(
        f"{row['variant']} {share_text(row)}{_against(row['p_value'], baselines.get(row['variant']))}"
        for row in rows
    )
    again = ", ".join(f"{row['variant']} {row['retried_groups']}" for row in rows)
    return [f"Invalid attempts, of all: {shares}.", f"Trials that were run again: {again}."]


def share_text(row: Mapping[Hashable, Any]) -> str:
    """The invalid attempts of a row of `by_variant`, with their share and its interval."""
    if not row["attempts"]:
        return "0 of 0"
    share, low, high = (f"{100 * row[name]:.1f} %" for name in ("invalid_share", "low", "high"))
    return f"{row['invalid']} of {row['attempts']} ({share}, {low} to {high})"


def _against(p_value: float, baseline: str | None) -> str:
    return "" if math.isnan(p_value) else f", p = {p_value:.2g} against {baseline}"
