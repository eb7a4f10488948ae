"""The claims of rQUIC's evaluation about completion rates and buffer timeouts, judged by our trials.

Judged as `results.papers.claim` says, by the intervals of `results.analysis.intervals`: fewer repetitions
than these need leave a claim open. There are no claims about loss rates that the design lacks.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from functools import cache, partial

import numpy as np
import pandas as pd

from fecbench.results.analysis.intervals import LEVEL
from fecbench.results.analysis.margins import percent
from fecbench.results.papers.claim import Claim, Estimate, all_hold, one_holds
from fecbench.results.papers.forms import margin_of, ours
from fecbench.results.papers.rquic2021.estimates import (
    Estimates,
    Growth,
    Table,
    all_of,
    at_loss,
    by_place,
    claim_of_growth,
    in_words,
    keyed,
    listed,
    values,
)
from fecbench.results.papers.rquic2021.rates import (
    BOUNDED_FROM_LOSS,
    BTO,
    LOSS,
    NETWORKS,
    completion_rates,
    loss_rates,
    networks_of,
    variants_with_fec,
)
from fecbench.results.papers.words import MORE
from fecbench.results.store.records import CampaignInfo

_DEFAULT_BTO_MS = 25
# Our share of QUIC's time: "not very relevant" is the paper's measure of the cost of a timeout.
_CLOSE = 0.1
# Ours: a timeout within this factor of the paper's best stands for it.
_NEAR = math.log(1.5)


def claims_of_rates(frame: pd.DataFrame, campaign: CampaignInfo, workload: str) -> list[Claim]:
    """§VI-B and C, of what Fig. 6 and 9 show."""
    rates = cache(lambda level: completion_rates(frame, campaign, workload, level))
    gain_claims = _bounds_of_bulk if workload == "download" else _gain_of_pages
    return [
        claim
        for variant in variants_with_fec(campaign)
        for claim in (*gain_claims(rates, campaign, variant), *_order_of_rates(rates, campaign, variant))
    ]


def _bounds_of_bulk(rates: Table, campaign: CampaignInfo, variant: str) -> Iterator[Claim]:
    losses = [loss for loss in loss_rates(campaign) if loss >= BOUNDED_FROM_LOSS]
    networks = networks_of(campaign)
    for network in networks:
        by_loss = keyed(rates, "ratio", LOSS, losses, network=network, variant=variant)
        bound = NETWORKS[network].bound
        yield _claim_of_bound(
            f"{variant}: ξ over {network} from {in_words(BOUNDED_FROM_LOSS)} loss on",
            f"“stays below … {percent(bound)}” (§VI-B)",
            by_loss,
            bound,
        )
    if "Wi-Fi" in networks and 0.05 in losses:
        at_5 = keyed(rates, "ratio", LOSS, [0.05], network="Wi-Fi", variant=variant)
        paper = "“in less than 40 % of the QUIC completion time” (§VI-B)"
        yield _claim_of_bound(f"{variant}: ξ over Wi-Fi at 5 % loss", paper, at_5, 0.4)


def _claim_of_bound(text: str, paper: str, rates: Estimates, bound: float) -> Claim:
    return Claim(
        text,
        paper,
        listed(rates(LEVEL)),
        holds=all_of(rates, lambda rate: rate.below(bound)),
        in_direction=all_of(rates, lambda rate: rate.shorter()),
        size=f"below {bound:g}",
        ours=values(rates(LEVEL)),
    )


def _gain_of_pages(rates: Table, campaign: CampaignInfo, variant: str) -> Iterator[Claim]:
    by_network = at_loss(rates, "ratio", 0.05, campaign, variant)
    yield Claim(
        f"{variant}: ξ of pages at 5 % loss",
        "gain “≈ 55 %” (abstract)",
        listed(by_network(LEVEL)),
        holds=one_holds(lambda level: [rate.within(0.4, 0.5) for rate in by_network(level).values()]),
        in_direction=one_holds(lambda level: [rate.shorter() for rate in by_network(level).values()]),
        size="0.4 to 0.5 in one network at least",
        ours=values(by_network(LEVEL)),
    )


def _order_of_rates(rates: Table, campaign: CampaignInfo, variant: str) -> Iterator[Claim]:
    losses = [loss for loss in loss_rates(campaign) if loss > 0]
    by = MORE.beyond(margin_of(campaign, statistic="mean"))
    if losses[0] != losses[-1]:
        yield _claim_of_fall(rates, campaign, variant, (losses[0], losses[-1]), by)
    highest = at_loss(rates, "ratio", losses[-1], campaign, variant)
    yield claim_of_growth(
        f"{variant}: ξ with the RTT, at {in_words(losses[-1])} loss",
        "grows: the gain is “less relevant for satellite and cellular links” (§VI-B)",
        {"": highest},
        listed(highest(LEVEL)),
        ".2f",
        Growth(by),
    )


def _claim_of_fall(
    rates: Table, campaign: CampaignInfo, variant: str, ends: tuple[float, float], by: float
) -> Claim:
    least, most = ends

    def of_networks(level: float) -> dict[str, tuple[Estimate, Estimate]]:
        places = by_place(rates(level), "ratio", campaign, variant)
        return {network: (places[network, least], places[network, most]) for network in networks_of(campaign)}

    def falls(by: float) -> bool | None:
        return all_hold(
            lambda level: [first.exceeds(then, by) for first, then in of_networks(level).values()]
        )

    estimates = of_networks(LEVEL)
    return Claim(
        f"{variant}: ξ with the loss rate, {in_words(least)} against {in_words(most)}",
        "falls: the gain “becomes more relevant when the loss rate increases” (§VI-B)",
        "; ".join(
            f"{network} {first:.2f} → {then:.2f}, less by {first.minus(then):.2f}"
            for network, (first, then) in estimates.items()
        ),
        holds=falls(by),
        in_direction=falls(0.0),
        size=f"by more than {percent(by)}",
        ours=", ".join(ours(first.value / then.value - 1, ".0%") for first, then in estimates.values()),
    )


def claims_of_timeouts(frame: pd.DataFrame, campaign: CampaignInfo, workload: str) -> list[Claim]:
    """§VI-E, of what Fig. 12 and 13 show."""
    rates = cache(lambda level: completion_rates(frame, campaign, workload, level))
    return [
        claim
        for variant in variants_with_fec(campaign)
        for network in networks_of(campaign)
        for claim in _best_timeouts(rates, campaign, workload, variant, network)
    ]


def _best_timeouts(
    rates: Table, campaign: CampaignInfo, workload: str, variant: str, network: str
) -> Iterator[Claim]:
    paper = NETWORKS[network]
    tried = sorted(float(point[BTO]) for point in campaign.points if point["network"] == network)
    by_timeout = keyed(rates, "ratio", BTO, tried, network=network, variant=variant)
    nearest = partial(_nearest, tried)
    best_ms = paper.best_bto_ms[workload]
    for timeout, claimed, wanted_ms in (
        (f"the paper's best buffer timeout, about {best_ms:g} ms", "“minimum completion rates”", best_ms),
        (
            "a buffer timeout of one RTT",
            "the difference to the optimum is “not very relevant”",
            paper.rtt_ms,
        ),
    ):
        claim = _near_the_lowest(
            f"{variant}: ξ over {network} with {timeout}",
            f"{claimed} (§VI-E)",
            by_timeout,
            nearest(wanted_ms),
        )
        is_near = abs(math.log(nearest(wanted_ms) / wanted_ms)) < _NEAR
        yield claim if is_near else replace(claim, holds=None)
    short, rtt = nearest(_DEFAULT_BTO_MS), nearest(paper.rtt_ms)
    if short < rtt:
        at, by = by_timeout(LEVEL), MORE.beyond(margin_of(campaign, statistic="mean"))
        yield Claim(
            f"{variant}: ξ over {network}, a buffer timeout of one RTT against a short one",
            "“reduction in completion rates … when BTO equals the underlying RTT” (§VI-E)",
            f"at {short:g} ms: {at[short]:.2f}, at {rtt:g} ms: {at[rtt]:.2f},"
            f" less by {at[short].minus(at[rtt]):.2f}",
            holds=at[short].exceeds(at[rtt], by),
            in_direction=at[short].exceeds(at[rtt]),
            size=f"by more than {percent(by)}",
            ours=ours(at[short].value / at[rtt].value - 1, ".0%"),
        )


def _nearest(tried: list[float], wanted_ms: float) -> float:
    return min(tried, key=lambda bto: abs(math.log(bto / wanted_ms)))


def _near_the_lowest(text: str, paper: str, rates: Estimates, timeout: float) -> Claim:
    """ξ at this timeout beside that at the one, of all others, whose interval reaches lowest."""
    size = f"at most {_CLOSE:g} above any other"
    at = rates(LEVEL)
    others = [other for other in at if other != timeout]
    if not others:
        measured = f"at {timeout:g} ms: {at[timeout]:.2f}; no other was tried"
        return Claim(text, paper, measured, holds=None, size=size, ours="–")
    lowest = min(others, key=lambda other: np.nan_to_num(at[other].low, nan=math.inf))

    def above_others(level: float) -> dict[float, Estimate]:
        estimates = rates(level)
        return {other: estimates[timeout].minus(estimates[other]) for other in others}

    return Claim(
        text,
        paper,
        f"at {timeout:g} ms: {at[timeout]:.2f}; lowest elsewhere at {lowest:g} ms: {at[lowest]:.2f},"
        f" less by {at[timeout].minus(at[lowest]):.2f}",
        holds=all_of(above_others, lambda above: above.within(-math.inf, _CLOSE)),
        size=size,
        ours=ours(at[timeout].value - at[lowest].value, ".2f"),
    )
