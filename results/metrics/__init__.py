"""Every metric that is known: its name, its unit, what it means, and which direction is better.

A metric is a number of a trial. In frames it is named by who reports it (`client.dct_s`); what the harness
measures stands beside the trial (`stalled_s`), or is of one direction of a link (`internet.up.lost`). An
endpoint may report metrics that are not registered: these have the unit that their name ends with, and no
better direction.

The tables of this folder register metrics, columns and series. Only they, the workloads and the papers'
packages name metrics: figures, tables and sentences take words and units from here.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

from fecbench.results.metrics.metric import ENDPOINTS, Comparative, Metric
from fecbench.results.metrics.registry import Column, Series, read_columns, read_metrics, read_series
from fecbench.results.metrics.units import unit_of
from fecbench.results.store.records import DEFAULT_METRIC, CampaignInfo, Workload

__all__ = ["ENDPOINTS", "Column", "Comparative", "Metric", "Series"]

DEFAULT = DEFAULT_METRIC
"""The metric that is compared in a workload that names none."""

HANDSHAKE = "client.handshake_s"
"""Metric by which virtual time and emulation are compared in every workload, beside that of the workload."""

SOURCES = (*ENDPOINTS, "competition", "messages", "live", "video")
"""Beginnings of the names of metrics, before the dot; links are not among them."""

ALL = read_metrics()
"""Every registered metric, each once: those of endpoints without the endpoint."""

COLUMNS = read_columns()
"""Columns of a frame of trials besides metrics, factors and parameters of workloads."""

FACTORS = read_columns(table="factors")
"""Parameters of networks and workloads that designs vary, of one link."""

RATIOS = read_columns(table="ratios")
"""Columns of a frame of ratios besides a trial's key and factors."""

SERIES = read_series()
"""Every series that is registered."""

# In names of the tables, these stand for a path, a link with its direction, a playout delay, a resolution.
_PATH, _PLACE, _PLAYOUT, _RESOLUTION = "PATH", "LINK.DIRECTION", "PLAYOUT", "RESOLUTION"

_COLUMNS = {column.name: column for column in (*FACTORS, *COLUMNS, *RATIOS)}
_FACTORS = {column.name for column in FACTORS}
_OF_A_LINK = re.compile(r"\w+\.(?:(?:up|down)\.)?|(?:up|down)\.")
_OF_A_DIRECTION = re.compile(r"loss\.(?:up|down)\.")
_SEED = re.compile(r"seed\.\w+\.(up|down)")
_BY_NAME = {metric.name: metric for metric in ALL}
_AT_PLAYOUT = re.compile(r"((?:messages\.|live\.(?:audio_)?)on_time_ratio_)([0-9.e+]+)(ms)")
_A_PATH = re.compile(r"path[1-9]\d*|access|backbone")
_OF_SIZE = re.compile(r"video\.share_(\d+x\d+)")


def of(name: str) -> Metric:
    """The metric of a column of a frame (`client.dct_s`, `internet.up.lost`, `stalled_s`), under that name.

    A metric that is not registered has the unit that its name ends with, but no meaning and no direction.
    """
    source, _, own = name.partition(".")
    entry = _BY_NAME.get(_without_number(own) if source in ENDPOINTS else name)
    if entry is None and source not in SOURCES and name.count(".") == 2:
        entry = _BY_NAME.get(f"{_PLACE}.{name.rpartition('.')[2]}")
    if at := _AT_PLAYOUT.fullmatch(name):
        entry = _at_playout(_BY_NAME[f"{at[1]}{_PLAYOUT}{at[3]}"], at[2])
    if size := _OF_SIZE.fullmatch(name):
        share = _BY_NAME[f"video.share_{_RESOLUTION}"]
        entry = replace(share, words=share.words.replace(_RESOLUTION, size[1]))
    return replace(entry, name=name) if entry else Metric(name, unit_of(name), "", None, None)


def column(name: str) -> Column | None:
    """Return the meaning of a column of a frame that is no metric: a factor, also of one link or direction
    (`path1.owd_ms`, `loss.down.p`), or a part of a trial or ratio; None for any other."""
    known = _COLUMNS.get("seed.LINK.DIRECTION" if _SEED.fullmatch(name) else name)
    if known is None:
        of_link = _OF_A_LINK.sub("", _OF_A_DIRECTION.sub("loss.", name), count=1)
        known = next(
            (_COLUMNS[each] for each in (_OF_A_DIRECTION.sub("loss.", name), of_link) if each in _FACTORS),
            None,
        )
    return known and replace(known, name=name)


def playout(name: str) -> float | None:
    """Return the playout delay in ms of a share of messages on time; None for any other metric."""
    at = _AT_PLAYOUT.fullmatch(name)
    return float(at[2]) if at and at[1].startswith("messages") else None


def target(name: str) -> float | None:
    """Return the latency target in ms of a share of usable live video; None for any other metric."""
    at = _AT_PLAYOUT.fullmatch(name)
    return float(at[2]) if at and at[1] == "live.on_time_ratio_" else None


def _at_playout(entry: Metric, playout_ms: str) -> Metric:
    """The metric at this playout delay."""
    words, asked = (text.replace(_PLAYOUT, playout_ms) for text in (entry.words, entry.asked))
    return replace(entry, words=words, asked=asked)


def _without_number(name: str) -> str:
    """The name in the registry of a metric of an endpoint: of `path2.bytes_sent`, that of any path or
    hop."""
    first, dot, rest = name.partition(".")
    return f"{_PATH}.{rest}" if dot and _A_PATH.fullmatch(first) else name


def title(name: str) -> str:
    """Return the label of an axis, with its unit: "download completion time (s)"."""
    return of(name).title


def compared(workload: Workload) -> str:
    """The metric by which variants are compared on this workload."""
    return workload.get("metric", DEFAULT)


def of_workloads(campaign: CampaignInfo) -> dict[str, str]:
    """The metric by which variants are compared, by the label of the workload."""
    return {workload["label"]: compared(workload) for workload in campaign.workloads}


def choose(campaign: CampaignInfo, metric: str) -> CampaignInfo:
    """The campaign with this metric compared on all its workloads; as it is for no metric."""
    if not metric:
        return campaign
    return replace(campaign, workloads=[{**workload, "metric": metric} for workload in campaign.workloads])


def by_metric(campaign: CampaignInfo) -> dict[str, CampaignInfo]:
    """Return by each metric that is compared, in the order of the design, the campaign with those workloads
    alone that compare it."""
    return {
        name: replace(campaign, workloads=[of for of in campaign.workloads if of["label"] in labels])
        for name, labels in labels_of_metrics(of_workloads(campaign)).items()
    }


def labels_of_metrics(metric_of: Mapping[str, str]) -> dict[str, list[str]]:
    """Return the labels of workloads by metric, from the metric by label (`of_workloads`)."""
    labels: dict[str, list[str]] = {}
    for label, name in metric_of.items():
        labels.setdefault(name, []).append(label)
    return labels


def column_of(series: str, name: str) -> Column:
    """A column of a series; with the unit that its name ends with where it is not registered."""
    known = {(table.name, column.name): column for table in SERIES for column in table.columns}
    return known.get((series, name), Column(name, unit_of(name), ""))
