"""The data of a report's interactive charts: every ratio of every arm, and the trials behind it.

All of it is one JSON document in the page, so numbers have the digits that a screen shows, and a large
campaign has fewer trials of each case. Other metrics than the compared ones are there while they have room.
"""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from fecbench import caches
from fecbench.results import metrics
from fecbench.results.analysis import outcomes
from fecbench.results.analysis.pairing import Pairing, baselines_of, of_arms, only_compared
from fecbench.results.analysis.ratio_table import ratio_table, why_none
from fecbench.results.analysis.workload_names import short_names
from fecbench.results.metrics import Metric
from fecbench.results.metrics.units import axis_label
from fecbench.results.report import repeating
from fecbench.results.report.evidence import Evidence
from fecbench.results.store.records import CampaignInfo

_FOLDER = Path(__file__).parent / "templates"
_MOST_ROWS = 30_000  # of all metrics; the compared ones are there in any case
_MOST_METRICS = 8
_MOST_TRIALS = 40_000
_DIGITS = 4  # of a factor, as the page shows them
_DIGITS_OF_RESULTS = 6  # of ratios, and of values that the page divides: more than it shows
_COLUMNS = ("ratio", "low", "high", "baseline")


@dataclass(frozen=True)
class Explorer:
    """The parts of the page that are its interactive charts."""

    data: str
    """JSON, safe within a script element."""
    library: str
    """Vega, Vega-Lite and Vega-Embed."""
    script: str
    """Our code, which draws with them."""


def explorer(evidence: Evidence) -> Explorer | None:
    """Return the interactive charts of a campaign; None where it has no ratio to show."""
    campaign, frame = evidence.campaign, evidence.frame
    compared = [_of_metric(part.ratios, part.metric, campaign) for part in evidence.parts if len(part.ratios)]
    if not compared:
        return None
    of_metrics = [*compared, *_others(frame, campaign, compared)]
    document = {
        "factors": list(_factors(campaign)),
        "arms": _arms(campaign, {place for cases in of_metrics for place in cases["variant"]}),
        "variants": [variant["label"] for variant in campaign.variants],
        "workloads": list(short_names(campaign).values()),
        "metrics": of_metrics,
        "compared": [
            {"title": metric.title, "more": metric.more_is_better}
            for metric in map(metrics.of, metrics.of_workloads(campaign).values())
        ],
        "trials": _trials(frame, campaign),
        "replay": repeating.replay(campaign, evidence.database.address),
        "diff": repeating.diff(campaign, evidence.database.address),
    }
    text = json.dumps(document, ensure_ascii=True, separators=(",", ":"), allow_nan=False)
    script = (_FOLDER / "explore.js").read_text(encoding="utf-8")
    return Explorer(text.replace("<", "\\u003c"), _library(), script)


@cache
def _library() -> str:
    """The library as one script. Building it takes seconds, so it is kept for other reports in the user's
    folder of caches, where that can be written."""
    name = f"vega-{version('vl-convert-python')}.js"
    library = caches.read(name)
    if library is None:
        library = _built_library()
        caches.keep(name, library)
    return library


@cache
def _built_library() -> str:
    import vl_convert

    return str(vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed; window.vega = vega;"))


def _factors(campaign: CampaignInfo) -> Iterator[dict[str, Any]]:
    """Yield the factors that have more than one value."""
    from fecbench.results.analysis.scales import is_log

    for name in campaign.points[0] if campaign.points else ():
        values = [point[name] for point in campaign.points]
        if len(set(values)) == 1:
            continue
        is_word = not all(isinstance(value, int | float) and not isinstance(value, bool) for value in values)
        yield {
            "label": axis_label(name),
            "log": not is_word and is_log(pd.Series(values, name=name), campaign.scales),
            "words": is_word,
            "values": list(map(str, values)) if is_word else [_digits(float(value)) for value in values],
        }


def _arms(campaign: CampaignInfo, with_cases: Collection[int]) -> list[dict[str, int]]:
    """Return the variants that have a case, and their baselines, by their places in the design."""
    order = [variant["label"] for variant in campaign.variants]
    arms = [
        {"variant": order.index(arm), "baseline": order.index(baseline)}
        for arm, baseline in baselines_of(campaign).items()
    ]
    return [arm for arm in arms if arm["variant"] in with_cases]


def _of_metric(ratios: pd.DataFrame, metric: Metric, campaign: CampaignInfo) -> dict[str, Any]:
    """The ratios of a metric as columns: arms, workloads and verdicts by their places in a list."""
    variants = {variant["label"]: place for place, variant in enumerate(campaign.variants)}
    workloads = {workload["label"]: place for place, workload in enumerate(campaign.workloads)}
    return {
        "name": metric.name,
        "title": metric.title,
        "gain": metric.comparative.gain,
        "harm": metric.comparative.harm,
        "more": metric.more_is_better,
        "variant": [variants[label] for label in ratios["variant"].tolist()],
        "workload": [workloads[label] for label in ratios["workload"].tolist()],
        "point": ratios["point"].tolist(),
        "verdict": [verdict[0] for verdict in ratios["verdict"].tolist()],
        **{name: list(map(_result, ratios[name].tolist())) for name in _COLUMNS},
    }


def _others(
    frame: pd.DataFrame, campaign: CampaignInfo, compared: Sequence[Mapping[str, Any]]
) -> Iterator[dict[str, Any]]:
    """Other metrics that have a better direction and a ratio, while there is room."""
    compared_names = set(metrics.of_workloads(campaign).values())
    room = _MOST_ROWS - sum(len(case["point"]) for case in compared)
    count = len(compared)
    is_compared = frame["variant"].isin(baselines_of(campaign)).to_numpy()
    cell = frame.groupby(["variant", "workload", "point"], observed=True, sort=False).ngroup().to_numpy()
    for name in map(str, frame.columns):
        if count >= _MOST_METRICS or room < 1:
            return
        metric = metrics.of(name)
        if name in compared_names or metric.better is None or not metric.words or frame[name].nunique() < 2:
            continue
        # A metric that may have no room is not paired: pairing takes longer than all else here.
        most = len(np.unique(cell[is_compared & frame[name].notna().to_numpy()]))
        info = metrics.choose(campaign, name)
        if most > room or not (pairings := _with_logarithms(frame, info, metric)):
            continue
        room, count = room - sum(len(pairing.ratios) for pairing in pairings.values()), count + 1
        yield _of_metric(ratio_table(pairings, info), metric, info)


def _with_logarithms(frame: pd.DataFrame, campaign: CampaignInfo, metric: Metric) -> dict[str, Pairing]:
    """The comparisons of a campaign by one metric; none where they have no `ratio_table`. Most metrics count
    what few trials have, so that the first comparisons say so."""
    arms = baselines_of(campaign)
    compared = only_compared(frame, campaign)
    values = outcomes.values(compared, metric)
    if not (values[compared["variant"].isin(arms.values())].abs() > 0).any():  # no baseline is above 0
        return {}
    pairings = {}
    for arm, baseline in arms.items():
        pairing = of_arms(compared, campaign, baseline, arm)
        if len(pairing.ratios) and why_none({arm: pairing}, campaign, metric):
            return {}
        pairings[arm] = pairing
    return {} if why_none(pairings, campaign, metric) else pairings


def _trials(frame: pd.DataFrame, campaign: CampaignInfo) -> dict[str, Any]:
    """The first trials of each case, by "variant,workload,point": their numbers, their values of what the
    workload compares, the states of those that are not ok, and their repetitions. With too many cases, none
    is listed."""
    variants = {variant["label"]: place for place, variant in enumerate(campaign.variants)}
    workloads = {workload["label"]: place for place, workload in enumerate(campaign.workloads)}
    compared = metrics.of_workloads(campaign)
    key = ["variant", "workload", "point"]
    most = _MOST_TRIALS // max(1, len(frame[key].drop_duplicates()))
    in_order = frame.sort_values("repetition", kind="stable")
    cases: dict[str, list[Any]] = {}
    for workload, of_workload in in_order.groupby("workload", observed=True, sort=False):
        values = outcomes.values(of_workload, metrics.of(compared[str(workload)]))
        rows = of_workload.assign(value=values)[of_workload["repetition"] < most]
        columns = (rows[name].tolist() for name in ("variant", "point", "id", "state", "repetition", "value"))
        for variant, point, trial, state, repetition, value in zip(*columns, strict=True):
            ids, numbers, states, repetitions = cases.setdefault(
                f"{variants[variant]},{workloads[str(workload)]},{point}", [[], [], {}, []]
            )
            repetitions.append(int(repetition))
            if state != "ok":
                states[len(ids)] = state
            ids.append(int(trial))
            numbers.append(_result(value))
    return {"of_each": min(most, campaign.repetitions), "repetitions": campaign.repetitions, "cases": cases}


def _result(value: float) -> float | int | str | None:
    return _digits(value, _DIGITS_OF_RESULTS)


def _digits(value: float, digits: int = _DIGITS) -> float | int | str | None:
    """A number in a few digits, as JSON has it."""
    if math.isnan(value):
        return None
    if math.isinf(value):
        return "∞" if value > 0 else "-∞"
    rounded = float(f"{value:.{digits}g}")
    return int(rounded) if rounded.is_integer() and abs(rounded) < 1e15 else rounded
