"""What a campaign found, one row for each workload and variant of its design."""

from __future__ import annotations

import pandas as pd

from results.analysis.pairing import DCT, Pairing, comparisons
from results.store.database import CampaignInfo


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
