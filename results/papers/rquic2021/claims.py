"""The claims of rQUIC's evaluation, judged by our trials.

Judged as `results.papers.claims` says, those about completion rates by the intervals of
`results.analysis.intervals`: fewer repetitions than these need leave a claim open. Estimates that are
compared with each other are of different points, whose seeds are independent. There are no claims about loss
rates that the design lacks.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd

from fecbench.results import metrics
from fecbench.results.analysis.intervals import FEWEST, LEVEL
from fecbench.results.analysis.pairing import values_of
from fecbench.results.papers.claims import Claim, Estimate, Share, all_hold, beside_stalls, one_holds, shown
from fecbench.results.papers.rquic2021.rates import (
    BOUNDED_FROM_LOSS,
    BTO,
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
from fecbench.results.store.records import CampaignInfo

_DEFAULT_BTO_MS = 25
# Ours: "it can hardly be appreciated" is the paper's measure of harm without losses.
_HARMLESS = 1.05
# Ours, of QUIC's time: "not very relevant" is the paper's measure of what a timeout costs.
_CLOSE = 0.1
# Ours: a step of less is no growth. Between the bounds of ξ over Wi-Fi and cellular it is ten times as much.
_LEAST_GROWTH_OF_RATE = 0.02
_LEAST_GROWTH_OF_OVERHEAD = 0.01
# Ours: a timeout within this factor of the paper's best stands for it.
_NEAR = math.log(1.5)

# Both have intervals of confidence 1 - the level that they are given.
Table = Callable[[float], pd.DataFrame]
Estimates = Callable[[float], dict[Any, Estimate]]


def claims_of_boxes(frame: pd.DataFrame, campaign: CampaignInfo, workload: str) -> list[Claim]:
    """§VI-B and C, of what Fig. 5 and 7 show."""
    rates = cache(lambda level: completion_rates(frame, campaign, workload, level))
    overhead = cache(lambda level: overheads(frame, campaign, workload, level))
    overhead_claims = _bulk_overhead if workload == "download" else _page_overhead
    return [
        claim
        for variant in variants_with_fec(campaign)
        for claim in (
            *(_harm(frame, rates, campaign, variant) if 0 in loss_rates(campaign) else ()),
            _help(rates, campaign, variant),
            *overhead_claims(overhead, campaign, variant),
            *_order_of_overheads(overhead, campaign, variant),
            *(_scatter_of_pages(frame, campaign, variant) if workload == "page" else ()),
        )
    ]


def _harm(frame: pd.DataFrame, rates: Table, campaign: CampaignInfo, variant: str) -> Iterator[Claim]:
    lossless = _at_loss(rates, "ratio", 0.0, campaign, variant)
    claim = Claim(
        f"{variant}: ξ without losses",
        f"slightly above 1, hardly to be seen (§VI-B; judged here: below {_HARMLESS:g})",
        _listed(lossless(LEVEL)),
        _all(lossless, lambda rate: rate.below(_HARMLESS)),
    )
    yield beside_stalls(claim, frame[frame[LOSS] == 0], fec_off(campaign), variant)


def _help(rates: Table, campaign: CampaignInfo, variant: str) -> Claim:
    places = [
        (network, loss) for network in networks_of(campaign) for loss in loss_rates(campaign) if loss > 0
    ]

    def lossy(level: float) -> dict[str, Estimate]:
        by_place = _by_place(rates(level), "ratio", campaign, variant)
        return {f"{network}, {_percent(loss)}": by_place[network, loss] for network, loss in places}

    shown_rates = lossy(LEVEL)
    unsure = [name for name, rate in shown_rates.items() if math.isnan(rate.low)]
    worst = max(shown_rates, key=lambda name: np.nan_to_num(shown_rates[name].high, nan=-math.inf))
    return Claim(
        f"{variant}: ξ wherever packets are lost",
        "below 1 (§VI-B)",
        f"reaches farthest at {worst}: {shown_rates[worst]:.2f}"
        + (f"; no interval: {', '.join(unsure)}" if unsure else ""),
        _all(lossy, lambda rate: rate.below(1)),
    )


def _bulk_overhead(overhead: Table, campaign: CampaignInfo, variant: str) -> Iterator[Claim]:
    for network, share in _at_loss(overhead, "mean", 0.05, campaign, variant)(LEVEL).items():
        claimed = NETWORKS[network].overhead
        least, most = (shown(bound, ".0%") for bound in (claimed, MOST_OVERHEAD))
        yield Claim(
            f"{variant}: overhead over {network} at 5 % loss",
            f"above {least} (§VI-B), at most slightly above 25 % (§VI-C; judged here: up to {most})",
            f"{share:.1%}",
            share.within(claimed, MOST_OVERHEAD),
        )


def _page_overhead(overhead: Table, campaign: CampaignInfo, variant: str) -> Iterator[Claim]:
    shares = _at_loss(overhead, "mean", 0.05, campaign, variant)
    yield Claim(
        f"{variant}: overhead at 5 % loss",
        f"at most slightly above 25 % (§VI-C; judged here: below {shown(MOST_OVERHEAD, '.0%')})",
        _listed(shares(LEVEL), ".1%"),
        _all(shares, lambda share: share.below(MOST_OVERHEAD)),
    )


def _order_of_overheads(overhead: Table, campaign: CampaignInfo, variant: str) -> Iterator[Claim]:
    losses, networks = loss_rates(campaign), networks_of(campaign)

    def steps(level: float) -> dict[str, Estimate]:
        by_place = _by_place(overhead(level), "mean", campaign, variant)
        return {
            f"{network}, {step}": by
            for network in networks
            for step, by in _steps({loss: by_place[network, loss] for loss in losses}).items()
        }

    shares = _by_place(overhead(LEVEL), "mean", campaign, variant)
    least = shown(_LEAST_GROWTH_OF_OVERHEAD, ".0%")
    grows = f"grows (Fig. 5d, 7d; judged here: by less than {least} is no growth)"
    if len(losses) > 1:
        yield Claim(
            f"{variant}: overhead with the loss rate",
            grows,
            "; ".join(
                f"{network} {' → '.join(f'{shares[network, loss]:.1%}' for loss in losses)}"
                for network in networks
            )
            + _least(steps(LEVEL), ".1%"),
            _all(steps, lambda step: step.grows(_LEAST_GROWTH_OF_OVERHEAD)),
        )
    highest = _at_loss(overhead, "mean", losses[-1], campaign, variant)
    yield _claim_of_growth(
        f"{variant}: overhead with the RTT, at {_percent(losses[-1])} loss",
        grows,
        highest,
        ".1%",
        _LEAST_GROWTH_OF_OVERHEAD,
    )


def _claim_of_growth(text: str, paper: str, estimates: Estimates, number: str, least: float) -> Claim:
    """That these estimates rise, each above the one before it; by less than `least` is no rise."""

    def steps(level: float) -> dict[str, Estimate]:
        return _steps(estimates(level))

    measured = _listed(estimates(LEVEL), number) + _least(steps(LEVEL), number)
    return Claim(text, paper, measured, _all(steps, lambda step: step.grows(least)))


def _scatter_of_pages(frame: pd.DataFrame, campaign: CampaignInfo, variant: str) -> Iterator[Claim]:
    arms = [_box_heights(frame, campaign, arm) for arm in (fec_off(campaign), variant)]
    without, with_fec = arms[0].align(arms[1])
    known = without.notna() & with_fec.notna() & (np.isfinite(without) | np.isfinite(with_fec))
    narrower = Share.of(with_fec < without, known)
    yield Claim(
        f"{variant}: points with losses at which the boxes are less high than without FEC",
        "most (§VI-C)",
        str(narrower),
        narrower.estimate.above(0.5),
    )


def _box_heights(frame: pd.DataFrame, campaign: CampaignInfo, variant: str) -> pd.Series:
    """Of each point with losses at which the variant loaded pages: how far apart the quartiles of its DCTs
    are, over the trials that are ok, failed or timed out.

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
    """By linear interpolation, also beside values that are ∞."""
    place = share * (len(ascending) - 1)
    below, above = ascending[math.floor(place)], ascending[math.ceil(place)]
    return below if below == above else below + (place - math.floor(place)) * (above - below)


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
    for network in networks_of(campaign):
        by_loss = _keyed(rates, "ratio", LOSS, losses, network=network, variant=variant)
        yield _claim_of_bound(
            f"{variant}: ξ over {network} from {_percent(BOUNDED_FROM_LOSS)} loss on",
            by_loss,
            NETWORKS[network].bound,
        )
    if "Wi-Fi" in networks_of(campaign) and 0.05 in losses:
        rate = _keyed(rates, "ratio", LOSS, [0.05], network="Wi-Fi", variant=variant)(LEVEL)[0.05]
        yield Claim(
            f"{variant}: ξ over Wi-Fi at 5 % loss", "below 0.4 (§VI-B)", f"{rate:.2f}", rate.below(0.4)
        )


def _claim_of_bound(text: str, rates: Estimates, bound: float) -> Claim:
    return Claim(
        text, f"below {bound:g} (§VI-B)", _listed(rates(LEVEL)), _all(rates, lambda rate: rate.below(bound))
    )


def _gain_of_pages(rates: Table, campaign: CampaignInfo, variant: str) -> Iterator[Claim]:
    by_network = _at_loss(rates, "ratio", 0.05, campaign, variant)
    yield Claim(
        f"{variant}: ξ of pages at 5 % loss",
        "about 0.45 (abstract; judged here: 0.4 to 0.5 in one network at least)",
        _listed(by_network(LEVEL)),
        one_holds(lambda level: [rate.within(0.4, 0.5) for rate in by_network(level).values()]),
    )


def _order_of_rates(rates: Table, campaign: CampaignInfo, variant: str) -> Iterator[Claim]:
    losses, networks = [loss for loss in loss_rates(campaign) if loss > 0], networks_of(campaign)
    least, most = losses[0], losses[-1]

    def falls(level: float) -> dict[str, Estimate]:
        by_place = _by_place(rates(level), "ratio", campaign, variant)
        return {network: by_place[network, least].minus(by_place[network, most]) for network in networks}

    if least != most:
        by_place, by_network = _by_place(rates(LEVEL), "ratio", campaign, variant), falls(LEVEL)
        yield Claim(
            f"{variant}: ξ with the loss rate, {_percent(least)} against {_percent(most)}",
            "falls: the gain grows (§VI-B)",
            "; ".join(
                f"{network} {by_place[network, least]:.2f} → {by_place[network, most]:.2f},"
                f" less by {by_network[network]:.2f}"
                for network in networks
            ),
            _all(falls, lambda fall: fall.above(0)),
        )
    yield _claim_of_growth(
        f"{variant}: ξ with the RTT, at {_percent(most)} loss",
        "grows: the gain is smaller over cellular and satellite links (§VI-B; judged here: by less than"
        f" {_LEAST_GROWTH_OF_RATE:g} is no growth)",
        _at_loss(rates, "ratio", most, campaign, variant),
        ".2f",
        _LEAST_GROWTH_OF_RATE,
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
    by_timeout = _keyed(rates, "ratio", BTO, tried, network=network, variant=variant)

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
        at = by_timeout(LEVEL)
        yield Claim(
            f"{variant}: ξ over {network}, a buffer timeout of one RTT against a short one",
            "lower (§VI-E)",
            f"at {short:g} ms: {at[short]:.2f}, at {rtt:g} ms: {at[rtt]:.2f},"
            f" less by {at[short].minus(at[rtt]):.2f}",
            at[short].exceeds(at[rtt]),
        )


def _near_the_lowest(rates: Estimates, timeout: float) -> tuple[str, bool | None]:
    """ξ at this timeout beside that at the one, of all others, whose interval reaches lowest."""
    at = rates(LEVEL)
    others = [other for other in at if other != timeout]
    if not others:
        return f"at {timeout:g} ms: {at[timeout]:.2f}; no other was tried", None
    lowest = min(others, key=lambda other: np.nan_to_num(at[other].low, nan=math.inf))

    def above_others(level: float) -> dict[float, Estimate]:
        found = rates(level)
        return {other: found[timeout].minus(found[other]) for other in others}

    return (
        f"at {timeout:g} ms: {at[timeout]:.2f}; lowest elsewhere at {lowest:g} ms: {at[lowest]:.2f},"
        f" less by {at[timeout].minus(at[lowest]):.2f}",
        _all(above_others, lambda above: above.within(-math.inf, _CLOSE)),
    )


def _all(estimates: Estimates, holds: Callable[[Estimate], bool | None]) -> bool | None:
    """Whether this holds of all of them."""
    return all_hold(lambda level: [holds(estimate) for estimate in estimates(level).values()])


def _at_loss(table: Table, mean: str, loss: float, campaign: CampaignInfo, variant: str) -> Estimates:
    """One estimate for each network, at this loss rate."""

    def estimates(level: float) -> dict[str, Estimate]:
        by_place = _by_place(table(level), mean, campaign, variant)
        return {network: by_place.get((network, loss), Estimate()) for network in networks_of(campaign)}

    return estimates


def _by_place(
    table: pd.DataFrame, mean: str, campaign: CampaignInfo, variant: str
) -> dict[tuple[str, float], Estimate]:
    """One estimate for each network and loss rate."""
    return {
        (network, loss): estimate
        for network in networks_of(campaign)
        for loss, estimate in _estimates(
            table, mean, LOSS, loss_rates(campaign), network=network, variant=variant
        ).items()
    }


def _keyed(table: Table, mean: str, by: str, keys: Sequence[Any], **where: str) -> Estimates:
    return lambda level: _estimates(table(level), mean, by, keys, **where)


def _estimates(
    table: pd.DataFrame, mean: str, by: str, keys: Iterable[Any], **where: str
) -> dict[Any, Estimate]:
    """Of the rows where these columns have these values, one estimate for each key in the column `by`."""
    for column, value in where.items():
        table = table[table[column] == value]
    rows = table.set_index(by)[[mean, "low", "high"]]
    return {key: Estimate(*rows.loc[key]) if key in rows.index else Estimate() for key in keys}


def _steps(estimates: Mapping[Any, Estimate]) -> dict[str, Estimate]:
    """By how much each estimate is above the one before it."""
    return {
        f"{_percent(first)} to {_percent(then)}": estimates[then].minus(estimates[first])
        for first, then in pairwise(estimates)
    }


def _least(steps: Mapping[str, Estimate], number: str) -> str:
    """The least step in words, after what steps; "" where there is none."""
    known = {name: step for name, step in steps.items() if not math.isnan(step.value)}
    if not known:
        return ""
    least = min(known, key=lambda name: known[name].value)
    return f"; the least step, {least}: {known[least]:{number}}"


def _listed(estimates: Mapping[Any, Estimate], number: str = ".2f") -> str:
    return ", ".join(f"{_percent(key)}: {estimate:{number}}" for key, estimate in estimates.items())


def _percent(key: str | float) -> str:
    return key if isinstance(key, str) else f"{100 * key:g} %"
