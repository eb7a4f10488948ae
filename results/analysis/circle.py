"""Whether an emulated path gives the ratios of the real one: a campaign in the field beside its emulation.

Both ratios are geometric means over blocks, or over repetitions. The interval of their quotient comes from
draws of both: that of the field bears blocks that depend on each other (`dependent`), that of the emulation
is Student's, since its repetitions are independent. A pair without a ratio, as where one arm timed out, is
counted and left out. Several networks are averaged over as many repetitions of each (`Pairing.averaged`).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from fecbench.quantities import counted
from fecbench.results.analysis import dependent, frames
from fecbench.results.analysis.margins import margins_of, percent
from fecbench.results.analysis.pairing import Pairing, comparisons
from fecbench.results.metrics import of_workloads
from fecbench.results.metrics.units import number
from fecbench.results.store.database import Database
from fecbench.results.store.records import CampaignInfo

Floats = NDArray[np.float64]
Verdict = Literal["same", "differs", "not sure"]

_SUFFIX = "-emulated"
_DRAWS = 20_000
_SEED = 2026
LEVEL = 0.05


@dataclass(frozen=True)
class Ratio:
    """A ratio with its interval of 95 %, and the number of pairs that it is of."""

    value: float
    low: float
    high: float
    pairs: int
    left_out: int = 0
    """Pairs without a ratio above 0 and below ∞."""


@dataclass(frozen=True)
class Closed:
    """One comparison, over the real path and over the emulated one."""

    variant: str
    baseline: str
    workload: str
    field: Ratio
    emulated: Ratio
    quotient: Ratio
    """Emulated / field."""
    margin: float

    @property
    def verdict(self) -> Verdict:
        most = 1 + self.margin
        if self.quotient.low > most or self.quotient.high < 1 / most:
            return "differs"
        return "same" if 1 / most <= self.quotient.low and self.quotient.high <= most else "not sure"

    @property
    def blocks_needed(self) -> int | None:
        """Blocks, and repetitions, with which the interval would be as narrow as the margin, if the spread
        stays; None: they are enough."""
        width = math.log(self.quotient.high / self.quotient.low) / 2
        times = (width / math.log1p(self.margin)) ** 2
        return None if self.verdict != "not sure" else math.ceil(times * self.field.pairs)


def emulated_name(campaign: CampaignInfo) -> str:
    """Return the name of the design that emulates the path of a campaign."""
    return f"{campaign.name}{_SUFFIX}"


def emulations(database: Database, campaign: CampaignInfo) -> list[CampaignInfo]:
    """Return the campaigns that emulate the path of one in the field."""
    if campaign.engine != "field":
        return []
    name = emulated_name(campaign)
    return [other for other in database.campaigns() if other.design_name == name]


@dataclass(frozen=True)
class Missing:
    """A comparison of the path that its emulation cannot be held against: too few pairs of either."""

    variant: str
    workload: str
    field_pairs: int
    emulated_pairs: int


def closed(
    database: Database, campaign: CampaignInfo, emulation: CampaignInfo
) -> tuple[list[Closed], list[Missing]]:
    """Return each comparison that both have enough pairs for, and the others of the path."""
    here, there = (
        comparisons(frames.trials(database, one, set(of_workloads(one).values())), one)
        for one in (campaign, emulation)
    )
    margins, rows, others = margins_of(campaign), list[Closed](), list[Missing]()
    for (variant, pairing), workload in product(here.items(), of_workloads(campaign)):
        field_logs, field_out = _logs(pairing, workload)
        logs, left_out = _logs(there.get(variant), workload)
        if min(len(field_logs), len(logs)) < dependent.FEWEST:
            others.append(Missing(variant, workload, len(field_logs), len(logs)))
            continue
        of_field, of_emulation = dependent.mean_of(field_logs), _independent(logs)
        field_mean, mean = float(field_logs.mean()), float(logs.mean())
        rows.append(
            Closed(
                variant=variant,
                baseline=pairing.baseline_label,
                workload=workload,
                field=_ratio(field_mean, of_field.interval(LEVEL), len(field_logs), field_out),
                emulated=_ratio(mean, of_emulation.interval(LEVEL), len(logs), left_out),
                quotient=_ratio(
                    mean - field_mean,
                    quotient_interval(field_logs, logs),
                    min(len(field_logs), len(logs)),
                ),
                margin=margins[workload],
            )
        )
    return rows, others


def _logs(pairing: Pairing | None, workload: str) -> tuple[Floats, int]:
    """Return the logs of the ratios of a workload, in the order of time, and how many pairs have none."""
    if pairing is None:
        return np.empty(0), 0
    matched = pairing.averaged.matched
    matched = matched[matched["workload"] == workload].sort_values("repetition")
    ratios = matched["ratio"].to_numpy(np.float64)
    with np.errstate(invalid="ignore"):
        usable = np.isfinite(ratios) & (ratios > 0)
    return np.log(ratios[usable]), int((~usable).sum())


def _independent(logs: Floats) -> dependent.Posterior:
    scale = max(float(logs.std(ddof=1)) / math.sqrt(len(logs)), 1e-12)
    return dependent.Posterior(np.ones(1), np.array([logs.mean()]), np.array([scale]), len(logs) - 1)


def quotient_interval(field_logs: Floats, emulated_logs: Floats) -> tuple[float, float]:
    """Return the interval of the log of emulated / field, by draws of both."""
    generator = np.random.default_rng(_SEED)
    draws = _draws(_independent(emulated_logs), generator) - _draws(dependent.mean_of(field_logs), generator)
    low, high = np.quantile(draws, [LEVEL / 2, 1 - LEVEL / 2])
    return float(low), float(high)


def _draws(posterior: dependent.Posterior, generator: np.random.Generator) -> Floats:
    places = generator.choice(len(posterior.weights), _DRAWS, p=posterior.weights)
    noise = generator.standard_t(posterior.freedom, _DRAWS)
    draws: Floats = posterior.means[places] + posterior.scales[places] * noise
    return draws


def _ratio(mean: float, interval: tuple[float, float], pairs: int, left_out: int = 0) -> Ratio:
    low, high = map(math.exp, interval)
    return Ratio(math.exp(mean), low, high, pairs, left_out)


def sentences(database: Database, campaign: CampaignInfo) -> Iterator[str]:
    """Yield for each emulation of a path what it says of its ratios; nothing without one."""
    for emulation in emulations(database, campaign):
        rows, others = closed(database, campaign, emulation)
        yield from (sentence(row, emulation.name) for row in rows)
        for other in others:
            pairs = f"{other.field_pairs} of the path and {other.emulated_pairs} emulated ({emulation.name})"
            yield (
                f"{other.variant}, {other.workload}: too few pairs to compare, {pairs};"
                f" {dependent.FEWEST} are needed of each."
            )


def sentence(row: Closed, name: str) -> str:
    """Return what one comparison says of an emulation."""
    verdict = {
        "same": f"the same, within the margin of {percent(row.margin)}",
        "differs": f"not the same: {_text(row.quotient)} times that of the path",
        "not sure": f"{_text(row.quotient)} times that of the path; {row.blocks_needed} blocks and"
        f" repetitions would tell whether it is the same within {percent(row.margin)}",
    }[row.verdict]
    out = [
        f"{counted(ratio.left_out, 'pair')} {where} have no ratio"
        for where, ratio in (("of the path", row.field), ("of the emulation", row.emulated))
        if ratio.left_out
    ]
    return (
        f"{row.variant}, {row.workload}: over the path its ratio to {row.baseline} is {_text(row.field)},"
        f" emulated ({name}) {_text(row.emulated)}: {'; '.join([verdict, *out])}."
    )


def _text(ratio: Ratio) -> str:
    return f"{number(ratio.value, '.3f')} ({number(ratio.low, '.3f')} to {number(ratio.high, '.3f')})"
