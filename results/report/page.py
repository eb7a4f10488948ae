"""The HTML page of a report, from its document and its figures: one file that needs nothing else."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import quote

import jinja2

from fecbench.quantities import counted
from fecbench.results.analysis.intervals import FEWEST
from fecbench.results.report import repeating, tables
from fecbench.results.report.document import Document
from fecbench.results.report.drawings import Drawings
from fecbench.results.report.exploring import Explorer
from fecbench.results.report.picture import pictures
from fecbench.results.report.sections.answers import Answer
from fecbench.results.report.sections.findings import Metric

_MOST_ANSWERS = 3  # variants on the first screen; the others are folded
_MANY_ANSWERS = 4  # more leave room for no more than two, beside a picture of so many rows
_MOST_MAPS = 3
_FOLDER = Path(__file__).parent / "templates"
TEMPLATES = jinja2.Environment(
    loader=jinja2.FileSystemLoader(_FOLDER),
    autoescape=True,
    undefined=jinja2.StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)
TEMPLATES.filters["counted"] = counted
TEMPLATES.filters["part"] = partial(quote, safe="")  # of an address
TEMPLATES.filters["tied"] = lambda text: re.sub(r"(?<=\d) (?=(%|[kMG]?B|m?s)\b|%)", "\u00a0", text)


@dataclass(frozen=True)
class Live:
    """The parts of a page that its server keeps up to date."""

    tables: tuple[str, ...]
    """Tables that the server gives as CSV."""
    trials: int
    """Valid trials that the page has."""
    states: Mapping[str, int]
    """The number of trials that were run, by their state."""
    planned: int
    version: str
    """Changes whenever the page does."""

    @property
    def run(self) -> int:
        """Trials that were run, whatever became of them."""
        return sum(self.states.values())

    @property
    def script(self) -> str:
        """Our code, which asks for what is new."""
        return (_FOLDER / "live.js").read_text(encoding="utf-8")


def page(
    document: Document,
    drawings: Drawings,
    exploring: Explorer | None = None,
    live: Live | None = None,
    unfinished: str = "",
) -> str:
    """Return the page; without `exploring`, it has no interactive charts, and with `live`, it asks its server
    for what is new. `unfinished` says what it lacks. The same document and figures give the same bytes."""
    scripts = [] if exploring is None else [exploring.library, exploring.script]
    scripts += [] if live is None else [live.script]
    script = (_FOLDER / "report.js").read_text(encoding="utf-8")
    answered = {answer.variant for answer in document.answers}
    baselines = {answer.baseline for answer in document.answers}
    return TEMPLATES.get_template("report.html").render(
        **dict(document),
        drawings=drawings,
        tables=_tables(document),
        pictures=pictures(document),
        words=_words(document.metrics),
        metric_of={metric.name: metric for metric in document.metrics},
        baseline_of_all=baselines.pop() if len(baselines) == 1 else "",
        design_link=_base64(document.campaign.design_text.encode()),
        fewest=FEWEST,
        most_answers=2 if len(document.answers) > _MANY_ANSWERS else _MOST_ANSWERS,
        most_maps=_MOST_MAPS,
        most_points=tables.MOST_POINTS,
        not_calibrated=repeating.NOT_CALIBRATED,
        all_figures=repeating.ALL_FIGURES,
        all_trials=repeating.ALL_TRIALS,
        all_points=repeating.ALL_POINTS,
        style=(_FOLDER / "report.css").read_text(encoding="utf-8"),
        script=script,
        script_hashes=list(map(_hash, [script, *scripts])),
        exploring=exploring,
        live=live,
        unfinished=unfinished,
        finding=" ".join(map(_finding, document.answers)),
        finding_of={answer.variant: _finding(answer) for answer in document.answers}
        | {one.variant: "" for one in document.explained if one.variant not in answered},
    )


def _tables(document: Document) -> dict[str, Any]:
    """The tables of the page by their names in the templates."""
    crosscheck = document.crosscheck
    return {
        "results": tables.results(document),
        "states": tables.states(document),
        "calibrations": [
            tables.calibration(calibration.get("measurements", [])) for calibration in document.calibrations
        ],
        "crosscheck": None if crosscheck is None else tables.crosscheck(crosscheck),
        "mean_ratios": None
        if crosscheck is None or not crosscheck.mean_ratios
        else tables.mean_ratios(crosscheck),
        "reasons": [] if crosscheck is None else tables.reasons(crosscheck),
        "disturbances": tables.disturbances(document),
        "points": tables.points(document),
        "variants": tables.variants(document),
        "medians": list(map(tables.medians, document.medians)),
        "rules": list(map(tables.rules, document.explained)),
        "claims": list(map(tables.claims, document.reproduced)),
        "doubtful": tables.trials(document.doubtful),
        "replaced": tables.trials(document.replaced),
        "attempts": tables.attempted(document),
        "second_tries": tables.second_tries(document),
        "unpaired": tables.unpaired(document),
        "starts": tables.starts(document),
        "differences": tables.differences(document),
        "provenance": tables.provenance(_flat(document.provenance)),
    }


def _finding(answer: Answer) -> str:
    """Return the finding of a variant, for a reader who does not see its figures."""
    return f"{answer.variant} {answer.rule}".strip() if answer.rule else answer.sentence


@dataclass(frozen=True)
class _Words:
    """The words of the summary: those of one metric, or general ones for several."""

    several: bool
    ratio: str
    better: str
    worse: str
    gain_side: str
    """The side of 1 on which it is better."""


def _words(compared: Sequence[Metric]) -> _Words:
    if len(compared) > 1:
        sides = "on the better side of 1"
        return _Words(True, "ratio", "better", "worse", sides)
    metric = compared[0]
    sides = "above 1" if metric.better == "more" else "below 1"
    return _Words(False, metric.ratio, metric.gain, metric.harm, sides)


def _base64(content: bytes) -> str:
    return base64.b64encode(content).decode("ascii")


def _hash(script: str) -> str:
    """Return a script's hash, as a content security policy names it."""
    return _base64(hashlib.sha256(script.encode()).digest())


def _flat(value: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    """The leaves of nested tables with their dotted names."""
    for name, inner in value.items():
        if isinstance(inner, Mapping):
            yield from _flat(inner, f"{prefix}{name}.")
        elif inner is None:
            yield f"{prefix}{name}", "unknown"
        else:
            yield f"{prefix}{name}", inner if isinstance(inner, str) else json.dumps(inner)
