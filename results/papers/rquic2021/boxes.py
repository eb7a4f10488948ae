"""The claims of rQUIC's evaluation about completion times and overheads, as Fig. 5 and 7 show them.

Judged as `results.papers.claim` says, those about completion rates by the intervals of
`results.analysis.intervals`: fewer repetitions than these need leave a claim open. There are no claims about
loss rates that the design lacks.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import cache, partial

import numpy as np
import pandas as pd

from fecbench.results import metrics
from fecbench.results.analysis import tolerances
from fecbench.results.analysis.intervals import FEWEST, LEVEL
from fecbench.results.analysis.margins import percent
from fecbench.results.analysis.pairing import values_of
from fecbench.results.papers.claim import Claim, Estimate, Share, beside_stalls
from fecbench.results.papers.forms import claim_of_share, margin_of, ours
from fecbench.results.papers.rquic2021.estimates import (
    Estimates,
    Growth,
    Table,
    all_of,
    at_loss,
    by_place,
    claim_of_growth,
    in_words,
    listed,
    values,
)
from fecbench.results.papers.rquic2021.rates import (
    DCT,
    LOSS,
    MOST_OVERHEAD,
    NETWORKS,
    completion_rates,
    fec_off,
    labels_of,
    loss_rates,
    networks_of,
    overheads,
    variants_with_fec,
)
from fecbench.results.papers.words import CONSIDERABLY, MOST, MUCH, NOTICEABLY, SLIGHTLY, SizeWord
from fecbench.results.store.records import CampaignInfo

_GROWTH_OF_OVERHEAD = Growth(tolerances.SHARE.above, is_share=True)
"""A growth in a count of packets: packets that a busy machine delays are in it all the same."""


def claims_of_boxes(frame: pd.DataFrame, campaign: CampaignInfo, workload: str) -> list[Claim]:
    """§VI-B and C, of what Fig. 5 and 7 show."""
    rates = cache(lambda level: completion_rates(frame, campaign, workload, level))
    overhead = cache(lambda level: overheads(frame, campaign, workload, level))
    is_bulk = workload == "download"
    harm = _harm_of_bulk if is_bulk else _harm_of_pages
    overhead_claims = _bulk_overhead if is_bulk else _page_overhead
    return [
        claim
        for variant in variants_with_fec(campaign)
        for claim in (
            *(harm(frame, rates, campaign, variant) if 0 in loss_rates(campaign) else ()),
            _help(rates, campaign, variant, is_bulk),
            *overhead_claims(overhead, campaign, variant),
            *_order_of_overheads(overhead, campaign, variant, is_bulk),
            *(() if is_bulk else _scatter_of_pages(frame, campaign, variant)),
        )
    ]


def _harm_of_bulk(frame: pd.DataFrame, rates: Table, campaign: CampaignInfo, variant: str) -> Iterator[Claim]:
    lossless, margin = at_loss(rates, "ratio", 0.0, campaign, variant), margin_of(campaign, statistic="mean")
    at = lossless(LEVEL)
    yield Claim(
        f"{variant}: ξ without losses, as more than QUIC's time",
        "“the completion time is slightly larger” (§VI-B)",
        listed(at),
        holds=all_of(lossless, lambda rate: rate.within(1 + margin, 1 + SLIGHTLY)),
        in_direction=all_of(lossless, lambda rate: rate.longer()),
        size=f"longer by at most {percent(SLIGHTLY)}, where less than {percent(margin)} is in the margin",
        ours=values(at),
    )
    claim = Claim(
        f"{variant}: ξ without losses, as harm",
        "“can hardly be appreciated” (§VI-B)",
        listed(at),
        holds=all_of(lossless, lambda rate: rate.below(1 + SLIGHTLY)),
        size=f"below {1 + SLIGHTLY:g}",
        ours=values(at),
    )
    yield beside_stalls(claim, frame[frame[LOSS] == 0], fec_off(campaign), variant)


def _harm_of_pages(
    frame: pd.DataFrame, rates: Table, campaign: CampaignInfo, variant: str
) -> Iterator[Claim]:
    lossless = at_loss(rates, "ratio", 0.0, campaign, variant)
    least, most = 1 / (1 + SLIGHTLY), 1 + SLIGHTLY
    claim = Claim(
        f"{variant}: ξ without losses",
        "“under ideal conditions, the results were similar” (§VI-C)",
        listed(lossless(LEVEL)),
        holds=all_of(lossless, lambda rate: rate.within(least, most)),
        size=f"{least:.3g} to {most:g}",
        ours=values(lossless(LEVEL)),
    )
    yield beside_stalls(claim, frame[frame[LOSS] == 0], fec_off(campaign), variant)


def _help(rates: Table, campaign: CampaignInfo, variant: str, is_bulk: bool) -> Claim:
    word, paper = _HELP[is_bulk]
    by = word.beyond(margin_of(campaign, statistic="mean"))
    places = [
        (network, loss) for network in networks_of(campaign) for loss in loss_rates(campaign) if loss > 0
    ]

    def lossy(level: float) -> dict[str, Estimate]:
        of_places = by_place(rates(level), "ratio", campaign, variant)
        return {f"{network}, {in_words(loss)}": of_places[network, loss] for network, loss in places}

    shown_rates = lossy(LEVEL)
    unsure = [name for name, rate in shown_rates.items() if math.isnan(rate.low)]
    worst = max(shown_rates, key=lambda name: np.nan_to_num(shown_rates[name].high, nan=-math.inf))
    return Claim(
        f"{variant}: ξ wherever packets are lost",
        paper,
        f"reaches farthest at {worst}: {shown_rates[worst]:.2f}"
        + (f"; no interval: {', '.join(unsure)}" if unsure else ""),
        holds=all_of(lossy, lambda rate: rate.shorter(by)),
        in_direction=all_of(lossy, lambda rate: rate.shorter()),
        size=f"below {1 / (1 + by):.3g}",
        ours=ours(shown_rates[worst].value, ".2f"),
    )


_HELP: dict[bool, tuple[SizeWord, str]] = {
    True: (NOTICEABLY, "“clearly outperforms QUIC” for loss rates greater than zero (§VI-B)"),
    False: (CONSIDERABLY, "“strongly improves the QUIC completion times” in the presence of losses (§VI-C)"),
}
"""The paper's words about the help of FEC, by whether transfers are bulk."""


def _bulk_overhead(overhead: Table, campaign: CampaignInfo, variant: str) -> Iterator[Claim]:
    for network, share in at_loss(overhead, "mean", 0.05, campaign, variant)(LEVEL).items():
        claimed = NETWORKS[network].overhead
        words = "“surpassing 25 %”" if claimed == 0.25 else "“above 20 %”"
        yield Claim(
            f"{variant}: overhead over {network} at 5 % loss",
            f"{words} (§VI-B), “slightly greater than 25 %” (§VI-C)",
            f"{share:.1%}",
            holds=share.within(claimed, MOST_OVERHEAD),
            size=f"{percent(claimed)} to {percent(MOST_OVERHEAD)}",
            ours=ours(share.value, ".1%"),
        )


def _page_overhead(overhead: Table, campaign: CampaignInfo, variant: str) -> Iterator[Claim]:
    shares = at_loss(overhead, "mean", 0.05, campaign, variant)
    yield Claim(
        f"{variant}: overhead at 5 % loss",
        "kept “slightly greater than 25 %” (§VI-C)",
        listed(shares(LEVEL), ".1%"),
        holds=all_of(shares, lambda share: share.below(MOST_OVERHEAD)),
        size=f"below {percent(MOST_OVERHEAD)}",
        ours=values(shares(LEVEL), ".1%"),
    )


def _order_of_overheads(
    overhead: Table, campaign: CampaignInfo, variant: str, is_bulk: bool
) -> Iterator[Claim]:
    losses, networks = loss_rates(campaign), networks_of(campaign)

    def of_network(network: str, level: float) -> dict[float, Estimate]:
        shares = by_place(overhead(level), "mean", campaign, variant)
        return {loss: shares[network, loss] for loss in losses}

    if len(losses) > 1:
        rows: dict[str, Estimates] = {network: partial(of_network, network) for network in networks}
        yield claim_of_growth(
            f"{variant}: overhead with the loss rate",
            "“more CPs as the loss rate increases” (§VI-B)" if is_bulk else "as for bulk (§VI-C, Fig. 7d)",
            rows,
            "; ".join(
                f"{network} {' → '.join(f'{share:.1%}' for share in row(LEVEL).values())}"
                for network, row in rows.items()
            ),
            ".1%",
            _GROWTH_OF_OVERHEAD,
        )
    highest = at_loss(overhead, "mean", losses[-1], campaign, variant)
    yield claim_of_growth(
        f"{variant}: overhead with the RTT, at {in_words(losses[-1])} loss",
        "“more CPs … for cellular and satellite” (§VI-B)"
        if is_bulk
        else "“as the RTT increases, the overhead increases” (§VI-C)",
        {"": highest},
        listed(highest(LEVEL), ".1%"),
        ".1%",
        _GROWTH_OF_OVERHEAD,
    )


def _scatter_of_pages(frame: pd.DataFrame, campaign: CampaignInfo, variant: str) -> Iterator[Claim]:
    arms = [_box_heights(frame, campaign, arm) for arm in (fec_off(campaign), variant)]
    without, with_fec = arms[0].align(arms[1])
    is_known = without.notna() & with_fec.notna() & (np.isfinite(without) | np.isfinite(with_fec))
    yield claim_of_share(
        f"{variant}: points with losses at which the boxes are less high than without FEC",
        "“much greater dispersion than rQUIC” (§VI-C)",
        MOST,
        lambda by: Share.of(with_fec * (1 + by) < without, is_known),
        MUCH.beyond(margin_of(campaign, statistic="mean")),
    )


def _box_heights(frame: pd.DataFrame, campaign: CampaignInfo, variant: str) -> pd.Series:
    """Return the distance between the quartiles of DCTs at each point with losses at which the variant
    loaded pages, over the trials that are ok, failed or timed out.

    ∞ where the upper one is a timeout; NaN where the lower one is, too, and for fewer than FEWEST trials.
    """
    pages = frame[frame["workload"].isin(labels_of(campaign, "page")) & (frame[LOSS] > 0)]
    trials = values_of(pages, variant, metrics.of(DCT))
    heights = {
        point: _box_height(sorted(of_point["value"].dropna())) for point, of_point in trials.groupby("point")
    }
    return pd.Series(heights, dtype="float64")


def _box_height(ascending: Sequence[float]) -> float:
    if len(ascending) < FEWEST:
        return math.nan
    return _quantile(ascending, 0.75) - _quantile(ascending, 0.25)


def _quantile(ascending: Sequence[float], share: float) -> float:
    """Return a quantile by linear interpolation, also beside values that are ∞."""
    place = share * (len(ascending) - 1)
    below, above = ascending[math.floor(place)], ascending[math.ceil(place)]
    return below if below == above else below + (place - math.floor(place)) * (above - below)
