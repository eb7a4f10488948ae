"""The task of a campaign, and the starts that have run it."""

from __future__ import annotations

from typing import Any, Self

from fecbench.results.analysis import hosts
from fecbench.results.analysis.pairing import baselines_of
from fecbench.results.analysis.starts import StartDifference
from fecbench.results.analysis.starts import Starts as KnownStarts
from fecbench.results.analysis.workload_names import short_names, workload_names
from fecbench.results.metrics import of_workloads
from fecbench.results.report.sections.section import Section
from fecbench.results.store.records import CampaignInfo, EngineWord, Kind


class Variant(Section):
    """An implementation with its options."""

    label: str
    implementation: str
    options: dict[str, Any]
    compared_with: str | None
    """The label of its baseline."""


class Workload(Section):
    """A task of endpoints."""

    label: str
    title: str
    """The name in figures and sentences: "50 kB"."""
    short_title: str
    """The same without the words that all workloads of the campaign begin with."""
    name: str
    """The kind: "download"."""
    parameters: dict[str, Any]
    metric: str
    """The compared metric: a name among the document's `metrics`."""


class Campaign(Section):
    """The task of a campaign."""

    name: str
    title: str
    question: str
    """The question of its design; its title where there is none."""
    heading: str
    """The name, and how its trials were run."""
    created_at: str
    """UTC, ISO 8601."""
    kind: Kind
    engine: EngineWord
    processor_time: str
    """The processor time of endpoints in virtual time, in words; "" for none."""
    checks: str | None
    """The campaign in virtual time of which this is an emulated sample."""
    seed: int
    """Unsigned, 64 bits."""
    repetitions: int
    """Repetitions of each variant, workload and point; of a campaign that runs until its results decide,
    at most."""
    statistic: str
    """The statistic of the repetitions of a point: "median", "mean" or "p95"."""
    margin: float
    """The least relative difference that matters, as the design has it: 0.02 is 2 %."""
    planned_trials: int
    design_text: str
    """The design file, in TOML."""
    points: list[dict[str, bool | int | float | str]]
    """The value of each factor, whose name ends with its unit; `points[i]` is point i."""
    variants: list[Variant]
    workloads: list[Workload]

    @classmethod
    def of(cls, campaign: CampaignInfo) -> Self:
        """Return what the database holds of it."""
        baselines, names, compared = baselines_of(campaign), workload_names(campaign), of_workloads(campaign)
        short = short_names(campaign)
        return cls(
            name=campaign.name,
            title=campaign.title,
            question=campaign.question,
            heading=campaign.heading,
            created_at=campaign.created_at,
            kind=campaign.kind,
            engine=campaign.engine,
            processor_time=campaign.processor_time,
            checks=campaign.checked,
            seed=campaign.seed,
            repetitions=campaign.repetitions,
            statistic=campaign.statistic,
            margin=campaign.margin,
            planned_trials=campaign.planned_trials,
            design_text=campaign.design_text,
            points=campaign.points,
            variants=[
                Variant(
                    label=variant["label"],
                    implementation=variant["implementation"],
                    options=variant["options"],
                    compared_with=baselines.get(variant["label"]),
                )
                for variant in campaign.variants
            ],
            workloads=[
                Workload(
                    label=workload["label"],
                    title=names[workload["label"]],
                    short_title=short[workload["label"]],
                    name=workload["name"],
                    parameters=workload["parameters"],
                    metric=compared[workload["label"]],
                )
                for workload in campaign.workloads
            ],
        )


class Start(Section):
    """A run of the command that added trials."""

    id: int
    started_at: str
    """UTC, ISO 8601."""
    host: str
    trials: int
    """The number of counted trials that it has run."""


class Starts(Section):
    """The starts that have run trials, and what of the numbers depends on their hosts."""

    starts: list[Start]
    unknown_trials: int
    """Trials of which no start is known."""
    differences: list[StartDifference]
    host_warnings: list[str]
    """A sentence for every two hosts that differ, and for ratios that depend on the host."""
    host_notes: list[str]
    """A note that no ratio depends on the host, or that it could not be tested."""

    @classmethod
    def of(cls, campaign_starts: KnownStarts, sentences: hosts.Told) -> Self:
        """Return the section of these starts and of sentences about hosts."""
        return cls(
            starts=[
                Start(
                    id=start.id,
                    started_at=start.started_at,
                    host=start.host,
                    trials=campaign_starts.trials[start.id],
                )
                for start in campaign_starts.starts
            ],
            unknown_trials=campaign_starts.unknown_trials,
            differences=list(campaign_starts.differences),
            host_warnings=sentences.warnings,
            host_notes=sentences.notes,
        )
