"""The report of a campaign: its figures as PNG and SVG, and one HTML page that needs nothing else.

The same database gives the same files, byte for byte. A campaign that lacks what a figure needs gets a
sentence in its place. A folder that cannot be written is refused.
"""

from __future__ import annotations

import base64
import contextlib
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jinja2
import pandas as pd
from matplotlib.figure import Figure

from results import equality, figures, frames
from results.database import STATES, CampaignInfo, Database, DatabaseError, StoredTrial
from results.equality import NothingToCompare
from results.figures import NothingToDraw

_TEMPLATES = jinja2.Environment(
    loader=jinja2.FileSystemLoader(Path(__file__).parent / "templates"),
    autoescape=True,
    undefined=jinja2.StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)


@dataclass(frozen=True)
class ReportPaths:
    html: Path
    pngs: list[Path]
    svgs: list[Path]


@dataclass(frozen=True)
class _Drawing:
    """A figure of the page (`inline` is its PNG in base64), or the sentence that stands in its place."""

    caption: str = ""
    inline: str = ""
    png: Path | None = None
    svg: Path | None = None
    sentence: str = ""


def report(database: Database, campaign: CampaignInfo, folder: str | Path) -> ReportPaths:
    """Write the report of a campaign into a folder, which is made when it is absent.

    Raises DatabaseError when the campaign cannot be read or the folder cannot be written.
    """
    folder = Path(folder)
    frame = frames.trials(database, campaign)
    yardsticks = _yardsticks(database, campaign)
    doubtful = list(database.trials(campaign.id, [state for state in STATES if state != "ok"]))
    try:
        folder.mkdir(parents=True, exist_ok=True)
        drawings = _draw_all(frame, campaign, folder)
        html = folder / "report.html"
        html.write_text(_page(frame, campaign, drawings, doubtful, yardsticks), encoding="utf-8")
    except OSError as error:
        raise DatabaseError(f"{folder}: the report cannot be written here: {error.strerror}") from error
    return ReportPaths(
        html,
        pngs=[drawing.png for drawing in drawings if drawing.png],
        svgs=[drawing.svg for drawing in drawings if drawing.svg],
    )


def _draw_all(frame: pd.DataFrame, campaign: CampaignInfo, folder: Path) -> list[_Drawing]:
    return [
        _draw(
            folder / "ratio",
            "ECDF of the DCT ratio to the baseline, in the form of Networking 2019, Fig. 6: where a curve is"
            f" left of the line at 1, the variant is faster. Each ratio compares the {campaign.statistic} DCT"
            " over those repetitions of a point in which both variants are ok.",
            lambda: figures.ratio_ecdf(frame, campaign),
        ),
        _draw(
            folder / "dct",
            "Download completion time of every ok trial. The line is the median, the box holds the middle"
            " half, the whiskers reach the last trial within 1.5 times the height of the box.",
            lambda: figures.dct(frame, campaign),
        ),
        _draw(
            folder / "points",
            "The points of the design, in each pair of its factors.",
            lambda: figures.points(campaign),
        ),
    ]


def _draw(stem: Path, caption: str, draw: Callable[[], Figure]) -> _Drawing:
    png, svg = stem.with_suffix(".png"), stem.with_suffix(".svg")
    try:
        figure = draw()
    except NothingToDraw as nothing:
        for stale in (png, svg):  # of an earlier report into the same folder
            stale.unlink(missing_ok=True)
        return _Drawing(sentence=str(nothing))
    figures.save(figure, png)
    figures.save(figure, svg)
    return _Drawing(caption, _base64(png.read_bytes()), png, svg)


def _base64(content: bytes) -> str:
    return base64.b64encode(content).decode("ascii")


def _page(
    frame: pd.DataFrame,
    campaign: CampaignInfo,
    drawings: list[_Drawing],
    doubtful: list[StoredTrial],
    yardsticks: dict[str, list[str]],
) -> str:
    return _TEMPLATES.get_template("report.html").render(
        campaign=campaign,
        headline=headline(frame, campaign),
        drawings=drawings,
        summary=frames.summary(frame, campaign),
        states=_states(frame, campaign),
        repeated=int((frame["attempt"] - 1).sum()),
        doubtful=doubtful,
        yardsticks=yardsticks,
        unpaired=_unpaired(frame, campaign),
        metrics=_metric_medians(frame, campaign),
        calibrations=campaign.provenance.get("calibration", []),
        provenance=list(_flat({k: v for k, v in campaign.provenance.items() if k != "calibration"})),
        design_link=_base64(campaign.design_text.encode()),
        isnan=pd.isna,
    )


def _yardsticks(database: Database, campaign: CampaignInfo) -> dict[str, list[str]]:
    """What the A/A campaigns in the same database found, by name: how small a difference can be seen."""
    found = {}
    for other in database.campaigns():
        if other.name.startswith(equality.AA_PREFIX) and other.id != campaign.id:
            with contextlib.suppress(NothingToCompare):  # it has not run far enough
                found[other.name] = equality.sentences(equality.of_itself(database, other))
    return found


def headline(frame: pd.DataFrame, campaign: CampaignInfo) -> str:
    """What the campaign found, in a few sentences."""
    ok, run, planned = int((frame["state"] == "ok").sum()), len(frame), campaign.planned_trials
    sentences = [f"{ok} of {planned} planned trials are ok (not ok: {run - ok}, not run: {planned - run})."]
    compared = frames.summary(frame, campaign).query("points > 0")
    baseline = frames.baseline_of(campaign)
    names = figures.workload_names(campaign)
    for variant, rows in compared.groupby("variant", sort=False):
        found = [
            f"{faster:.0%} of {points} point{'s' if points > 1 else ''} for {names[workload]}"
            f" (median DCT ratio {ratio:.2f})"
            for workload, faster, points, ratio in zip(
                rows["workload"], rows["faster"], rows["points"], rows["median_ratio"], strict=True
            )
        ]
        sentences.append(f"{variant} was faster than {baseline} at {_listed(found)}.")
    if compared.empty:
        sentences.append("No variant could be compared with a baseline.")
    return " ".join(sentences)


def _listed(parts: list[str]) -> str:
    return " and ".join(filter(None, [", ".join(parts[:-1]), parts[-1]]))


def _states(frame: pd.DataFrame, campaign: CampaignInfo) -> dict[str, dict[str, int]]:
    """How many trials of each variant are in each state, and how many have not been run."""
    planned = campaign.planned_trials // len(campaign.variants)
    table: dict[str, dict[str, int]] = {}
    for variant in (variant["label"] for variant in campaign.variants):
        run = frame.loc[frame["variant"] == variant, "state"]
        table[variant] = {state: int((run == state).sum()) for state in STATES} | {
            "not run": planned - len(run)
        }
    return table


def _unpaired(frame: pd.DataFrame, campaign: CampaignInfo) -> list[tuple[str, str, str, int]]:
    """(variant, workload, reason, repetitions) of everything that a ratio leaves out."""
    return [
        (variant, *row)
        for variant, pairing in frames.comparisons(frame, campaign).items()
        for row in pairing.unpaired.itertuples(index=False)
    ]


def _metric_medians(frame: pd.DataFrame, campaign: CampaignInfo) -> dict[str, pd.DataFrame]:
    """For each workload, the median of each metric (rows) of the ok trials of each variant (columns)."""
    names = [name for name in frame.columns if name.startswith(("client.", "server."))]
    ok = frame[frame["state"] == "ok"]
    tables = {}
    for workload in (workload["label"] for workload in campaign.workloads):
        medians = ok[ok["workload"] == workload].groupby("variant", observed=True)[names].median().T
        if len(medians.columns):
            tables[workload] = medians.dropna(how="all")
    return tables


def _flat(value: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    """The leaves of nested tables with their dotted names."""
    for name, inner in value.items():
        if isinstance(inner, Mapping):
            yield from _flat(inner, f"{prefix}{name}.")
        elif inner is None:
            yield f"{prefix}{name}", "unknown"
        else:
            yield f"{prefix}{name}", inner if isinstance(inner, str) else json.dumps(inner)
