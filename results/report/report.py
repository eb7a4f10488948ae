"""The report of a campaign: its figures as PNG, SVG and PDF, and one HTML page that needs nothing else.

The same database gives the same files, byte for byte. A campaign that lacks what a figure needs gets a
sentence in its place. A folder that cannot be written is refused.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice, starmap
from pathlib import Path
from typing import Any

import jinja2
import pandas as pd

from results import figures, papers
from results.analysis import equality, frames
from results.analysis.equality import NothingToCompare
from results.analysis.intervals import FEWEST, VERDICTS, shares
from results.analysis.pairing import Pairing, baseline_of, comparisons, left_out
from results.analysis.rules import Explanation, NothingToExplain, explain
from results.analysis.summary import summary
from results.figures.nothing import NothingToDraw
from results.figures.saving import SUFFIXES, Drawing, Folder, stem
from results.papers.claims import Claim
from results.report import repeating
from results.store.database import STATES, CampaignInfo, Database, DatabaseError, StoredTrial, TrialKey

# Who measures: the endpoints, a competing transfer's server, and the harness while two transfers compete.
METRIC_SOURCES = ("client.", "server.", "background_server.", "competition.")
_MOST_ROWS = 1000  # trials that are listed one by one: a page with more is too large to send
_FOLDER = Path(__file__).parent / "templates"
_TEMPLATES = jinja2.Environment(
    loader=jinja2.FileSystemLoader(_FOLDER),
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
    pdfs: list[Path]


@dataclass(frozen=True)
class _Explained:
    """Where a variant helps; `explanation` is None for the reason that `sentence` gives."""

    variant: str
    explanation: Explanation | None
    sentence: str
    drawings: list[Drawing]


@dataclass(frozen=True)
class _Reproduced:
    """A figure of a paper, and its claims beside what was measured."""

    number: str
    drawing: Drawing
    claims: list[Claim]
    differences: list[str]


def report(database: Database, campaign: CampaignInfo, folder: str | Path) -> ReportPaths:
    """Write the report of a campaign into a folder, which is made when it is absent.

    Raises DatabaseError when the campaign cannot be read or the folder cannot be written.
    """
    try:
        saved = Folder(Path(folder))
        page = _page(database, campaign, saved)
        html = saved.path / "report.html"
        html.write_text(page, encoding="utf-8")
    except OSError as error:
        raise DatabaseError(f"{folder}: the report cannot be written here: {error.strerror}") from error
    pngs, svgs, pdfs = (saved.with_suffix(suffix) for suffix in SUFFIXES)
    return ReportPaths(html, pngs, svgs, pdfs)


def _page(database: Database, campaign: CampaignInfo, folder: Folder) -> str:
    frame = frames.trials(database, campaign)
    ratios = _ratios(frame, campaign)
    found = findings(frame, campaign, ratios)
    filters = repeating.filters_of(frame, campaign)
    script = (_FOLDER / "report.js").read_text(encoding="utf-8")
    not_ok = [state for state in STATES if state != "ok"]
    return _TEMPLATES.get_template("report.html").render(
        campaign=campaign,
        headline=headline(frame, campaign, found),
        findings=found,
        decided=len(ratios) and ratios["low"].notna().any(),
        fewest=FEWEST,
        states=_states(frame, campaign),
        calibrations=campaign.provenance.get("calibration", []),
        yardsticks=_yardsticks(database, campaign),
        points=folder.draw(
            "points",
            "The points of the design, in each pair of its factors.",
            lambda: figures.points(campaign),
        ),
        drawings=_of_all_workloads(folder, frame, campaign, ratios),
        by_workload=_by_workload(folder, campaign, ratios),
        explained=_explained(folder, frame, campaign, ratios),
        reproduced=_reproduced(folder, frame, campaign),
        doubtful=list(islice(database.trials(campaign.id, not_ok), _MOST_ROWS)),
        not_ok=int((frame["state"] != "ok").sum()),
        replaced=_replaced(database, campaign, frame),
        repeated=int((frame["attempt"] - 1).sum()),
        unpaired=_unpaired(frame, campaign),
        metrics=_metric_medians(frame, campaign),
        pages=campaign.provenance.get("pages", {}),
        repeat=repeating.commands(campaign, filters or []),
        doubts=repeating.doubts(frame, campaign, filters),
        provenance=list(_flat(_small(campaign.provenance))),
        design_link=_base64(campaign.design_text.encode()),
        not_calibrated=repeating.NOT_CALIBRATED,
        all_trials=repeating.ALL_TRIALS,
        isnan=pd.isna,
        style=(_FOLDER / "report.css").read_text(encoding="utf-8"),
        script=script,
        script_hash=_base64(hashlib.sha256(script.encode()).digest()),
    )


def _base64(content: bytes) -> str:
    return base64.b64encode(content).decode("ascii")


def _ratios(frame: pd.DataFrame, campaign: CampaignInfo) -> pd.DataFrame:
    """`figures.table`; empty where there is no ratio, as the figure of their distribution says."""
    try:
        return figures.table(frame, campaign)
    except NothingToDraw:
        return pd.DataFrame()


def _of_all_workloads(
    folder: Folder, frame: pd.DataFrame, campaign: CampaignInfo, ratios: pd.DataFrame
) -> list[Drawing]:
    ratio = folder.draw(
        "ratio",
        "ECDF of the DCT ratio to the baseline, in the form of Networking 2019, Fig. 6: where a curve is"
        f" left of the line at 1, the variant is faster. Each ratio compares the {campaign.statistic} DCT"
        " over those repetitions of a point in which both variants are ok. A point without any, such as one"
        " at which one variant always timed out, is in no curve.",
        lambda: figures.ratio_ecdf(frame, campaign),
    )
    dct = folder.draw(
        "dct",
        "Download completion time of every ok trial. The line is the median, the box holds the middle"
        " half, the whiskers reach the last trial within 1.5 times the height of the box.",
        lambda: figures.dct(frame, campaign),
    )
    if ratios.empty:
        return [ratio, dct]
    bars = folder.draw(
        "bars",
        "Median over points of the DCT ratio to the baseline, with its 95 % bootstrap interval over points"
        " where there are enough: below 1, the variant is faster.",
        lambda: figures.bars(ratios, campaign),
    )
    return [ratio, bars, dct]


def _by_workload(folder: Folder, campaign: CampaignInfo, ratios: pd.DataFrame) -> list[tuple[str, Drawing]]:
    if ratios.empty:
        return []
    return [
        (
            name,
            folder.draw(
                f"factors-{stem(label)}",
                f"The DCT ratio to the baseline for {name}, at every point, over each factor of the design.",
                partial(figures.over_factors, ratios, campaign, label),
            ),
        )
        for label, name in figures.workload_names(campaign).items()
    ]


def _explained(
    folder: Folder, frame: pd.DataFrame, campaign: CampaignInfo, ratios: pd.DataFrame
) -> list[_Explained]:
    """Where each variant helps that was compared."""
    return [
        _where(folder, campaign, ratios, variant, pairing)
        for variant, pairing in comparisons(frame, campaign).items()
        if len(ratios) and len(pairing.ratios)
    ]


def _where(
    folder: Folder, campaign: CampaignInfo, ratios: pd.DataFrame, variant: str, pairing: Pairing
) -> _Explained:
    name, baseline = stem(variant), str(baseline_of(campaign))
    try:
        found = explain(pairing, campaign)
    except NothingToExplain as nothing:
        return _Explained(variant, None, f"Nothing can be explained: {nothing}.", [])
    drawings = [
        folder.draw(
            f"map-{name}",
            "The DCT ratio over the two strongest factors: background as a random forest predicts it, marks"
            " at each point as it was measured.",
            lambda: figures.benefit_map(found, variant, baseline),
        ),
        folder.draw(
            f"effects-{name}",
            "What each factor does to the DCT ratio, the strongest first: the line is the mean prediction of"
            " a random forest, the dots are every ratio.",
            lambda: figures.effects(found, variant, baseline),
        ),
        folder.draw(
            f"cells-{name}",
            "The median DCT ratio in cells of two factors, as measured, with the number of points.",
            lambda: figures.heat_map(ratios, campaign, variant, _two_strongest(found, campaign)),
        ),
        folder.draw(
            f"pairs-{name}",
            "The points of the design in each pair of its factors. The colour is the DCT ratio, the median"
            " over workloads.",
            lambda: figures.pairs(ratios, campaign, variant),
        ),
    ]
    # What a drawing lacks, the sentence has said.
    return _Explained(variant, found, found.sentence, [each for each in drawings if each.files])


def _two_strongest(found: Explanation, campaign: CampaignInfo) -> tuple[str, str] | None:
    """The two factors of the points that matter most, if that is known."""
    of_points = [factor for factor in found.importances["factor"] if factor in campaign.points[0]]
    return (of_points[0], of_points[1]) if len(of_points) >= 2 else None


def _reproduced(folder: Folder, frame: pd.DataFrame, campaign: CampaignInfo) -> list[_Reproduced]:
    return [
        _Reproduced(
            each.number,
            folder.draw(each.name, each.caption, partial(each.draw, frame, campaign)),
            each.claims(frame, campaign),
            each.differences(frame, campaign),
        )
        for each in papers.figures_of(campaign)
    ]


def _yardsticks(database: Database, campaign: CampaignInfo) -> dict[str, list[str]]:
    """What the A/A campaigns in the same database found, by name: how small a difference can be seen."""
    found = {}
    for other in database.campaigns():
        if other.name.startswith(equality.AA_PREFIX) and other.id != campaign.id:
            with contextlib.suppress(NothingToCompare):  # it has not run far enough
                found[other.name] = equality.sentences(equality.of_itself(database, other))
    return found


def findings(frame: pd.DataFrame, campaign: CampaignInfo, ratios: pd.DataFrame) -> pd.DataFrame:
    """What a campaign found, one row a (workload, variant): the columns of `summary.summary` and, of
    `statistics.shares`, the share of points with each of VERDICTS and the interval `low` to `high` of the
    median ratio; NaN where no point is compared."""
    table = summary(frame, campaign)
    kept = ["workload", *VERDICTS, "low", "high"]
    of_variants = [
        shares(rows)[kept].assign(variant=variant) for variant, rows in _by_variant(ratios, campaign)
    ]
    sure = pd.concat([pd.DataFrame(columns=[*kept, "variant"]), *of_variants])
    return table.merge(sure.astype({"workload": str}), how="left", on=["workload", "variant"])


def _by_variant(ratios: pd.DataFrame, campaign: CampaignInfo) -> Iterator[tuple[str, pd.DataFrame]]:
    for variant in campaign.variants:
        rows = ratios[ratios["variant"] == variant["label"]] if len(ratios) else ratios
        if len(rows):
            yield variant["label"], rows


def headline(frame: pd.DataFrame, campaign: CampaignInfo, found: pd.DataFrame) -> list[str]:
    """What the campaign found (`findings`), in a few sentences; each variant's says what its ratios lack."""
    ok, run, planned = int((frame["state"] == "ok").sum()), len(frame), campaign.planned_trials
    sentences = [f"{ok} of {planned} planned trials are ok (not ok: {run - ok}, not run: {planned - run})."]
    baseline = str(baseline_of(campaign))
    names = figures.workload_names(campaign)
    for variant, pairing in comparisons(frame, campaign).items():
        rows = found.query("variant == @variant and decided_points > 0")
        parts = [_found(row, names[str(row.workload)]) for row in rows.itertuples(index=False)]
        faster = f"{variant} was faster than {baseline} at {_listed(parts)}." if parts else ""
        lacking = left_out(pairing, campaign, baseline, variant)
        if sentence := " ".join(filter(None, [faster, lacking])):
            sentences.append(sentence)
    if not found["decided_points"].any():
        sentences.append("No variant could be compared with a baseline.")
    return sentences


def _found(row: Any, workload: str) -> str:
    points, planned = row.decided_points, row.planned_points
    of = f"{points} point{'s' if points > 1 else ''}" + (f" (planned: {planned})" if points < planned else "")
    return f"{row.faster * points:.0f} of {of} for {workload} ({_ratio_of(row)})"


def _ratio_of(row: Any) -> str:
    if not row.points:
        return "there is no DCT ratio"
    interval = "" if pd.isna(row.low) else f" [{row.low:.2f}, {row.high:.2f}]"
    some = f" at the {row.points} that have one" if row.points < row.decided_points else ""
    counts = [f"{verdict} at {getattr(row, verdict) * row.points:.0f}" for verdict in ("gain", "harm")]
    decided = f", {', '.join(counts)}" if row.gain + row.harm > 0 else ""
    return f"median DCT ratio {row.median_ratio:.2f}{interval}{some}{decided}"


def _listed(parts: Sequence[str]) -> str:
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


def _replaced(database: Database, campaign: CampaignInfo, frame: pd.DataFrame) -> list[StoredTrial]:
    """The invalid runs that another attempt replaced, _MOST_ROWS at most."""
    again = frame.loc[frame["attempt"] > 1, ["variant", "workload", "point", "repetition"]]
    keys = starmap(TrialKey, again.astype(object).itertuples(index=False, name=None))
    runs = (attempt for key in keys for attempt in database.attempts(campaign.id, key)[:-1])
    return list(islice(runs, _MOST_ROWS))


def _unpaired(frame: pd.DataFrame, campaign: CampaignInfo) -> list[tuple[str, str, str, int]]:
    """(variant, workload, reason, repetitions) of everything that a ratio leaves out."""
    return [
        (variant, *row)
        for variant, pairing in comparisons(frame, campaign).items()
        for row in pairing.unpaired.itertuples(index=False)
    ]


def _metric_medians(frame: pd.DataFrame, campaign: CampaignInfo) -> dict[str, pd.DataFrame]:
    """For each workload, the median of each metric (rows) of the ok trials of each variant (columns)."""
    names = [name for name in frame.columns if name.startswith(METRIC_SOURCES)]
    ok = frame[frame["state"] == "ok"]
    tables = {}
    for workload in (workload["label"] for workload in campaign.workloads):
        medians = ok[ok["workload"] == workload].groupby("variant", observed=True)[names].median().T
        if len(medians.columns):
            tables[workload] = medians.dropna(how="all")
    return tables


def _small(provenance: Mapping[str, Any]) -> dict[str, Any]:
    """Provenance without what the page shows elsewhere, and of web pages the hash alone."""
    pages = {name: {"sha256": page["sha256"]} for name, page in provenance.get("pages", {}).items()}
    rest = {name: value for name, value in provenance.items() if name not in ("calibration", "pages")}
    return rest | {"pages": pages}


def _flat(value: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    """The leaves of nested tables with their dotted names."""
    for name, inner in value.items():
        if isinstance(inner, Mapping):
            yield from _flat(inner, f"{prefix}{name}.")
        elif inner is None:
            yield f"{prefix}{name}", "unknown"
        else:
            yield f"{prefix}{name}", inner if isinstance(inner, str) else json.dumps(inner)
