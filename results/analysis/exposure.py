"""Trials that met an outage of a link: they sent something while it was out.

A transfer that had ended before meets none. A variant that is slower is still under way more often, so two
variants may differ in what happened to them, and not in how they bear it. Then their ratio answers another
question than the design asks.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any

import pandas as pd

from fecbench.quantities import counted
from fecbench.results.analysis import frames, outcomes
from fecbench.results.analysis.pairing import PAIR, baselines_of
from fecbench.results.store.database import Database
from fecbench.results.store.records import CampaignInfo

COLUMNS = ("workload", "variant", "trials", "met_outage", "compared_with", "pairs", "alone", "spared")

_DROPPED = ".outage_dropped"


def may_be_out(campaign: CampaignInfo) -> bool:
    """Whether its design speaks of outages; to read what links counted takes time."""
    return "outage_" in campaign.design_text


def of_campaign(database: Database, campaign: CampaignInfo) -> pd.DataFrame:
    """The `exposure` of its trials; without a row where no link of the design is ever out."""
    if not may_be_out(campaign):
        return pd.DataFrame(columns=list(COLUMNS))
    return exposure(frames.trials(database, campaign, [], harness=True), campaign)


def exposure(frame: pd.DataFrame, campaign: CampaignInfo) -> pd.DataFrame:
    """One row a (workload, variant), of trials with what the harness measured; none if none met an outage.

    Columns: `workload`, `variant`, the `trials` that are ok, failed or timed out, how many of these
    `met_outage`; `compared_with`, the baseline's label, "" where there is none; with it, how many `pairs`
    there are, in how many of them the variant met an outage `alone`, and in how many the baseline alone did
    (`spared`).
    """
    dropped = [name for name in frame.columns if name.endswith(_DROPPED)]
    run = frame[frame["state"].isin(outcomes.COUNTED)]
    exposed = run[[*PAIR, "variant"]].assign(met=run[dropped].gt(0).any(axis=1))
    rows = []
    if exposed["met"].any():
        baselines = baselines_of(campaign)
        for workload in (workload["label"] for workload in campaign.workloads):
            of_workload = exposed[exposed["workload"] == workload]
            for variant in (variant["label"] for variant in campaign.variants):
                arm = of_workload[of_workload["variant"] == variant]
                rows.append(
                    {
                        "workload": workload,
                        "variant": variant,
                        "trials": len(arm),
                        "met_outage": int(arm["met"].sum()),
                        **_against(arm, of_workload, baselines.get(variant, "")),
                    }
                )
    return pd.DataFrame(rows, columns=list(COLUMNS))


def _against(arm: pd.DataFrame, of_workload: pd.DataFrame, baseline: str) -> dict[str, object]:
    pairs = arm.merge(of_workload[of_workload["variant"] == baseline], on=PAIR, suffixes=("", "_baseline"))
    variant, other = pairs["met"].astype(bool), pairs["met_baseline"].astype(bool)
    return {
        "compared_with": baseline,
        "pairs": len(pairs),
        "alone": int((variant & ~other).sum()),
        "spared": int((other & ~variant).sum()),
    }


def sentences(table: pd.DataFrame) -> list[str]:
    """A warning for each comparison whose two arms did not meet the same outages."""
    return [_warning(row) for row in table.to_dict("records") if row["alone"] + row["spared"]]


def _warning(row: Mapping[Hashable, Any]) -> str:
    variant, baseline = row["variant"], row["compared_with"]
    alone = f"{variant} alone in {row['alone']}, {baseline} alone in {row['spared']}"
    pairs = f"{row['alone'] + row['spared']:,} of {counted(row['pairs'], 'pair')}"
    return (
        f"{variant} against {baseline}, {row['workload']}: in {pairs} one trial met an outage that the"
        f" other was spared ({alone}). Their ratio is not only how the two bear an outage: a design should"
        " place it where no transfer has ended."
    )
