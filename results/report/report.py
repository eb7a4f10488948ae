"""The report of a campaign: its figures as PNG, SVG and PDF, and one HTML page that needs nothing else.

The same database gives the same files, byte for byte. A campaign that lacks what a figure needs gets a
sentence in its place. A folder that cannot be written is refused.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice, starmap
from pathlib import Path
from typing import Any

import jinja2
import pandas as pd

from fecbench.errors import BadInput
from fecbench.results import figures
from fecbench.results.analysis import (
    agreement,
    attempts,
    comparison,
    deciding,
    disturbances,
    equality,
    exposure,
    frames,
    hosts,
    interoperability,
    outcomes,
    p1203,
    repair,
    timers,
)
from fecbench.results.analysis.equality import NothingToCompare
from fecbench.results.analysis.intervals import FEWEST
from fecbench.results.analysis.margins import percent
from fecbench.results.analysis.pairing import baselines_of, comparisons
from fecbench.results.analysis.point_statistic import by_group
from fecbench.results.analysis.starts import starts_of
from fecbench.results.analysis.summary import by_pairs, median_column, of_many_networks, whole_groups
from fecbench.results.analysis.units import number
from fecbench.results.figures.saving import SUFFIXES, Folder
from fecbench.results.metrics import SOURCES, Metric, choose, of, of_workloads
from fecbench.results.report import repeating, second_tries
from fecbench.results.report.drawings import (
    by_workload,
    explained,
    of_all_workloads,
    of_messages,
    of_video,
    parts_of,
    reproduced,
)
from fecbench.results.report.findings import findings, headline
from fecbench.results.store.database import Database
from fecbench.results.store.postgresql_url import without_passwords
from fecbench.results.store.records import STATES, CampaignInfo, StoredTrial, TrialKey

_MOST_ROWS = 1000  # trials or points that are listed one by one: a page with more is too large to send
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
    comparisons: list[dict[str, Any]]
    """What each variant comes to against its baseline (`comparison.document`)."""


def report(
    database: Database,
    campaign: CampaignInfo,
    folder: str | Path,
    metric: str = "",
    *,
    first_attempts: bool = False,
) -> ReportPaths:
    """Write the report of a campaign into a folder, which is made when it is absent.

    `metric`: what is compared, by default what each workload does. `first_attempts` compares without the
    groups that needed a second try (`analysis.attempts`). Raises DatabaseError when the campaign cannot be
    read, and BadInput when the folder cannot be written.
    """
    try:
        saved = Folder(Path(folder))
        page, table = _page(database, choose(campaign, metric), saved, first_attempts)
        html = saved.path / "report.html"
        html.write_text(page, encoding="utf-8")
    except OSError as error:
        raise BadInput(f"{folder}: the report cannot be written here: {error.strerror}") from error
    pngs, svgs, pdfs = (saved.with_suffix(suffix) for suffix in SUFFIXES)
    return ReportPaths(html, pngs, svgs, pdfs, comparison.document(table[table["compared_with"] != ""]))


def _page(
    database: Database, campaign: CampaignInfo, folder: Folder, first_attempts: bool
) -> tuple[str, pd.DataFrame]:
    """The page, and the `findings` that it shows."""
    run = frames.trials(database, campaign)
    frame = attempts.first_attempts(run) if first_attempts else run
    of_variants = attempts.by_variant(database, campaign)
    exposed = exposure.exposure(frame, campaign)
    disturbed = disturbances.by_variant(run, campaign)
    parts = parts_of(frame, campaign)
    ratios = pd.concat([part.ratios for part in parts])
    table = findings(frame, campaign, ratios)
    filters = repeating.filters_of(run, campaign)
    script = (_FOLDER / "report.js").read_text(encoding="utf-8")
    crosscheck = agreement.of_campaign(database, campaign) if campaign.engine == "virtual" else None
    page = _TEMPLATES.get_template("report.html").render(
        campaign=campaign,
        headline=[
            *headline(frame, campaign, table, run),
            *exposure.sentences(exposed),
            *timers.sentences(campaign),
            *deciding.sentences(campaign),
            *repair.sentences(database, campaign),
        ],
        first_attempts=first_attempts,
        findings=table,
        baselines=baselines_of(campaign),
        words=_words([part.metric for part in parts]),
        metric_of={label: of(name) for label, name in of_workloads(campaign).items()},
        decided=len(ratios) and ratios["low"].notna().any(),
        fewest=FEWEST,
        states=_states(run, campaign),
        met_outage=exposed.set_index(["workload", "variant"])["met_outage"].to_dict(),
        attempts=of_variants.to_dict("records"),
        attempt_states=STATES,
        disturbances=disturbed.to_dict("records"),
        disturbance_warnings=disturbances.warnings(disturbed, campaign),
        share_text=attempts.share_text,
        second_tries=second_tries.compare(run, campaign),
        crosscheck=crosscheck,
        crosscheck_sentences=agreement.sentences(crosscheck),
        quantiles=agreement.QUANTILES,
        calibrations=campaign.provenance.get("calibration", []),
        lateness_unknown=_lateness_unknown(frame),
        yardsticks=_yardsticks(database, campaign),
        points=folder.draw(
            "points",
            "The points of the design, in each pair of its factors.",
            lambda: figures.points(campaign),
        ),
        drawings=[
            *(drawing for part in parts for drawing in of_all_workloads(folder, frame, part)),
            *of_messages(folder, frame, campaign, _messages(database, campaign)),
            *of_video(folder, frame, campaign, partial(p1203.scores, database, campaign)),
        ],
        by_workload=[drawing for part in parts for drawing in by_workload(folder, part)],
        explained=[variant for part in parts for variant in explained(folder, frame, part)],
        reproduced=reproduced(folder, frame, campaign),
        interoperability=interoperability.of_campaign(database, campaign),
        doubtful=_doubtful(database, run),
        not_ok=int((run["state"] != "ok").sum()),
        most_rows=_MOST_ROWS,
        replaced=_replaced(database, campaign, run),
        repeated=int((run["attempt"] - 1).sum()),
        unpaired=_unpaired(frame, campaign),
        metrics=_metric_medians(frame, campaign, table),
        many_networks=of_many_networks(campaign),
        pages=campaign.provenance.get("pages", {}),
        traces=campaign.provenance.get("traces", {}),
        videos=campaign.provenance.get("videos", {}),
        starts=starts_of(database, campaign),
        of_hosts=hosts.told_of(database, campaign),
        repeat=repeating.commands(campaign, filters or [], 0 if crosscheck is None else crosscheck.share),
        doubts=repeating.doubts(run, campaign, filters),
        provenance=list(_flat(_small(campaign.provenance))),
        design_link=_base64(campaign.design_text.encode()),
        not_calibrated=repeating.NOT_CALIBRATED,
        all_trials=repeating.ALL_TRIALS,
        all_points=repeating.ALL_POINTS,
        isnan=pd.isna,
        ratio_text=number,
        percent_text=percent,
        style=(_FOLDER / "report.css").read_text(encoding="utf-8"),
        script=script,
        script_hash=_base64(hashlib.sha256(script.encode()).digest()),
    )
    return page, table


def _lateness_unknown(frame: pd.DataFrame) -> int:
    """Of how many trials that are ok a link did not tell how late packets left it."""
    late = [name for name in frame.columns if name.endswith(".late")]
    return int(frame.loc[frame["state"] == "ok", late].isna().any(axis=1).sum())


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
    sides = "above 1" if metric.more_is_better else "below 1"
    return _Words(False, f"median {metric.ratio}", *metric.comparative, sides)


def _base64(content: bytes) -> str:
    return base64.b64encode(content).decode("ascii")


def _messages(database: Database, campaign: CampaignInfo) -> pd.DataFrame | None:
    """When each message was due and whole, of the trials that left this series; None where none did."""
    if "messages" not in database.series_columns(campaign.id):
        return None
    return frames.series(database, campaign, "messages", ["t_s", "whole_s"])


def _yardsticks(database: Database, campaign: CampaignInfo) -> dict[str, list[str]]:
    """What the A/A campaigns in the same database found, by name: how small a difference can be seen."""
    sentences = {}
    for other in database.campaigns():
        if other.kind == "against-itself" and other.id != campaign.id:
            with contextlib.suppress(NothingToCompare):  # it has not run far enough
                sentences[other.name] = equality.sentences(equality.of_itself(database, other))
    return sentences


def _states(frame: pd.DataFrame, campaign: CampaignInfo) -> dict[str, dict[str, int]]:
    """How many trials of each variant are in each state, and how many have not been run."""
    planned = campaign.planned_pairs
    table: dict[str, dict[str, int]] = {}
    for variant in (variant["label"] for variant in campaign.variants):
        run = frame.loc[frame["variant"] == variant, "state"]
        table[variant] = {state: int((run == state).sum()) for state in STATES} | {
            "not run": planned - len(run)
        }
    return table


def _doubtful(database: Database, frame: pd.DataFrame) -> list[StoredTrial]:
    """The trials that are not ok, _MOST_ROWS at most, in the order in which they ended."""
    ids = frame.loc[frame["state"] != "ok", "id"]
    return database.trials_with(sorted(ids)[:_MOST_ROWS])


def _replaced(database: Database, campaign: CampaignInfo, frame: pd.DataFrame) -> list[StoredTrial]:
    """The runs that another attempt replaced, _MOST_ROWS at most."""
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


@dataclass(frozen=True)
class _Medians:
    """Of one workload."""

    groups: int
    """In how many all variants are ok."""
    lacking: str
    """Which variants failed or timed out in others, and how often; "" for none."""
    table: pd.DataFrame
    """The median of each metric (rows) in each variant (columns), over points as the pairs have it."""


def _metric_medians(frame: pd.DataFrame, campaign: CampaignInfo, table: pd.DataFrame) -> dict[str, _Medians]:
    """For each workload, the medians over its whole groups: none over what one variant got through.

    Of a design with several points they are as the pairs have them (`summary.by_pairs`). Those of what the
    workload compares are those of `findings.findings`, the `table`, in which failures and timeouts count,
    too.
    """
    names = [name for name in frame.columns if name.partition(".")[0] in SOURCES]
    whole, medians = whole_groups(frame, campaign), {}
    for workload in (workload["label"] for workload in campaign.workloads):
        trials = frame.loc[
            whole & (frame["workload"] == workload), ["variant", "point", "repetition", *names]
        ]
        of_variants = trials.groupby("variant", observed=True)[names].median().T
        if not len(of_variants.columns):
            continue
        if of_many_networks(campaign):
            of_variants = _by_pairs(of_variants, trials, campaign)
        of_workload = table[table["workload"] == workload].set_index("variant")
        if (metric := of_workloads(campaign)[workload]) in of_variants.index:
            of_variants.loc[metric] = of_workload[median_column(campaign)]
        groups = len(trials[["point", "repetition"]].drop_duplicates())
        lacking = outcomes.lacking(frame[frame["workload"] == workload])
        medians[workload] = _Medians(groups, lacking, of_variants.dropna(how="all"))
    return medians


def _by_pairs(medians: pd.DataFrame, trials: pd.DataFrame, campaign: CampaignInfo) -> pd.DataFrame:
    """The medians of each metric (rows) in each variant (columns), as the pairs of these trials have them.

    Of what a baseline counts as 0 at some points, the ratios of the others do not speak for all.
    """
    of_points = pd.DataFrame(
        {
            name: by_group(trials, ["variant", "point"], name, campaign.statistic, of(name).more_is_better)
            for name in medians.index
        }
    )
    baselines = baselines_of(campaign)
    ratios = pd.DataFrame(math.nan, medians.index, medians.columns)
    for variant, baseline in baselines.items():
        if {variant, baseline} <= set(medians.columns):
            divisors = pd.DataFrame(of_points.loc[baseline])
            of_variant = pd.DataFrame(of_points.loc[variant]) / divisors
            ratios[variant] = of_variant.median().where((divisors != 0).all())
    rows = {
        name: by_pairs(dict(medians.loc[name]), dict(ratios.loc[name]), baselines) for name in medians.index
    }
    return pd.DataFrame.from_dict(rows, orient="index")


def _small(provenance: Mapping[str, Any]) -> dict[str, Any]:
    """Provenance without what the page shows elsewhere, of web pages and traces the hash alone, and of
    implementations all but the text of their declarations."""
    files = {
        kind: {name: {"sha256": file["sha256"]} for name, file in provenance[kind].items()}
        for kind in ("pages", "traces")
        if kind in provenance
    }
    implementations = {
        name: {key: value for key, value in implementation.items() if key != "declaration"}
        for name, implementation in provenance.get("implementations", {}).items()
    }
    elsewhere = ("calibration", "implementations")
    rest = {name: value for name, value in provenance.items() if name not in elsewhere}
    return without_passwords(rest) | files | {"implementations": implementations}


def _flat(value: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    """The leaves of nested tables with their dotted names."""
    for name, inner in value.items():
        if isinstance(inner, Mapping):
            yield from _flat(inner, f"{prefix}{name}.")
        elif inner is None:
            yield f"{prefix}{name}", "unknown"
        else:
            yield f"{prefix}{name}", inner if isinstance(inner, str) else json.dumps(inner)
