"""The ratios of all variants to their baselines as one table, where all workloads compare one metric."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd

from fecbench.results.analysis import frames
from fecbench.results.analysis.intervals import of_campaign
from fecbench.results.analysis.pairing import Pairing
from fecbench.results.metrics import Metric
from fecbench.results.store.records import CampaignInfo


def why_none(compared: Mapping[str, Pairing], campaign: CampaignInfo, metric: Metric) -> str:
    """Say in a sentence why these comparisons (`pairing.comparisons`) have no `ratio_table`; "" where they
    have one."""
    nothing = f"so there is no {metric.ratio} to draw."
    if not compared:
        no_baseline = "No variant of this design is a baseline"
        alone = len(campaign.variants) == 1 and campaign.variants[0]["baseline"]
        return f"{'This design has one variant only' if alone else no_baseline}, {nothing}"
    tables = [(pairing.ratios, pairing.averaged_ratios) for pairing in compared.values()]
    ratios = pd.concat([table for of_variant in tables for table in of_variant])
    zero = f"0 {metric.unit}".strip()
    if ratios.empty:
        return (
            f"No repetition is ok, with {metric.example} above {zero}, for a variant and for its baseline,"
            f" {nothing}"
        )
    if not (ratios["censored"] | np.isfinite(ratios["ratio"]) & (ratios["ratio"] > 0)).all():
        example = metric.example[0].upper() + metric.example[1:]
        return f"{example} of {zero} was measured, {nothing}"
    return ""


def ratio_table(compared: Mapping[str, Pairing], campaign: CampaignInfo) -> pd.DataFrame:
    """One row a (variant, workload, point): `variant`, the columns of `intervals.ratio_intervals`, and each
    factor."""
    of_variants = [
        of_campaign(pairing, campaign).assign(variant=variant)
        for variant, pairing in compared.items()
        if len(pairing.ratios)
    ]
    return pd.concat(of_variants, ignore_index=True).merge(frames.points(campaign), on="point")
