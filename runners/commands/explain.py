"""`fecbench explain`: in which networks a variant helps, as rules and as a map."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fecbench.documents import number
from fecbench.results.store.records import CampaignInfo
from fecbench.runners.commands.console import arguments, completion
from fecbench.runners.commands.console.campaign_documents import print_document
from fecbench.runners.commands.console.choice import comparing, one_campaign, open_database
from fecbench.runners.commands.console.destination import check_folder
from fecbench.runners.commands.console.terminal import say
from fecbench.runners.refusal import Refusal
from fecbench.whole_files import filling

if TYPE_CHECKING:
    import pandas as pd

    from fecbench.designs import screening as trajectories
    from fecbench.results.analysis.comparing import Comparison
    from fecbench.results.analysis.rules import Explanation, Rule
    from fecbench.results.figures.saving import Folder


def explain(
    db: arguments.Database = arguments.DATABASE,
    campaign: arguments.Campaign = "",
    variant: Annotated[
        str,
        typer.Option(
            help="The variant; by default all that have a baseline.", autocompletion=completion.variants
        ),
    ] = "",
    baseline: Annotated[
        str,
        typer.Option(
            help="Compare with this variant, not with what the design says.",
            autocompletion=completion.variants,
        ),
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
        import pandas as pd

        from fecbench.results.analysis import deciding, elementary_effects
        from fecbench.results.analysis.comparing import arms_of, compare

        address = database.address
        info = comparing(database, one_campaign(database, campaign), metric, margin, statistic)
        comparisons = compare(database, info, arms_of(address, info, baseline, variant))
    if all(isinstance(comparison.result, str) for comparison in comparisons):
        reasons = "; ".join(f"{comparison.arms}: {comparison.result}" for comparison in comparisons)
        raise Refusal(f"{address}: {reasons}")
    steps = _steps(info)
    figures = _drawn(comparisons, output)
    documents = []
    for comparison, paths in zip(comparisons, figures, strict=True):
        effects = _effects(comparison, steps)
        document = _document(comparison, paths)
        documents.append({**document, "screening": None if effects is None else _rows(effects)})
        if not as_json:
            say("\n".join(_lines(comparison, paths)))
            for _, row in (pd.DataFrame() if effects is None else effects).iterrows():
                say(elementary_effects.in_words(row))
    if as_json:
        print_document(documents)
        return
    for sentence in deciding.of_averages(info):
        say(sentence)


def _steps(info: CampaignInfo) -> list[trajectories.Step]:
    """Return the steps of a screening; none of another plan."""
    from fecbench import designs
    from fecbench.designs import screening as trajectories

    if info.plan_method != "morris":
        return []
    return trajectories.steps(info.points, designs.parse(info.design_text, info.name).factors)


def _effects(comparison: Comparison, steps: Sequence[trajectories.Step]) -> pd.DataFrame | None:
    """Return what each factor of a screening does to the ratio; None of another plan, or without a ratio."""
    from fecbench.results.analysis import elementary_effects

    if not steps or isinstance(comparison.result, str):
        return None
    return elementary_effects.elementary_effects(comparison.result.averaged, steps)


def _rows(effects: pd.DataFrame) -> list[dict[str, Any]]:
    """Return the rows of a table as JSON has them: null for what is not known."""
    rows = effects.to_dict("records")
    return [{str(name): None if value != value else value for name, value in row.items()} for row in rows]


def _drawn(comparisons: Sequence[Comparison], output: Path | None) -> list[list[str]]:
    """The paths of the figures of each comparison: all are drawn, or none. Raises OSError."""
    if output is None:
        return [[] for _ in comparisons]
    from fecbench.results.figures.saving import Folder

    with filling(output) as unfinished:
        folder = Folder(unfinished)
        names = [_draw(comparison, folder) for comparison in comparisons]
    for name in folder.undrawn:  # of an earlier time
        (output / name).unlink(missing_ok=True)
    return [[str(output / name) for name in of_one] for of_one in names]


def _draw(comparison: Comparison, folder: Folder) -> list[str]:
    """Draw the figures for which there is enough data, and return their names. The explanation names the
    others."""
    if isinstance(comparison.result, str):
        return []
    from fecbench.results.figures import benefit_map, effects
    from fecbench.results.figures.saving import stem

    drawings = [
        folder.draw(
            f"{name}-{stem(comparison.variant)}",
            "",
            partial(draw, comparison.result, comparison.variant, comparison.baseline, comparison.metric),
        )
        for name, draw in (("map", benefit_map), ("effects", effects))
    ]
    return [file.name for drawing in drawings for file in drawing.files]


def _lines(comparison: Comparison, paths: Sequence[str]) -> list[str]:
    from fecbench.results.analysis.margins import percent

    explanation = comparison.result
    if isinstance(explanation, str):
        return [f"{comparison.arms}: {explanation}"]
    driving = ", ".join(
        f"{row.factor} {row.importance:+.0%}" for row in explanation.importances.itertuples(index=False)
    )
    margin = percent(float(explanation.table["margin"].max()))
    return [
        f"{comparison.metric} of “{comparison.variant}” / “{comparison.baseline}”,"
        f" {_of_what(explanation)} with 95 % interval, margin {margin}",
        *([comparison.left_out] if comparison.left_out else []),
        *(str(rule) for rule in explanation.of_one_network or [explanation.everywhere]),
        explanation.sentence,
        *(str(rule) for rule in explanation.rules),
        *([f"error when shuffled: {driving}"] if driving else []),
        *(f"figure {path}" for path in paths),
    ]


def _of_what(explanation: Explanation) -> str:
    return "over repetitions" if explanation.of_one_network else f"{explanation.average} over networks"


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
        "everywhere": None if explanation.of_one_network else _rule(explanation.everywhere),
        "p_value": number(explanation.p_value),
        "sentence": explanation.sentence,
        "rules": [_rule(rule) for rule in explanation.of_one_network or explanation.rules],
        "correlations": explanation.correlations.to_dict("records"),
        "importances": dict(zip(importances["factor"], importances["importance"], strict=True)),
        "figures": paths,
    }


def _rule(rule: Rule) -> dict[str, Any]:
    return {
        "text": str(rule),
        "conditions": list(rule.conditions),
        "ratio": number(rule.ratio),
        "low": number(rule.low),
        "high": number(rule.high),
        "verdict": rule.verdict,
        "points": rule.points,
        "ratios": rule.ratios,
        "planned_ratios": rule.planned_ratios,
    }
