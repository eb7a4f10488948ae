"""Disturbances of valid trials by the machine, by arm: how long endpoints lacked the processor, how late
links were.

A valid trial may have been disturbed, within bounds. A disturbance of both arms alike is in no ratio. An arm
that takes more of the processor may be disturbed more, and then the machine is in the ratio.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import pandas as pd

from fecbench.results import metrics
from fecbench.results.analysis.pairing import baselines_of
from fecbench.results.store.records import CampaignInfo

UNEQUAL = 0.01
"""The difference of median shares of time from which a warning is given: a fifth of the share for which a
valid trial may have stalled."""
_VALID = ("ok", "timeout", "failed")


def by_variant(frame: pd.DataFrame, campaign: CampaignInfo) -> pd.DataFrame:
    """One row a variant of the design, over its trials that are valid and of which stalls are known.

    `frame`: `frames.trials` with what the harness measured. Columns: `variant`, `trials`; `stalled`, how many
    were kept from running at all, and of all of them the median `stalled_share` of the completion time
    (`client.dct_s`), and `stalled_p95_ms` and `stalled_max_ms`; `late`, in how many a packet left its link
    later than the link's bound, and `late_max_ms`, by how much at most; `stolen_max_ms` by a hypervisor. NaN
    for what is not known. Empty in virtual time, in which nothing disturbs a trial.
    """
    rows = []
    if campaign.engine == "emulated":
        measured = frame[frame["state"].isin(_VALID) & frame["stalled_s"].notna()]
        rows = [
            {"variant": label, **_of_variant(measured[measured["variant"] == label])}
            for label in (variant["label"] for variant in campaign.variants)
        ]
    columns = ("trials", "stalled", "stalled_share", "stalled_p95_ms", "stalled_max_ms")
    return pd.DataFrame(rows, columns=["variant", *columns, "late", "late_max_ms", "stolen_max_ms"])


def _of_variant(trials: pd.DataFrame) -> dict[str, Any]:
    stalled_ms = 1e3 * trials["stalled_s"]
    late_ms = trials["late_max_ms"]
    return {
        "trials": len(trials),
        "stalled": int((stalled_ms > 0).sum()),
        "stalled_share": _median_share(trials),
        "stalled_p95_ms": stalled_ms.quantile(0.95),
        "stalled_max_ms": stalled_ms.max(),
        "late": int((late_ms > 0).sum()) if late_ms.notna().any() else math.nan,
        "late_max_ms": late_ms.max(),
        "stolen_max_ms": 1e3 * trials["stolen_s"].max(),
    }


def _median_share(trials: pd.DataFrame) -> float:
    if metrics.DEFAULT not in trials:
        return math.nan
    return float((trials["stalled_s"] / trials[metrics.DEFAULT]).median())


def warnings(table: pd.DataFrame, campaign: CampaignInfo) -> list[str]:
    """A sentence for each variant that stalled for another share of its time than its baseline."""
    share: Mapping[str, float] = dict(zip(table["variant"], table["stalled_share"], strict=True))
    return [
        f"{variant} stalled for {100 * share[variant]:.1f} % of its time, {baseline} for"
        f" {100 * share[baseline]:.1f} % (medians): the machine may have made a difference between them, or"
        " hidden one."
        for variant, baseline in baselines_of(campaign).items()
        if variant in share and baseline in share and abs(share[variant] - share[baseline]) > UNEQUAL
    ]
