"""Completion rates ξ and overheads Ô, by network: what rQUIC's figures show and its claims are about.

Both are of one kind of workload, `download` or `page`, and of each variant with FEC.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pandas as pd

from fecbench.results.analysis import frames
from fecbench.results.analysis.intervals import LEVEL, ratio_intervals
from fecbench.results.analysis.pairing import baseline_of, paired
from fecbench.results.figures.nothing import NothingToDraw
from fecbench.results.papers.claim import Estimate
from fecbench.results.papers.words import SLIGHTLY
from fecbench.results.store.records import CampaignInfo

DCT = "client.dct_s"
LOSS = "loss.p"
BTO = "option.bto_ms"
OVERHEAD = "server.overhead"  # equation (5); the server sends the data

# §VI-B: the bounds of ξ hold where the loss rate is "greater than 1 %".
BOUNDED_FROM_LOSS = 0.02
# "Slightly greater than 25 %" (§VI-C).
MOST_OVERHEAD = 0.25 * (1 + SLIGHTLY)


@dataclass(frozen=True)
class Network:
    """A network of §VI-A, and what the paper measured in it."""

    rtt_ms: float
    size_bytes: int
    """The size of bulk transfers."""
    bound: float
    """The bound below which ξ of bulk transfers stays from 2 % loss on (§VI-B)."""
    overhead: float
    """The bound above which Ô of bulk transfers is at 5 % loss (§VI-B)."""
    best_bto_ms: dict[str, float]
    """The buffer timeout of the lowest ξ, by workload (§VI-E)."""


NETWORKS = {
    "Wi-Fi": Network(25, 20 * 2**20, 0.5, 0.20, {"page": 90, "download": 300}),
    "cellular": Network(100, 20 * 2**20, 0.7, 0.20, {"page": 240, "download": 400}),
    "satellite": Network(400, 5 * 2**20, 0.8, 0.25, {"page": 700, "download": 2500}),
}


def completion_rates(
    frame: pd.DataFrame, campaign: CampaignInfo, workload: str, level: float = LEVEL
) -> pd.DataFrame:
    """The completion rate ξ, equation (4), of each variant with FEC at each point, for workloads so named.

    ξ is the mean DCT with FEC divided by that without, as `pairing.paired` takes it: ∞ or 0 where one arm
    failed or timed out. Columns: those of `intervals.ratio_intervals` (`ratio` is ξ; the intervals have the
    confidence 1 - `level`), `variant`, and the factors of the point.
    """
    networks_of(campaign)
    trials = frame[frame["workload"].isin(labels_of(campaign, workload))]
    baseline = fec_off(campaign)
    of_variants = [
        ratio_intervals(paired(trials, baseline, variant, DCT, "mean"), "mean", level).assign(variant=variant)
        for variant in variants_with_fec(campaign)
    ]
    rates = pd.concat(of_variants, ignore_index=True).merge(frames.points(campaign), on="point")
    if rates.empty:
        raise NothingToDraw(
            f"No {workload} is ok with and without FEC in the same repetition, so there is no rate ξ."
        )
    return rates


def overheads(
    frame: pd.DataFrame, campaign: CampaignInfo, workload: str, level: float = LEVEL
) -> pd.DataFrame:
    """The overhead Ô, equation (5), of the ok trials with FEC: one row a (variant, network, loss.p).

    Columns: `mean`, its interval `low` to `high` by Student's t, of confidence 1 - `level` (NaN below FEWEST
    trials), and `trials`.
    """
    trials = ok_trials(frame, campaign, workload)
    trials = trials[trials["variant"].isin(variants_with_fec(campaign))]
    if OVERHEAD not in trials or trials[OVERHEAD].isna().all():
        raise NothingToDraw(f"No ok {workload} measured {OVERHEAD}, so there is no overhead.")
    by_rate = trials.dropna(subset=OVERHEAD).groupby(["variant", "network", LOSS], observed=True)[OVERHEAD]
    rows = []
    for (variant, network, loss), values in by_rate:
        mean = Estimate.of_mean(values, level)
        rows.append((variant, network, loss, mean.value, mean.low, mean.high, len(values)))
    return pd.DataFrame(rows, columns=["variant", "network", LOSS, "mean", "low", "high", "trials"])


def ok_trials(frame: pd.DataFrame, campaign: CampaignInfo, workload: str) -> pd.DataFrame:
    """The ok trials of workloads so named."""
    return frame[(frame["state"] == "ok") & frame["workload"].isin(labels_of(campaign, workload))]


def networks_of(campaign: CampaignInfo) -> list[str]:
    """The paper's networks that the design has, by RTT."""
    names = [name for name in NETWORKS if any(point.get("network") == name for point in campaign.points)]
    if not names:
        raise NothingToDraw(
            f"No point of this design is in one of the paper's networks: {', '.join(NETWORKS)}."
        )
    return names


def by_network(table: pd.DataFrame, campaign: CampaignInfo) -> Iterator[tuple[str, pd.DataFrame]]:
    """The rows of each of the paper's networks, by RTT."""
    for network in networks_of(campaign):
        yield network, table[table["network"] == network]


def labels_of(campaign: CampaignInfo, workload: str) -> list[str]:
    return [described["label"] for described in campaign.workloads if described["name"] == workload]


def fec_off(campaign: CampaignInfo) -> str:
    """The label of the baseline. Raises NothingToDraw when the design names none."""
    label = baseline_of(campaign)
    if label is None:
        raise NothingToDraw("No variant of this design is a baseline, so nothing shows what FEC changed.")
    return label


def variants_with_fec(campaign: CampaignInfo) -> list[str]:
    baseline = fec_off(campaign)
    return [variant["label"] for variant in campaign.variants if variant["label"] != baseline]


def loss_rates(campaign: CampaignInfo) -> list[float]:
    return sorted({float(point[LOSS]) for point in campaign.points})
