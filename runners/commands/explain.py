"""`fecbench explain`: in which networks a variant helps, as rules and as a map."""

import json
import math
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fecbench.hints import nearest
from results.store.database import CampaignInfo, Database
from runners.commands.show import one_campaign
from runners.refusal import Refusal

if TYPE_CHECKING:
    from results.analysis.rules import Explanation, Rule
    from results.figures.saving import Folder


def explain(
    db: Annotated[str, typer.Option(help="The results database: a file, or a PostgreSQL URL.")],
    campaign: Annotated[str, typer.Option(help="The campaign, when the database holds several.")] = "",
    variant: Annotated[str, typer.Option(help="The variant; by default all but the baseline.")] = "",
    baseline: Annotated[str, typer.Option(help="Compare with this variant, not the design's baseline.")] = "",
    metric: Annotated[str, typer.Option(help="The metric whose ratio is explained.")] = "client.dct_s",
    output: Annotated[Path | None, typer.Option(help="A folder for the figures (PNG, SVG and PDF).")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the explanation as JSON.")] = False,
) -> None:
    """Say which factors drive the ratio of a variant to the baseline, and where it is below 1."""
    # Imported here: scikit-learn takes longer to load than most commands take to run.
    from results.analysis import frames
    from results.analysis.pairing import left_out, paired
    from results.analysis.rules import NothingToExplain
    from results.analysis.rules import explain as explained

    with Database.open(db) as database:
        chosen = one_campaign(database, campaign)
        against, others = _arms(db, chosen, baseline, variant)
        folder = None if output is None else _folder(output)  # before minutes of computing
        frame = frames.trials(database, chosen, [metric])
        if metric not in frame:
            hint = nearest(metric, database.metric_names(chosen.id))
            raise Refusal(f"{db}: campaign {chosen.name!r}: no trial measured {metric!r}; {hint}")
    comparisons = []
    for other in others:
        pairing = paired(frame, against, other, metric, chosen.statistic)
        lacking = left_out(pairing, chosen, against, other)
        try:
            found: Explanation | str = explained(pairing, chosen)
        except NothingToExplain as nothing:
            found = f"nothing to explain: {nothing}"
        comparisons.append(_Comparison(other, against, metric, found, lacking))
    if all(isinstance(each.found, str) for each in comparisons):
        raise Refusal(f"{db}: {'; '.join(f'{each.arms}: {each.found}' for each in comparisons)}")
    documents = []
    for each in comparisons:
        paths = [] if folder is None else _draw(each, folder)
        documents.append(_document(each, paths))
        if not as_json:
            print("\n".join(_lines(each, paths)))
    if as_json:
        print(json.dumps(documents, indent=1))


@dataclass(frozen=True)
class _Comparison:
    """`found` is why there is no explanation where there is none."""

    variant: str
    baseline: str
    metric: str
    found: "Explanation | str"
    left_out: str

    @property
    def arms(self) -> str:
        return f"{self.variant} against {self.baseline}"


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


def _folder(path: Path) -> "Folder":
    from results.figures.saving import Folder

    try:
        return Folder(path)
    except OSError as error:
        raise Refusal(
            f"--output {path}: cannot be made a folder: {error.strerror}: give the name of a folder"
        ) from None


def _draw(of: _Comparison, folder: "Folder") -> list[str]:
    """The figures that there is enough for: their paths. The explanation's sentence says what is not."""
    from results.figures import explanation as explain_figures
    from results.figures.saving import stem

    if isinstance(of.found, str):
        return []
    drawn = [
        folder.draw(
            f"{name}-{stem(of.variant)}", "", partial(draw, of.found, of.variant, of.baseline, of.metric)
        )
        for name, draw in (("map", explain_figures.benefit_map), ("effects", explain_figures.effects))
    ]
    return [str(file) for drawing in drawn for file in drawing.files]


def _lines(of: _Comparison, paths: list[str]) -> list[str]:
    if isinstance(of.found, str):
        return [f"{of.arms}: {of.found}"]
    driving = ", ".join(
        f"{row.factor} {row.importance:+.0%}" for row in of.found.importances.itertuples(index=False)
    )
    return [
        f"{of.metric} of {of.variant} / {of.baseline}, median over points with 95 % interval",
        *([of.left_out] if of.left_out else []),
        str(of.found.everywhere),
        of.found.sentence,
        *(str(rule) for rule in of.found.rules),
        *([f"error when shuffled: {driving}"] if driving else []),
        *(f"figure {path}" for path in paths),
    ]


def _document(of: _Comparison, paths: list[str]) -> dict[str, Any]:
    arms = {"variant": of.variant, "baseline": of.baseline, "metric": of.metric, "left_out": of.left_out}
    if isinstance(of.found, str):
        nothing: dict[str, Any] = {"everywhere": None, "p_value": None, "rules": [], "importances": {}}
        return {**arms, **nothing, "sentence": of.found, "figures": paths}
    importances = of.found.importances
    return {
        **arms,
        "everywhere": _rule(of.found.everywhere),
        "p_value": _number(of.found.p_value),
        "sentence": of.found.sentence,
        "rules": [_rule(rule) for rule in of.found.rules],
        "importances": dict(zip(importances["factor"], importances["importance"], strict=True)),
        "figures": paths,
    }


def _rule(rule: "Rule") -> dict[str, Any]:
    return {
        "conditions": list(rule.conditions),
        "ratio": rule.ratio,
        "low": _number(rule.low),
        "high": _number(rule.high),
        "points": rule.points,
        "ratios": rule.ratios,
        "planned_ratios": rule.planned_ratios,
    }


def _number(value: float) -> float | None:
    """JSON knows no NaN."""
    return None if math.isnan(value) else value
