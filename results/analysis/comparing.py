"""Each variant of a campaign explained against its baseline: in which networks it helps, and why."""

from collections.abc import Mapping
from dataclasses import dataclass

from fecbench.hints import nearest
from fecbench.results.analysis import frames
from fecbench.results.analysis.pairing import baseline_of, baselines_of, left_out, of_arms
from fecbench.results.analysis.rules import Explanation, NothingToExplain, explain
from fecbench.results.metrics import of_workloads
from fecbench.results.store.database import Database, DatabaseError
from fecbench.results.store.records import CampaignInfo

_NONE = "is compared with none in its design: choose one with --baseline"


@dataclass(frozen=True)
class Comparison:
    """A variant against its baseline."""

    variant: str
    baseline: str
    metric: str
    result: Explanation | str
    """The explanation, or why there is none."""
    left_out: str
    """A sentence about the pairs that have no ratio."""

    @property
    def arms(self) -> str:
        return f"{self.variant} against {self.baseline}"


def compare(database: Database, campaign: CampaignInfo, arms: Mapping[str, str]) -> list[Comparison]:
    """Each variant against its baseline (`arms_of`), by the metric that all workloads compare.

    Raises DatabaseError when workloads compare different metrics.
    """
    metric, *others = dict.fromkeys(of_workloads(campaign).values())
    if others:
        raise DatabaseError(
            f"{database.address}: campaign {campaign.name!r}: its workloads compare"
            f" {', '.join([metric, *others])}: choose with --metric one for all"
        )
    frame = frames.trials(database, campaign, [metric])
    comparisons = []
    for variant, baseline in arms.items():
        pairing = of_arms(frame, campaign, baseline, variant)
        result: Explanation | str
        try:
            result = explain(pairing, campaign)
        except NothingToExplain as nothing:
            result = f"nothing to explain: {nothing}"
        lacking = left_out(pairing, campaign, baseline, variant)
        comparisons.append(Comparison(variant, baseline, metric, result, lacking))
    return comparisons


def arms_of(address: str, campaign: CampaignInfo, baseline: str, variant: str) -> dict[str, str]:
    """The variants to compare, each with its baseline."""
    labels = [variant_table["label"] for variant_table in campaign.variants]
    for option, label in (("--baseline", baseline), ("--variant", variant)):
        if label and label not in labels:
            raise DatabaseError(
                f"{address}: {option} {label}: campaign {campaign.name!r} has none; {nearest(label, labels)}"
            )
    compared = dict.fromkeys(labels, baseline) if baseline else baselines_of(campaign)
    if not compared and len(labels) > 1:
        raise DatabaseError(
            f"{address}: campaign {campaign.name!r} names no baseline: choose with --baseline one of {labels}"
        )
    compared.pop(baseline, None)
    if not compared:
        raise DatabaseError(
            f"{address}: campaign {campaign.name!r} has one variant only: there is no ratio to explain"
        )
    if variant and variant not in compared:
        problem = "is the baseline: choose another" if variant in (baseline, baseline_of(campaign)) else _NONE
        raise DatabaseError(f"{address}: --variant {variant}: {problem}")
    return {variant: compared[variant]} if variant else compared
