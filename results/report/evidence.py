"""Data that is read and computed of a campaign once, for the document of its report and for its figures."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import pandas as pd

from fecbench.results import metrics
from fecbench.results.analysis import attempts, frames
from fecbench.results.analysis.pairing import Pairing, comparisons
from fecbench.results.analysis.ratio_table import ratio_table, why_none
from fecbench.results.analysis.rules import Explanation, NothingToExplain, explain
from fecbench.results.analysis.selection import chosen
from fecbench.results.gate.build_answer import Answer, answer
from fecbench.results.gate.overall import is_of_two_builds
from fecbench.results.metrics import Metric
from fecbench.results.store.database import Database
from fecbench.results.store.records import CampaignInfo


@dataclass(frozen=True)
class Part:
    """The part of a campaign that compares one metric."""

    metric: Metric
    campaign: CampaignInfo
    """The campaign, with only the workloads that compare this metric."""
    pairings: Mapping[str, Pairing]
    """`pairing.comparisons`."""
    ratios: pd.DataFrame
    """`ratios.ratio_table`; empty where there is no ratio, as the figure of their distribution says."""
    alone: bool
    """No other metric is compared."""

    def heading(self, text: str) -> str:
        return text if self.alone else f"{text}: {self.metric.noun}"


@dataclass(frozen=True)
class Explained:
    """The networks where a variant helps, by one metric."""

    part: Part
    variant: str
    baseline: str
    """The variant that it is compared with."""
    explanation: Explanation | None
    """None for the reason that the sentence gives."""
    sentence: str


@dataclass(frozen=True)
class Evidence:
    """A campaign as it was read."""

    database: Database
    campaign: CampaignInfo
    """The campaign, with the metric that is compared on each workload."""
    run: pd.DataFrame
    """`frames.trials`: all that were run."""
    by_start: Mapping[int | None, int]
    """The number of them that each start has run (`frames.with_starts`)."""
    frame: pd.DataFrame
    """The trials of `run` that are compared."""
    first_attempts: bool
    """Whether these are first attempts alone."""
    parts: Sequence[Part]
    """One for each metric that is compared."""
    pairings: Mapping[str, Pairing]
    """`pairing.comparisons`, by the metric of each workload."""
    explained: Sequence[Explained]
    """One for each variant and metric that has a ratio."""
    gate: Answer | None
    """The answer of a campaign of two builds; None for any other campaign."""


def gather(
    database: Database,
    campaign: CampaignInfo,
    metric: str = "",
    first_attempts: bool = False,
    gate: Answer | None = None,
    *,
    arms: Sequence[str] = (),
    workloads: Sequence[str] = (),
    explained: bool = True,
) -> Evidence:
    """Read a campaign, and explain its ratios (`explained`).

    `metric`: what is compared, by default what each workload does. `first_attempts` compares without the
    groups that needed a second try (`analysis.attempts`). `gate`: the answer of a campaign of two builds,
    where it is known already. `arms` and `workloads`: only those of these labels (`analysis.selection`).
    Raises DatabaseError when it cannot be read, and BadInput for an unknown label.
    """
    campaign = metrics.choose(campaign, metric)
    run, by_start = frames.with_starts(database, campaign)
    if arms or workloads:
        run, campaign = chosen(run, campaign, arms, workloads)
    frame = attempts.first_attempts(run) if first_attempts else run
    parts = parts_of(frame, campaign)
    pairings = parts[0].pairings if len(parts) == 1 else comparisons(frame, campaign)
    where = [one for part in parts for one in _explained(part)] if explained else []
    if gate is None and is_of_two_builds(campaign):
        gate = answer(database, campaign)
    return Evidence(database, campaign, run, by_start, frame, first_attempts, parts, pairings, where, gate)


def with_explanations(evidence: Evidence) -> Evidence:
    """Return the same evidence, with its ratios explained."""
    return replace(evidence, explained=[one for part in evidence.parts for one in _explained(part)])


def parts_of(frame: pd.DataFrame, campaign: CampaignInfo) -> list[Part]:
    """One for each metric that workloads compare, in the order of the design."""
    by_metric = metrics.by_metric(campaign)
    parts = []
    for name, part in by_metric.items():
        metric, pairings = metrics.of(name), comparisons(frame, part)
        none = why_none(pairings, part, metric)
        ratios = pd.DataFrame() if none else ratio_table(pairings, part)
        parts.append(Part(metric, part, pairings, ratios, len(by_metric) == 1))
    return parts


def _explained(part: Part) -> Iterator[Explained]:
    for variant, pairing in part.pairings.items():
        if len(part.ratios) and len(pairing.ratios):
            yield _where_it_helps(part, variant, pairing)


def _where_it_helps(part: Part, variant: str, pairing: Pairing) -> Explained:
    try:
        explanation = explain(pairing, part.campaign)
    except NothingToExplain as nothing:
        sentence = f"Nothing can be explained: {nothing}."
        return Explained(part, variant, pairing.baseline_label, None, sentence)
    return Explained(part, variant, pairing.baseline_label, explanation, explanation.sentence)
