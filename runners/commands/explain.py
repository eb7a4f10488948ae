"""`fecbench explain`: in which networks a variant helps, as rules and as a map."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any

import typer

from fecbench.hints import nearest
from fecbench.results.analysis import frames
from fecbench.results.analysis import rules as analysis
from fecbench.results.analysis.margins import percent
from fecbench.results.analysis.pairing import baseline_of, baselines_of, left_out, paired
from fecbench.results.analysis.rules import Explanation, NothingToExplain, Rule
from fecbench.results.figures import explanation as figures
from fecbench.results.figures.saving import Folder, stem
from fecbench.results.metrics import of_workloads
from fecbench.results.store.database import Database
from fecbench.results.store.records import CampaignInfo
from fecbench.runners.commands import arguments
from fecbench.runners.commands.choice import comparing, one_campaign, open_database
from fecbench.runners.commands.destination import check_folder
from fecbench.runners.commands.document import print_document
from fecbench.runners.commands.terminal import say
from fecbench.runners.refusal import Refusal

_NONE = "is compared with none in its design: choose one with --baseline"


def explain(
    db: arguments.Database = arguments.DATABASE,
    campaign: arguments.Campaign = "",
    variant: Annotated[str, typer.Option(help="The variant; by default all that have a baseline.")] = "",
    baseline: Annotated[
        str, typer.Option(help="Compare with this variant, not with what the design says.")
    ] = "",
    metric: arguments.Metric = "",
    margin: arguments.Margin = None,
    statistic: arguments.Statistic = None,
    output: arguments.OptionalOutputFolder = None,
    as_json: arguments.Json = False,
) -> None:
    """Say which factors drive the ratio of a variant to its baseline, and where it is below 1."""
    if output is not None:
        check_folder("--output", output)  # before minutes of computing
    with open_database(db) as database:
        address = database.address
        info = comparing(database, one_campaign(database, campaign), metric, margin, statistic)
        comparisons = compare(database, info, arms_of(address, info, baseline, variant))
    if all(isinstance(comparison.result, str) for comparison in comparisons):
        reasons = "; ".join(f"{comparison.arms}: {comparison.result}" for comparison in comparisons)
        raise Refusal(f"{address}: {reasons}")
    folder = None if output is None else Folder(output)
    documents = []
    for comparison in comparisons:
        paths = [] if folder is None else _draw(comparison, folder)
        documents.append(_document(comparison, paths))
        if not as_json:
            say("\n".join(_lines(comparison, paths)))
    if as_json:
        print_document(documents)


@dataclass(frozen=True)
class Comparison:
    """A variant against its baseline."""

    variant: str
    baseline: str
    metric: str
    result: Explanation | str
    """The explanation, or why there is none."""
    left_out: str
    """Which pairs have no ratio, in a sentence."""

    @property
    def arms(self) -> str:
        return f"{self.variant} against {self.baseline}"


def compare(database: Database, campaign: CampaignInfo, arms: Mapping[str, str]) -> list[Comparison]:
    """Each variant against its baseline (`arms_of`), by the metric that all workloads compare.

    Raises Refusal when workloads compare different metrics.
    """
    metric, *others = dict.fromkeys(of_workloads(campaign).values())
    if others:
        raise Refusal(
            f"{database.address}: campaign {campaign.name!r}: its workloads compare"
            f" {', '.join([metric, *others])}: choose with --metric one for all"
        )
    frame = frames.trials(database, campaign, [metric])
    comparisons = []
    for variant, baseline in arms.items():
        pairing = paired(frame, baseline, variant, metric, campaign.statistic)
        result: Explanation | str
        try:
            result = analysis.explain(pairing, campaign)
        except NothingToExplain as nothing:
            result = f"nothing to explain: {nothing}"
        lacking = left_out(pairing, campaign, baseline, variant)
        comparisons.append(Comparison(variant, baseline, metric, result, lacking))
    return comparisons


def arms_of(address: str, campaign: CampaignInfo, baseline: str, variant: str) -> dict[str, str]:
    """The variants to compare, each with its baseline."""
    labels = [known["label"] for known in campaign.variants]
    for option, label in (("--baseline", baseline), ("--variant", variant)):
        if label and label not in labels:
            raise Refusal(
                f"{address}: {option} {label}: campaign {campaign.name!r} has none; {nearest(label, labels)}"
            )
    compared = dict.fromkeys(labels, baseline) if baseline else baselines_of(campaign)
    if not compared and len(labels) > 1:
        raise Refusal(
            f"{address}: campaign {campaign.name!r} names no baseline: choose with --baseline one of {labels}"
        )
    compared.pop(baseline, None)
    if not compared:
        raise Refusal(
            f"{address}: campaign {campaign.name!r} has one variant only: there is no ratio to explain"
        )
    if variant and variant not in compared:
        problem = "is the baseline: choose another" if variant in (baseline, baseline_of(campaign)) else _NONE
        raise Refusal(f"{address}: --variant {variant}: {problem}")
    return {variant: compared[variant]} if variant else compared


def _draw(comparison: Comparison, folder: Folder) -> list[str]:
    """The figures that there is enough for: their paths. The explanation's sentence says what is not."""
    if isinstance(comparison.result, str):
        return []
    drawings = [
        folder.draw(
            f"{name}-{stem(comparison.variant)}",
            "",
            partial(draw, comparison.result, comparison.variant, comparison.baseline, comparison.metric),
        )
        for name, draw in (("map", figures.benefit_map), ("effects", figures.effects))
    ]
    return [str(file) for drawing in drawings for file in drawing.files]


def _lines(comparison: Comparison, paths: Sequence[str]) -> list[str]:
    explanation = comparison.result
    if isinstance(explanation, str):
        return [f"{comparison.arms}: {explanation}"]
    driving = ", ".join(
        f"{row.factor} {row.importance:+.0%}" for row in explanation.importances.itertuples(index=False)
    )
    margin = percent(float(explanation.table["margin"].max()))
    return [
        f"{comparison.metric} of {comparison.variant} / {comparison.baseline}, median over points with 95 %"
        f" interval, margin {margin}",
        *([comparison.left_out] if comparison.left_out else []),
        str(explanation.everywhere),
        explanation.sentence,
        *(str(rule) for rule in explanation.rules),
        *([f"error when shuffled: {driving}"] if driving else []),
        *(f"figure {path}" for path in paths),
    ]


def _document(comparison: Comparison, paths: Sequence[str]) -> dict[str, Any]:
    arms = {
        "variant": comparison.variant,
        "baseline": comparison.baseline,
        "metric": comparison.metric,
        "left_out": comparison.left_out,
    }
    explanation = comparison.result
    if isinstance(explanation, str):
        nothing: dict[str, Any] = {
            "everywhere": None,
            "p_value": None,
            "rules": [],
            "correlations": [],
            "importances": {},
        }
        return {**arms, **nothing, "sentence": explanation, "figures": paths}
    importances = explanation.importances
    return {
        **arms,
        "everywhere": _rule(explanation.everywhere),
        "p_value": _number(explanation.p_value),
        "sentence": explanation.sentence,
        "rules": [_rule(rule) for rule in explanation.rules],
        "correlations": explanation.correlations.to_dict("records"),
        "importances": dict(zip(importances["factor"], importances["importance"], strict=True)),
        "figures": paths,
    }


def _rule(rule: Rule) -> dict[str, Any]:
    return {
        "text": str(rule),
        "conditions": list(rule.conditions),
        "ratio": _number(rule.ratio),
        "low": _number(rule.low),
        "high": _number(rule.high),
        "verdict": rule.verdict,
        "points": rule.points,
        "ratios": rule.ratios,
        "planned_ratios": rule.planned_ratios,
    }


def _number(value: float) -> float | None:
    """JSON knows neither NaN nor ∞; the text of the rule does."""
    return value if math.isfinite(value) else None
