"""`fecbench explain`: in which networks a variant helps, as rules and as a map."""

import json
import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from results.database import CampaignInfo, Database
from runners.refusal import Refusal, nearest
from runners.show import one_campaign

if TYPE_CHECKING:
    from results.explain import Explanation, Rule


def explain(
    db: Annotated[str, typer.Option(help="The results database: a file, or a PostgreSQL URL.")],
    campaign: Annotated[str, typer.Option(help="The campaign, when the database holds several.")] = "",
    variant: Annotated[str, typer.Option(help="The variant; by default all but the baseline.")] = "",
    baseline: Annotated[str, typer.Option(help="Compare with this variant, not the design's baseline.")] = "",
    metric: Annotated[str, typer.Option(help="The metric whose ratio is explained.")] = "client.dct_s",
    output: Annotated[Path | None, typer.Option(help="A folder for the figures (PNG and SVG).")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the explanation as JSON.")] = False,
) -> None:
    """Say which factors drive the ratio of a variant to the baseline, and where it is below 1."""
    # Imported here: scikit-learn takes longer to load than most commands take to run.
    from results import frames
    from results.explain import NothingToExplain
    from results.explain import explain as explained

    with Database.open(db) as database:
        chosen = one_campaign(database, campaign)
        against, others = _arms(db, chosen, baseline, variant)
        frame = frames.trials(database, chosen, [metric])
    if metric not in frame:
        raise Refusal(f"{db}: campaign {chosen.name!r}: no trial measured {metric!r}")
    documents = []
    for other in others:
        pairing = frames.paired(frame, against, other, metric, chosen.statistic)
        try:
            found = explained(pairing, chosen)
        except NothingToExplain as nothing:
            raise Refusal(f"{db}: {other} against {against}: nothing to explain: {nothing}") from None
        paths = [] if output is None else _draw(found, output, other, against, metric)
        documents.append(_document(found, other, against, metric, paths))
        if not as_json:
            print("\n".join(_lines(found, other, against, metric, paths)))
    if as_json:
        print(json.dumps(documents, indent=1))


def _arms(db: str, campaign: CampaignInfo, baseline: str, variant: str) -> tuple[str, list[str]]:
    """The baseline, and the variants to compare with it."""
    labels = [each["label"] for each in campaign.variants]
    for option, label in (("--baseline", baseline), ("--variant", variant)):
        if label and label not in labels:
            raise Refusal(
                f"{db}: {option} {label}: campaign {campaign.name!r} has none; {nearest(label, labels)}"
            )
    against = baseline or next((each["label"] for each in campaign.variants if each["baseline"]), "")
    if not against:
        raise Refusal(
            f"{db}: campaign {campaign.name!r} names no baseline: choose with --baseline one of {labels}"
        )
    others = [variant] if variant else [label for label in labels if label != against]
    if not others:
        raise Refusal(f"{db}: campaign {campaign.name!r} has one variant only: there is no ratio to explain")
    if against in others:
        raise Refusal(f"{db}: --variant {variant}: is the baseline: choose another")
    return against, others


def _draw(found: "Explanation", folder: Path, variant: str, baseline: str, metric: str) -> list[str]:
    """The figures that there is enough for: their paths."""
    from results import explain_figures
    from results.figures import NothingToDraw, save

    folder.mkdir(parents=True, exist_ok=True)
    stem = "".join(letter if letter.isalnum() else "-" for letter in variant).strip("-")
    paths = []
    for name, draw in (("map", explain_figures.benefit_map), ("effects", explain_figures.effects)):
        try:
            figure = draw(found, variant, baseline, metric)
        except NothingToDraw:  # the sentence of the explanation says why
            continue
        for suffix in (".png", ".svg"):
            path = folder / f"{name}-{stem}{suffix}"
            save(figure, path)
            paths.append(str(path))
    return paths


def _lines(found: "Explanation", variant: str, baseline: str, metric: str, paths: list[str]) -> list[str]:
    driving = ", ".join(
        f"{row.factor} {row.importance:+.0%}" for row in found.importances.itertuples(index=False)
    )
    return [
        f"{metric} of {variant} / {baseline}, median over points with 95 % interval",
        str(found.everywhere),
        found.sentence,
        *(str(rule) for rule in found.rules),
        *([f"error when shuffled: {driving}"] if driving else []),
        *(f"figure {path}" for path in paths),
    ]


def _document(
    found: "Explanation", variant: str, baseline: str, metric: str, paths: list[str]
) -> dict[str, Any]:
    return {
        "variant": variant,
        "baseline": baseline,
        "metric": metric,
        "everywhere": _rule(found.everywhere),
        "p_value": _number(found.p_value),
        "sentence": found.sentence,
        "rules": [_rule(rule) for rule in found.rules],
        "importances": dict(zip(found.importances["factor"], found.importances["importance"], strict=True)),
        "figures": paths,
    }


def _rule(rule: "Rule") -> dict[str, Any]:
    return {
        "conditions": list(rule.conditions),
        "ratio": rule.ratio,
        "low": _number(rule.low),
        "high": _number(rule.high),
        "points": rule.points,
    }


def _number(value: float) -> float | None:
    """JSON knows no NaN."""
    return None if math.isnan(value) else value
