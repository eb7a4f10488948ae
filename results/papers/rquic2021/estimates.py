"""Estimates of ξ and Ô by network, loss rate or buffer timeout, and the claims that they rise.

Estimates that are compared with each other are of different points, whose seeds are independent.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import pandas as pd

from fecbench.results.analysis.intervals import LEVEL
from fecbench.results.analysis.margins import percent
from fecbench.results.papers.claim import Claim, Estimate, all_hold
from fecbench.results.papers.forms import ours
from fecbench.results.papers.rquic2021.rates import LOSS, loss_rates, networks_of
from fecbench.results.store.records import CampaignInfo

# Both have intervals of confidence 1 - the level that they are given.
Table = Callable[[float], pd.DataFrame]
Estimates = Callable[[float], dict[Any, Estimate]]


def all_of(estimates: Estimates, holds: Callable[[Estimate], bool | None]) -> bool | None:
    """Whether this holds of all of them."""
    return all_hold(lambda level: [holds(estimate) for estimate in estimates(level).values()])


def at_loss(table: Table, mean: str, loss: float, campaign: CampaignInfo, variant: str) -> Estimates:
    """One estimate for each network, at this loss rate."""

    def estimates(level: float) -> dict[str, Estimate]:
        places = by_place(table(level), mean, campaign, variant)
        return {network: places.get((network, loss), Estimate()) for network in networks_of(campaign)}

    return estimates


def by_place(
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


def keyed(table: Table, mean: str, by: str, keys: Sequence[Any], **where: str) -> Estimates:
    """One estimate for each of these keys in the column `by`, of the rows where columns have these values."""
    return lambda level: _estimates(table(level), mean, by, keys, **where)


def _estimates(
    table: pd.DataFrame, mean: str, by: str, keys: Iterable[Any], **where: str
) -> dict[Any, Estimate]:
    for column, value in where.items():
        table = table[table[column] == value]
    rows = {row[0]: row[1:] for row in table[[by, mean, "low", "high"]].itertuples(index=False, name=None)}
    return {key: Estimate(*rows.get(key, ())) for key in keys}


@dataclass(frozen=True)
class Growth:
    """The growth of a quantity that counts as more."""

    by: float
    is_share: bool = False

    @property
    def unit(self) -> str:
        return " of all packets" if self.is_share else " of the one before"

    def exceeds(self, then: Estimate, first: Estimate, by: float) -> bool | None:
        """Return whether one exceeds the first: shares, by so many percentage points; others, as a share
        of the first."""
        return then.minus(first).above(by) if self.is_share else then.exceeds(first, by)


def claim_of_growth(
    text: str, paper: str, rows: Mapping[str, Estimates], measured: str, number: str, growth: Growth
) -> Claim:
    """Return the claim that the estimates of each row, by its name, rise, each above the one before it."""

    def rise(by: float) -> bool | None:
        return all_hold(
            lambda level: [
                growth.exceeds(then, first, by)
                for row in rows.values()
                for first, then in pairwise(row(level).values())
            ]
        )

    steps = {
        ", ".join(filter(None, (name, step))): by
        for name, row in rows.items()
        for step, by in _steps(row(LEVEL)).items()
    }
    least, step = _least(steps)
    return Claim(
        text,
        paper,
        measured + (f"; the least step, {least}: {step:{number}}" if least else ""),
        holds=rise(growth.by),
        in_direction=rise(0.0),
        size=f"each step by more than {percent(growth.by)}{growth.unit}",
        ours=ours(step.value, number),
    )


def _steps(estimates: Mapping[Any, Estimate]) -> dict[str, Estimate]:
    """Return the difference of each estimate to the one before it."""
    return {
        f"{in_words(first)} to {in_words(then)}": estimates[then].minus(estimates[first])
        for first, then in pairwise(estimates)
    }


def _least(steps: Mapping[str, Estimate]) -> tuple[str, Estimate]:
    """Return the name of the least step, and the step; an unknown estimate without a name where there is
    none."""
    steps_with_value = {name: step for name, step in steps.items() if not math.isnan(step.value)}
    if not steps_with_value:
        return "", Estimate()
    least = min(steps_with_value, key=lambda name: steps_with_value[name].value)
    return least, steps_with_value[least]


def listed(estimates: Mapping[Any, Estimate], number: str = ".2f") -> str:
    return ", ".join(f"{in_words(key)}: {estimate:{number}}" for key, estimate in estimates.items())


def values(estimates: Mapping[Any, Estimate], number: str = ".2f") -> str:
    """The estimates without their intervals."""
    return ", ".join(ours(estimate.value, number) for estimate in estimates.values())


def in_words(key: str | float) -> str:
    return key if isinstance(key, str) else f"{100 * key:g} %"
