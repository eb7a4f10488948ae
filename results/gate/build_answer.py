"""The answer about a new build: the verdict with its numbers, where it helps and harms, the worst
networks, and the pairs that fail."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from fecbench.looks import looks_of_builds
from fecbench.quantities import counted
from fecbench.results import metrics
from fecbench.results.analysis import attempts
from fecbench.results.analysis.intervals import ratio_intervals
from fecbench.results.analysis.margins import of_points, percent
from fecbench.results.analysis.one_host import of_several_hosts
from fecbench.results.analysis.outcomes import COUNTED
from fecbench.results.analysis.pairing import Pairing, paired
from fecbench.results.analysis.rules import NothingToExplain, explain
from fecbench.results.gate.failing import FailingPair
from fecbench.results.gate.measuring import disturbed_unlike, measured
from fecbench.results.gate.overall import NEW, OLD, Ratio, pairs_of, read
from fecbench.results.gate.verdict import (
    Margins,
    Measured,
    Verdict,
    faster,
    harms,
    hindrances,
    margins_for,
    open_ratios,
    shown,
    verdict_of,
)
from fecbench.results.gate.worst import Worst, worst_of
from fecbench.results.metrics.units import number, quantity
from fecbench.results.store.database import Database
from fecbench.results.store.records import CampaignInfo

_KINDS = {"both": "both builds", "new_alone": "the new build alone", "old_alone": "the old build alone"}


@dataclass(frozen=True)
class Answer:
    """The result of two builds of one implementation."""

    campaign: CampaignInfo
    verdict: Verdict
    margins: Margins
    measured: Measured
    helps: int
    """Networks, each with each workload, in which new is surely faster by more than the margin there."""
    harms: int
    equivalent: int
    places: int
    """Networks times workloads, with those of too few pairs for an interval."""
    not_vouched: int
    """Trials that are in no ratio, since the harness cannot vouch for them, or they are unsupported."""
    other_hosts: int
    """Pairs that are in no ratio, since their trials ran on different hosts."""
    attempts: tuple[str, ...]
    """The numbers of invalid attempts of each arm, in sentences; none where every one was valid."""
    where: tuple[str, ...]
    """The rules, or why there is none."""
    worst: tuple[Worst, ...]


def answer(database: Database, campaign: CampaignInfo, share: float | None = None) -> Answer:
    """Return the answer of a campaign of two builds by its trials so far.

    This look at its results may err in this share of LEVEL; None: the share of a planned look.
    """
    looks = len(looks_of_builds(campaign.repetitions))
    frame = read(database, campaign)
    margins = margins_for(campaign)
    share = 1 / looks if share is None else share
    rerun = attempts.by_variant(database, campaign)
    results_of_builds = measured(frame, campaign, share, disturbed_unlike(rerun, campaign, share))
    pairing = paired(frame, OLD, NEW, metrics.of_workloads(campaign), campaign.statistic)
    of_places = of_points(pairing.ratios, campaign)
    ratios = ratio_intervals(pairing, campaign.statistic, margins=of_places, looks=looks)
    counts = ratios["discovery"].value_counts()
    return Answer(
        campaign=campaign,
        verdict=verdict_of(results_of_builds, margins),
        margins=margins,
        measured=results_of_builds,
        helps=int(counts.get("gain", 0)),
        harms=int(counts.get("harm", 0)),
        equivalent=int(counts.get("equivalent", 0)),
        places=len(campaign.points) * len(campaign.workloads),
        not_vouched=int((~frame["state"].isin(COUNTED)).sum()),
        other_hosts=len(of_several_hosts(frame, (OLD, NEW))),
        attempts=tuple(attempts.sentences(rerun, campaign)),
        where=_where(pairing, campaign, margins.overall, sorted(set(of_places))),
        worst=tuple(worst_of(pairs_of(frame, campaign), frame, campaign)),
    )


def _where(
    pairing: Pairing, campaign: CampaignInfo, margin: float, margins: Sequence[float]
) -> tuple[str, ...]:
    """Return the rules. They mention the margins of single networks where these are wider than the margin
    over all networks."""
    if pairing.ratios["metric"].nunique() > 1:
        return ("No rule: its workloads are compared by different metrics.",)
    try:
        explanation = explain(pairing, campaign)
    except NothingToExplain as nothing:
        return (f"Nothing to explain: {nothing}.",)
    if not margins or margins[-1] <= margin:
        return (explanation.sentence, *map(str, explanation.rules))
    widths = " to ".join(dict.fromkeys((f"{100 * margins[0]:.3g}", percent(margins[-1]))))
    if margins[0] == margins[-1]:
        widths = percent(margins[-1])
    by = f", by the margin of single networks, {widths}"
    return (explanation.sentence, *(f"{rule}{by}" for rule in explanation.rules))


def headline(result: Answer) -> str:
    """Return the answer in a sentence: the verdict, its reasons, and the ratio over all networks."""
    margin = percent(result.margins.overall)
    overall = f"new / old = {shown(result.measured.overall)} over all networks, with a margin of {margin}"
    because = "; ".join(_because(result))
    return f"{result.verdict}: {because}{'; ' * bool(because)}{overall}"


def _because(result: Answer) -> Iterator[str]:
    """Yield the decisive facts, where the ratio over all networks alone does not decide."""
    measured, margins = result.measured, result.margins
    if result.verdict == "fails":
        yield f"fails in {trials(measured.failed.new_alone)} in which the old one does not"
    elif result.verdict == "undecided":
        because = list(hindrances(measured))
        yield from because or _open(measured, margins)
    elif result.verdict == "slower":
        if not measured.overall.low > 1 + margins.overall:
            yield from harms(measured, margins)
    elif result.verdict == "faster":
        decide = faster(measured, margins)
        if "all networks" not in decide:
            yield ", ".join(f"{name} {shown(ratio)}" for name, ratio in decide.items())


def _open(measured: Measured, margins: Margins) -> Iterator[str]:
    if measured.unseen:
        yield f"{measured.unseen:,} networks and workloads have no pair yet"
    if measured.may_fail:
        new, old = trials(measured.failed.new_alone), measured.failed.old_alone
        yield f"new alone fails in {new}, old alone in {old}: that may be chance"
    ratios_by_name = open_ratios(measured, margins)
    if several := [
        f"{name} {shown(ratio)}" for name, ratio in ratios_by_name.items() if name != "all networks"
    ]:
        yield f"may be slower: {', '.join(several)}"


def trials(count: int) -> str:
    """Return a number of trials, for a person."""
    return counted(count, "trial")


def counts(result: Answer) -> str:
    """Return in how many networks it helps and harms, in a sentence."""
    rest = result.places - result.helps - result.harms - result.equivalent
    slower = len(result.measured.networks.points)
    return (
        f"Of {result.places:,} networks and workloads, it surely helps in {result.helps} and"
        " harms in"
        f" {result.harms}; no difference in {result.equivalent}, undecided {rest}."
        f" It is surely slower in {slower:,} of {counted(len(result.campaign.points), 'network')}."
    )


def slow_ends(result: Answer) -> str:
    """Return the ratios of mean times and of 95th percentiles, in a sentence."""
    measured = result.measured
    return (
        f"Mean times: {shown(measured.mean)}. 95th percentiles: {shown(measured.tail)}, with a margin of"
        f" {percent(result.margins.tail)}."
    )


def failures(result: Answer) -> str:
    """Return how many pairs failed in which build, and what is left out, in sentences; "" for nothing."""
    failed, parts = result.measured.failed, []
    if failed.any:
        parts.append(
            f"Of {counted(failed.run, 'pair')}, {failed.both} failed or timed out in both builds,"
            f" {failed.new_alone}"
            f" in the new one alone, {failed.old_alone} in the old one alone; they are in no ratio."
        )
    if result.not_vouched:
        parts.append(
            f"{counted(result.not_vouched, 'trial', 'is/are')} invalid or unsupported, and in no ratio."
        )
    if result.other_hosts:
        parts.append(f"{counted(result.other_hosts, 'pair')} ran on different hosts: in no ratio.")
    return " ".join((*parts, *result.attempts))


def failing(result: Answer, one: FailingPair) -> str:
    """Return which pair failed, for a person."""
    where = f"{one.workload} in network {one.point} ({_factors(result.campaign.points[one.point])})"
    return f"fails in {_KINDS[one.kind]}: {where}, repetition {one.repetition}"


def network(one: Worst) -> str:
    """Return a network with its workload, for a person."""
    return f"{one.workload} in network {one.point} ({_factors(one.factors)})"


def ratio_in(one: Worst) -> str:
    """Return the ratio in a network, and that of its pair of trials."""
    pair = f"trials {one.old_trial} and {one.new_trial}: {number(one.pair_ratio)}"
    return f"ratio {number(one.ratio)} over {counted(one.pairs, 'pair')}; {pair}"


def ratios(result: Answer) -> dict[str, Ratio]:
    """Return all ratios with their names, in the order in which they are read."""
    measured = result.measured
    tails = {"mean times": measured.mean, "95th percentiles": measured.tail}
    return {"all networks": measured.overall, **measured.workloads, **tails}


def _factors(factors: Mapping[str, object]) -> str:
    return ", ".join(f"{name} {_quantity(name, value)}" for name, value in factors.items())


def _quantity(name: str, value: object) -> str:
    return quantity(name, float(f"{value:.3g}")) if isinstance(value, int | float) else str(value)
