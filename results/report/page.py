"""The HTML page of a report, from its document and its figures: one file that needs nothing else."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jinja2

from fecbench.results.analysis import agreement, attempts
from fecbench.results.analysis.intervals import FEWEST
from fecbench.results.analysis.margins import percent
from fecbench.results.analysis.units import number
from fecbench.results.report import repeating
from fecbench.results.report.document import Document
from fecbench.results.report.drawings import Drawings
from fecbench.results.report.sections.findings import Metric
from fecbench.results.report.sections.trials import Attempts
from fecbench.results.store.records import STATES

_MOST_POINTS = 1000  # that are listed one by one: a page with more is too large to send
_FOLDER = Path(__file__).parent / "templates"
_TEMPLATES = jinja2.Environment(
    loader=jinja2.FileSystemLoader(_FOLDER),
    autoescape=True,
    undefined=jinja2.StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)


def page(document: Document, drawings: Drawings) -> str:
    """Return the page. The same document and figures give the same bytes."""
    script = (_FOLDER / "report.js").read_text(encoding="utf-8")
    return _TEMPLATES.get_template("report.html").render(
        **dict(document),
        drawings=drawings,
        words=_words(document.metrics),
        metric_of={metric.name: metric for metric in document.metrics},
        baselines={variant.label: variant.compared_with for variant in document.campaign.variants},
        met_outage={(row.workload, row.variant): row.met_outage for row in document.outages},
        provenance_rows=list(_flat(document.provenance)),
        design_link=_base64(document.campaign.design_text.encode()),
        fewest=FEWEST,
        attempt_states=STATES,
        most_points=_MOST_POINTS,
        not_calibrated=repeating.NOT_CALIBRATED,
        all_trials=repeating.ALL_TRIALS,
        all_points=repeating.ALL_POINTS,
        ratio_text=number,
        percent_text=percent,
        difference_text=_difference_text,
        share_text=_share_text,
        style=(_FOLDER / "report.css").read_text(encoding="utf-8"),
        script=script,
        script_hash=_base64(hashlib.sha256(script.encode()).digest()),
    )


@dataclass(frozen=True)
class _Words:
    """What the summary calls what it shows; of one metric by its words, of several by general ones."""

    several: bool
    ratio: str
    better: str
    worse: str
    gain_side: str
    """On which side of 1 it is better."""


def _words(compared: Sequence[Metric]) -> _Words:
    if len(compared) > 1:
        sides = "on the better side of 1"
        return _Words(True, "median ratio", "better", "worse", sides)
    metric = compared[0]
    sides = "above 1" if metric.better == "more" else "below 1"
    return _Words(False, f"median {metric.ratio}", metric.gain, metric.harm, sides)


def _base64(content: bytes) -> str:
    return base64.b64encode(content).decode("ascii")


def _difference_text(value: float | None, of_shares: bool) -> str:
    return "-" if value is None else agreement.percent(value, points=of_shares)


def _share_text(row: Attempts) -> str:
    return attempts.share_text(dict(row))


def _flat(value: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    """The leaves of nested tables with their dotted names."""
    for name, inner in value.items():
        if isinstance(inner, Mapping):
            yield from _flat(inner, f"{prefix}{name}.")
        elif inner is None:
            yield f"{prefix}{name}", "unknown"
        else:
            yield f"{prefix}{name}", inner if isinstance(inner, str) else json.dumps(inner)
