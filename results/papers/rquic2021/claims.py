"""The claims of rQUIC's evaluation, judged by our trials.

Judged as `results.papers.claims` says, those about completion rates by their bootstrap intervals
(`results.analysis.intervals`): fewer repetitions than these need leave a claim open.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd

from results.analysis.intervals import FEWEST
from results.papers.claims import Claim, Estimate, Share, all_hold, one_holds, shown
from results.papers.rquic2021.rates import (
    BOUNDED_FROM_LOSS,
    BTO,
    DCT,
    LOSS,
    MOST_OVERHEAD,
    NETWORKS,
    completion_rates,
    fec_off,
    loss_rates,
    networks_of,
    ok_trials,
    overheads,
    variants_with_fec,
)
from results.store.records import CampaignInfo

_DEFAULT_BTO_MS = 25
# Ours: "it can hardly be appreciated" is the paper's measure of harm without losses.
_HARMLESS = 1.05
# Ours, of QUIC's time: "not very relevant" is the paper's measure of what a timeout costs.
_CLOSE = 0.1
# Ours: a timeout within this factor of the paper's best stands for it.
_NEAR = math.log(1.5)


def claims_of_boxes(frame: pd.DataFrame, campaign: CampaignInfo, workload: str) -> list[Claim]:
    """§VI-B and C, of what Fig. 5 and 7 show."""
    rates, overhead = completion_rates(frame, campaign, workload), overheads(frame, campaign, workload)
    overhead_claims = _bulk_overhead if workload == "download" else _page_overhead
    return [
        claim
        for variant in variants_with_fec(campaign)
        for claim in (
            *_harm_and_help(rates, campaign, variant),
            *overhead_claims(overhead, campaign, variant),
            *_order_of_overheads(overhead, campaign, variant),
            *(_scatter_of_pages(frame, campaign, variant) if workload == "page" else ()),
        )
    ]


def _harm_and_help(rates: pd.DataFrame, campaign: CampaignInfo, variant: str) -> Iterator[Claim]:
    networks = networks_of(campaign)
    by_loss = _estimates_by_network(rates, "ratio", loss_rates(campaign), campaign, variant)
    lossless = {network: by_loss[network].get(0.0, Estimate()) for network in networks}
    yield Claim(
        f"{variant}: ξ without losses",
        f"slightly above 1, hardly to be seen (§VI-B; judged here: below {_HARMLESS:g})",
        _listed(lossless),
        all_hold(rate.below(_HARMLESS) for rate in lossless.values()),
    )
    lossy = {
        f"{network}, {_percent(loss)}": rate
        for network in networks
        for loss, rate in by_loss[network].items()
        if loss > 0
    }
    unsure = [name for name, rate in lossy.items() if math.isnan(rate.low)]
    worst = max(lossy, key=lambda name: np.nan_to_num(lossy[name].high, nan=-math.inf))
    yield Claim(
        f"{variant}: ξ wherever packets are lost",
        "below 1 (§VI-B)",
        f"reaches farthest at {worst}: {lossy[worst]:.2f}"
        + (f"; no interval: {', '.join(unsure)}" if unsure else ""),
        all_hold(rate.below(1) for rate in lossy.values()),
    )


def _bulk_overhead(overhead: pd.DataFrame, campaign: CampaignInfo, variant: str) -> Iterator[Claim]:
    for network, share in _overheads_at_5_percent(overhead, campaign, variant).items():
        claimed = NETWORKS[network].overhead
        least, most = (shown(bound, ".0%") for bound in (claimed, MOST_OVERHEAD))
        yield Claim(
            f"{variant}: overhead over {network} at 5 % loss",
            f"above {least} (§VI-B), at most slightly above 25 % (§VI-C; judged here: up to {most})",
            f"{share:.1%}",
            share.within(claimed, MOST_OVERHEAD),
        )


def _page_overhead(overhead: pd.DataFrame, campaign: CampaignInfo, variant: str) -> Iterator[Claim]:
    shares = _overheads_at_5_percent(overhead, campaign, variant)
    yield Claim(
        f"{variant}: overhead at 5 % loss",
        f"at most slightly above 25 % (§VI-C; judged here: below {shown(MOST_OVERHEAD, '.0%')})",
        _listed(shares, ".1%"),
        all_hold(share.below(MOST_OVERHEAD) for share in shares.values()),
    )


def _overheads_at_5_percent(
    overhead: pd.DataFrame, campaign: CampaignInfo, variant: str
) -> dict[str, Estimate]:
    at_5_percent = overhead[overhead[LOSS] == 0.05]
    return _estimates(at_5_percent, "mean", "network", networks_of(campaign), variant=variant)


def _order_of_overheads(overhead: pd.DataFrame, campaign: CampaignInfo, variant: str) -> Iterator[Claim]:
    losses, networks = loss_rates(campaign), networks_of(campaign)
    by_loss = _estimates_by_network(overhead, "mean", losses, campaign, variant)
    yield Claim(
        f"{variant}: overhead with the loss rate",
        "grows (Fig. 5d, 7d)",
        "; ".join(
            f"{network} {' → '.join(f'{share:.1%}' for share in shares.values())}"
            for network, shares in by_loss.items()
        ),
        all_hold(_rising(list(shares.values())) for shares in by_loss.values()),
    )
    highest = [by_loss[network][losses[-1]] for network in networks]
    yield Claim(
        f"{variant}: overhead with the RTT, at {_percent(losses[-1])} loss",
        "grows (Fig. 5d, 7d)",
        _listed(dict(zip(networks, highest, strict=True)), ".1%"),
        _rising(highest),
    )


def _scatter_of_pages(frame: pd.DataFrame, campaign: CampaignInfo, variant: str) -> Iterator[Claim]:
    ok = ok_trials(frame, campaign, "page")
    points = ok[ok[LOSS] > 0].groupby(["variant", "point"], observed=True)[DCT]
    height = (points.quantile(0.75) - points.quantile(0.25))[points.size() >= FEWEST]
    arms = [height[height.index.get_level_values("variant") == arm] for arm in (fec_off(campaign), variant)]
    without, with_fec = (arm.droplevel("variant") for arm in arms)
    both = without.index.intersection(with_fec.index)
    narrower = Share(int((with_fec[both] < without[both]).sum()), len(both))
    yield Claim(
        f"{variant}: points with losses at which the boxes are less high than without FEC",
        "most (§VI-C)",
        str(narrower),
        narrower.estimate.above(0.5),
    )


def claims_of_rates(frame: pd.DataFrame, campaign: CampaignInfo, workload: str) -> list[Claim]:
    """§VI-B and C, of what Fig. 6 and 9 show."""
    rates = completion_rates(frame, campaign, workload)
    gain_claims = _bounds_of_bulk if workload == "download" else _gain_of_pages
    return [
        claim
        for variant in variants_with_fec(campaign)
        for claim in (*gain_claims(rates, campaign, variant), *_order_of_rates(rates, campaign, variant))
    ]


def _bounds_of_bulk(rates: pd.DataFrame, campaign: CampaignInfo, variant: str) -> Iterator[Claim]:
    losses = [loss for loss in loss_rates(campaign) if loss >= BOUNDED_FROM_LOSS]
    for network in networks_of(campaign):
        by_loss = _estimates(rates, "ratio", LOSS, losses, network=network, variant=variant)
        bound = NETWORKS[network].bound
        yield Claim(
            f"{variant}: ξ over {network} from {_percent(BOUNDED_FROM_LOSS)} loss on",
            f"below {bound:g} (§VI-B)",
            _listed(by_loss),
            all_hold(rate.below(bound) for rate in by_loss.values()),
        )
    if "Wi-Fi" in networks_of(campaign) and 0.05 in losses:
        rate = _estimates(rates, "ratio", LOSS, [0.05], network="Wi-Fi", variant=variant)[0.05]
        yield Claim(
            f"{variant}: ξ over Wi-Fi at 5 % loss", "below 0.4 (§VI-B)", f"{rate:.2f}", rate.below(0.4)
        )


def _gain_of_pages(rates: pd.DataFrame, campaign: CampaignInfo, variant: str) -> Iterator[Claim]:
    at_5_percent = rates[rates[LOSS] == 0.05]
    by_network = _estimates(at_5_percent, "ratio", "network", networks_of(campaign), variant=variant)
    yield Claim(
        f"{variant}: ξ of pages at 5 % loss",
        "about 0.45 (abstract; judged here: 0.4 to 0.5 in one network at least)",
        _listed(by_network),
        one_holds(rate.within(0.4, 0.5) for rate in by_network.values()),
    )


def _order_of_rates(rates: pd.DataFrame, campaign: CampaignInfo, variant: str) -> Iterator[Claim]:
    losses = [loss for loss in loss_rates(campaign) if loss > 0]
    least, most = losses[0], losses[-1]
    by_loss = _estimates_by_network(rates, "ratio", losses, campaign, variant)
    yield Claim(
        f"{variant}: ξ with the loss rate, {_percent(least)} against {_percent(most)}",
        "falls: the gain grows (§VI-B)",
        "; ".join(
            f"{network} {of_network[least]:.2f} → {of_network[most]:.2f}"
            for network, of_network in by_loss.items()
        ),
        all_hold(of_network[least].exceeds(of_network[most]) for of_network in by_loss.values()),
    )
    by_network = {network: of_network[most] for network, of_network in by_loss.items()}
    yield Claim(
        f"{variant}: ξ with the RTT, at {_percent(most)} loss",
        "grows: the gain is smaller over cellular and satellite links (§VI-B)",
        _listed(by_network),
        _rising(list(by_network.values())),
    )


def claims_of_timeouts(frame: pd.DataFrame, campaign: CampaignInfo, workload: str) -> list[Claim]:
    """§VI-E, of what Fig. 12 and 13 show."""
    rates = completion_rates(frame, campaign, workload)
    return [
        claim
        for variant in variants_with_fec(campaign)
        for network in networks_of(campaign)
        for claim in _best_timeouts(rates, campaign, workload, variant, network)
    ]


def _best_timeouts(
    rates: pd.DataFrame, campaign: CampaignInfo, workload: str, variant: str, network: str
) -> Iterator[Claim]:
    paper = NETWORKS[network]
    tried = sorted(float(point[BTO]) for point in campaign.points if point["network"] == network)
    by_timeout = _estimates(rates, "ratio", BTO, tried, network=network, variant=variant)

    def nearest(wanted_ms: float) -> float:
        return min(tried, key=lambda bto: abs(math.log(bto / wanted_ms)))

    best_ms = paper.best_bto_ms[workload]
    for timeout, claimed, wanted_ms in (
        (f"the paper's best buffer timeout, about {best_ms:g} ms", "the lowest", best_ms),
        ("a buffer timeout of one RTT", "close to the lowest", paper.rtt_ms),
    ):
        judged = nearest(wanted_ms)
        measured, holds = _near_the_lowest(by_timeout, judged)
        yield Claim(
            f"{variant}: ξ over {network} with {timeout}",
            f"{claimed} (§VI-E; judged here: at most {_CLOSE:g} above any other)",
            measured,
            holds if abs(math.log(judged / wanted_ms)) < _NEAR else None,
        )
    short, rtt = nearest(_DEFAULT_BTO_MS), nearest(paper.rtt_ms)
    if short < rtt:
        yield Claim(
            f"{variant}: ξ over {network}, a buffer timeout of one RTT against a short one",
            "lower (§VI-E)",
            f"at {short:g} ms: {by_timeout[short]:.2f}, at {rtt:g} ms: {by_timeout[rtt]:.2f}",
            by_timeout[short].exceeds(by_timeout[rtt]),
        )


def _near_the_lowest(rates: Mapping[float, Estimate], timeout: float) -> tuple[str, bool | None]:
    """ξ at this timeout beside that at the one, of all others, whose interval reaches lowest."""
    others = [other for other in rates if other != timeout]
    if not others:
        return f"at {timeout:g} ms: {rates[timeout]:.2f}; no other was tried", None
    lowest = min(others, key=lambda other: np.nan_to_num(rates[other].low, nan=math.inf))
    measured = (
        f"at {timeout:g} ms: {rates[timeout]:.2f}; lowest elsewhere at {lowest:g} ms: {rates[lowest]:.2f}"
    )
    return measured, rates[timeout].near_or_below(rates[lowest], _CLOSE)


def _estimates(
    table: pd.DataFrame, mean: str, by: str, keys: Iterable[Any], **where: str
) -> dict[Any, Estimate]:
    """Of the rows where these columns have these values, one estimate for each key in the column `by`."""
    for column, value in where.items():
        table = table[table[column] == value]
    rows = table.set_index(by)[[mean, "low", "high"]]
    return {key: Estimate(*rows.loc[key]) if key in rows.index else Estimate() for key in keys}


def _estimates_by_network(
    table: pd.DataFrame, mean: str, losses: Sequence[float], campaign: CampaignInfo, variant: str
) -> dict[str, dict[float, Estimate]]:
    """Of each network, one estimate for each loss rate."""
    return {
        network: _estimates(table, mean, LOSS, losses, network=network, variant=variant)
        for network in networks_of(campaign)
    }


def _rising(estimates: Sequence[Estimate]) -> bool | None:
    return all_hold(later.exceeds(earlier) for earlier, later in pairwise(estimates))


def _listed(estimates: Mapping[Any, Estimate], number: str = ".2f") -> str:
    return ", ".join(f"{_percent(key)}: {estimate:{number}}" for key, estimate in estimates.items())


def _percent(key: str | float) -> str:
    return key if isinstance(key, str) else f"{100 * key:g} %"
