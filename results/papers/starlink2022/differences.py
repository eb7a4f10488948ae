"""Differences between our experiment and that of the slides, and the sources of its strata."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pandas as pd

from fecbench.results.analysis.pairing import with_fec
from fecbench.results.papers.claim import shown
from fecbench.results.papers.queues import queue_in_words
from fecbench.results.papers.starlink2022.slides import LAST, STATISTICS, TABLE
from fecbench.results.papers.starlink2022.strata import (
    bursts,
    in_stratum,
    own_pairs,
    pairs,
    quantile,
)
from fecbench.results.store.records import CampaignInfo

_REPAIR = "client.repair_sent"


def differences(frame: pd.DataFrame, campaign: CampaignInfo) -> list[str]:
    slides = TABLE["all", "median"].without_ms
    return [
        "The slides measured over Starlink, with quiche; here there is the emulated link alone, of which the"
        f" queue {queue_in_words(campaign)}. Their median without FEC is {slides:.0f} ms; ours stand above."
        " They say neither how many uploads there were, nor how long bursts of losses are, nor which code and"
        " how much repair they sent.",
        *_strata(frame, campaign),
        *_repair(frame, campaign),
    ]


def _strata(frame: pd.DataFrame, campaign: CampaignInfo) -> Iterator[str]:
    """Both ways: strata of the baseline's losses, and of each arm's own."""
    for variant, baseline in with_fec(campaign).items():
        of_lengths = []
        own, of_baseline = own_pairs(frame, baseline, variant), pairs(frame, baseline, variant)
        for point, burst in bursts(campaign).items():
            with_fec_ms = _quantiles(own[own["point"] == point], "variant")
            without_ms = _quantiles(of_baseline[of_baseline["point"] == point], "baseline")
            of_lengths.append(f"{burst}: {with_fec_ms} / {without_ms}")
        yield (
            f"{variant}: strata are of pairs by what {baseline} lost. If each variant is put into them by its"
            f" own losses, which may be of other uploads, the {' and '.join(STATISTICS)} of those {LAST},"
            f" with FEC / without, are, by the mean length of bursts, {'; '.join(of_lengths)}."
        )


def _quantiles(of_pairs: pd.DataFrame, arm: str) -> str:
    times = in_stratum(of_pairs, LAST)[arm].to_numpy(np.float64)
    values = (shown(1e3 * quantile(times, of), ".0f") for of in STATISTICS.values())
    return f"{' and '.join(values)} ms of {len(times)}"


def _repair(frame: pd.DataFrame, campaign: CampaignInfo) -> Iterator[str]:
    if _REPAIR not in frame:
        return
    ok = frame[frame["state"] == "ok"]
    sent = (
        f"{variant} {shown(float(ok.loc[ok['variant'] == variant, _REPAIR].mean()), '.1f')}"
        for variant in with_fec(campaign)
    )
    yield f"Repair packets that a client sent, in the mean: {', '.join(sent)}."
