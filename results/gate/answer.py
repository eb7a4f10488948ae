"""All that is said of a new build: the verdict with its numbers, where it helps and harms, and the worst
networks."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from fecbench.results import metrics
from fecbench.results.analysis.intervals import ratio_intervals
from fecbench.results.analysis.margins import of_points, percent
from fecbench.results.analysis.outcomes import COUNTED, is_worst
from fecbench.results.analysis.pairing import PAIR, Pairing, paired
from fecbench.results.analysis.rules import NothingToExplain, explain
from fecbench.results.analysis.units import number, quantity
from fecbench.results.gate.overall import NEW, OLD, Measured, Ratio, measured, pairs_of, read
from fecbench.results.gate.verdict import Verdict, faster, is_settled, margin_of, slower, verdict_of
from fecbench.results.gate.worst import Worst, worst_of
from fecbench.results.store.database import Database
from fecbench.results.store.records import CampaignInfo

Commands = Callable[[Worst], list[str]]
"""The commands that replay both trials of a network."""


@dataclass(frozen=True)
class Answer:
    """What two builds of one implementation came to."""

    campaign: CampaignInfo
    verdict: Verdict
    margin: float
    measured: Measured
    helps: int
    """Networks, each with each workload, in which new is surely faster by more than the margin there."""
    harms: int
    equivalent: int
    places: int
    """Networks times workloads, with those of too few pairs for an interval."""
    old_alone: int
    """Pairs in which old alone failed or timed out."""
    new_alone: int
    not_vouched: int
    """Trials that are in no ratio, since the harness cannot vouch for them, or they are unsupported."""
    where: tuple[str, ...]
    """The rules, or why there is none."""
    worst: tuple[Worst, ...]


def answer(database: Database, campaign: CampaignInfo, looks: int, limit_s: float, share: float) -> Answer:
    """The answer of a campaign of two builds, of the trials that there are.

    Its results were looked at up to `looks` times, and this look may err in `share` of all its errors;
    `limit_s` is how long a trial may take.
    """
    frame = read(database, campaign)
    pairs = pairs_of(frame, campaign, limit_s)
    found, margin = measured(pairs, share), margin_of(campaign)
    pairing = paired(frame, OLD, NEW, metrics.of_workloads(campaign), campaign.statistic)
    margins = of_points(pairing.ratios, campaign)
    ratios = ratio_intervals(pairing, campaign.statistic, margins=margins, looks=looks)
    counts = ratios["discovery"].value_counts()
    old_alone, new_alone = _alone(frame)
    return Answer(
        campaign=campaign,
        verdict=verdict_of(found, margin),
        margin=margin,
        measured=found,
        helps=int(counts.get("gain", 0)),
        harms=int(counts.get("harm", 0)),
        equivalent=int(counts.get("equivalent", 0)),
        places=len(campaign.points) * len(campaign.workloads),
        old_alone=old_alone,
        new_alone=new_alone,
        not_vouched=int((~frame["state"].isin(COUNTED)).sum()),
        where=_where(pairing, campaign, margin, sorted(set(margins))),
        worst=tuple(worst_of(pairs, frame, campaign)),
    )


def settled(database: Database, campaign: CampaignInfo, looks: int, limit_s: float) -> bool:
    """Whether a campaign may stop, by the trials that there are, at one of `looks` looks."""
    pairs = pairs_of(read(database, campaign), campaign, limit_s)
    return is_settled(measured(pairs, 1 / looks), margin_of(campaign))


def _alone(frame: pd.DataFrame) -> tuple[int, int]:
    """In how many pairs one arm alone failed or timed out: old, and new."""
    counted = frame[frame["state"].isin(COUNTED)]
    table = counted.assign(worst=is_worst(counted)).pivot_table(
        index=PAIR, columns="variant", values="worst", aggfunc="max", observed=True
    )
    if not {OLD, NEW} <= set(table.columns):
        return 0, 0
    old, new = (table.dropna()[arm].astype(bool) for arm in (OLD, NEW))
    return int((old & ~new).sum()), int((new & ~old).sum())


def _where(
    pairing: Pairing, campaign: CampaignInfo, margin: float, margins: Sequence[float]
) -> tuple[str, ...]:
    """The rules. What is a difference in them is decided by the margins of single networks, which is said
    where these are wider than that over all networks."""
    if pairing.ratios["metric"].nunique() > 1:
        return ("No rule: its workloads are compared by different metrics.",)
    try:
        found = explain(pairing, campaign)
    except NothingToExplain as nothing:
        return (f"Nothing to explain: {nothing}.",)
    if not margins or margins[-1] <= margin:
        return (found.sentence, *map(str, found.rules))
    widths = " to ".join(dict.fromkeys((f"{100 * margins[0]:.3g}", percent(margins[-1]))))
    if margins[0] == margins[-1]:
        widths = percent(margins[-1])
    by = f", by the margin of single networks, {widths}"
    return (found.sentence, *(f"{rule}{by}" for rule in found.rules))


def headline(found: Answer) -> str:
    """The answer in a sentence; where the ratio over all networks does not give it, with the workloads that
    do."""
    measured, margin = found.measured, found.margin
    decide = {"slower": slower, "faster": faster}.get(found.verdict)
    workloads = ""
    if decide is not None and not decide([measured.overall], margin):
        deciding = decide(measured.workloads.values(), margin)
        named = [
            f"{label} {shown(ratio)}" for label, ratio in measured.workloads.items() if ratio in deciding
        ]
        workloads = f"{', '.join(named)}; "
    overall = f"new / old = {shown(measured.overall)} over all networks, with a margin of {percent(margin)}"
    return f"{found.verdict}: {workloads}{overall}"


def shown(ratio: Ratio) -> str:
    """A ratio with its interval, for a person."""
    if math.isnan(ratio.value):
        return "unknown"
    interval = "no interval" if math.isnan(ratio.low) else f"{ratio.low:.3f}, {ratio.high:.3f}"
    return f"{ratio.value:.3f} [{interval}]"


def counts(found: Answer) -> str:
    """In how many networks it helps and harms, in a sentence."""
    rest = found.places - found.helps - found.harms - found.equivalent
    return (
        f"Of {found.places} networks and workloads, it surely helps in {found.helps} and harms in"
        f" {found.harms}; no difference that matters in {found.equivalent}, undecided {rest}."
    )


def failures(found: Answer) -> str:
    """Who failed, and what is left out, in a sentence; "" for nothing."""
    parts = []
    if found.old_alone or found.new_alone:
        parts.append(
            f"New alone failed or timed out in {found.new_alone} pairs, old alone in {found.old_alone}:"
            " that counts as the longest time that a trial may take."
        )
    if found.not_vouched:
        parts.append(f"{found.not_vouched} trials are invalid or unsupported, and in no ratio.")
    return " ".join(parts)


def network(one: Worst) -> str:
    """A network with its workload, for a person."""
    factors = ", ".join(f"{name} {_quantity(name, value)}" for name, value in one.factors.items())
    return f"{one.workload} at point {one.point} ({factors})"


def ratio_in(one: Worst) -> str:
    """The ratio in a network, and that of its pair of trials."""
    trials = f"trials {one.old_trial} and {one.new_trial}: {number(one.pair_ratio)}"
    return f"ratio {number(one.ratio)} over {one.pairs} pairs; {trials}"


def _quantity(name: str, value: object) -> str:
    return quantity(name, float(f"{value:.3g}")) if isinstance(value, int | float) else str(value)


def document(found: Answer, commands: Commands) -> dict[str, Any]:
    """The answer as JSON, which knows no NaN."""
    overall = found.measured.overall
    return {
        "verdict": found.verdict,
        "says": headline(found),
        "ratio": _finite(overall.value),
        "interval": [_finite(overall.low), _finite(overall.high)],
        "margin": found.margin,
        "helps": found.helps,
        "harms": found.harms,
        "equivalent": found.equivalent,
        "places": found.places,
        "pairs": found.measured.pairs,
        "workloads": {
            label: {"ratio": _finite(ratio.value), "interval": [_finite(ratio.low), _finite(ratio.high)]}
            for label, ratio in found.measured.workloads.items()
        },
        "failed": {"old_alone": found.old_alone, "new_alone": found.new_alone},
        "not_vouched": found.not_vouched,
        "where": list(found.where),
        "worst": [
            {
                "workload": one.workload,
                "point": one.point,
                "factors": dict(one.factors),
                "ratio": one.ratio,
                "interval": [one.low, one.high],
                "pairs": one.pairs,
                "old_trial": one.old_trial,
                "new_trial": one.new_trial,
                "pair_ratio": one.pair_ratio,
                "replay": commands(one),
            }
            for one in found.worst
        ],
        "campaign": found.campaign.name,
        "engine": found.campaign.engine,
    }


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
