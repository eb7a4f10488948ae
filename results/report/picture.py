"""The picture of the answer: for each arm and workload its counts as a bar, its median ratio on an axis."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from fecbench.results.report.document import Document
from fecbench.results.report.sections.findings import Finding, Metric
from fecbench.results.report.tables import more_bytes, ratio, saved

_ROUND = (0.1, 0.2, 0.3, 0.5, 0.7, 0.8, 0.9, 0.95, 1, 1.05, 1.1, 1.25, 1.5, 2, 3, 5, 10, 20)
_MOST_ROWS = 14  # rows of a picture with one for each arm and workload
_APART = 24  # % of the axis between two ticks, at least: as wide as a label on a narrow screen


@dataclass(frozen=True)
class Row:
    """An arm, on one workload or on all. Places on the axis are 0 to 100, in %."""

    arm: str
    """"" where the row above has the same."""
    workload: str
    helps: int
    harms: int
    equivalent: int
    undecided: int
    dots: list[float]
    """The place of the median ratio of each workload."""
    line: tuple[float, float] | None
    """The interval of an only one."""
    ratio: str
    saved: str
    more_bytes: str
    label: str
    """The row in words, for who does not see it."""


@dataclass(frozen=True)
class Picture:
    """The rows of one metric on one axis."""

    metric: Metric
    average: str
    """The kind of average of the ratios over networks."""
    rows: list[Row]
    folded: list[Row]
    """The rows of each workload, where `rows` are of all workloads together."""
    one: float
    """The place of 1 on the axis."""
    ticks: list[tuple[float, str]]
    has_workloads: bool
    """Whether `rows` are of one workload each, of several."""


def pictures(document: Document) -> list[Picture]:
    """Return a picture for each metric of which there is a ratio."""
    pictures_of_metrics = (_picture(document, metric) for metric in document.metrics)
    return [picture for picture in pictures_of_metrics if picture.rows]


def _picture(document: Document, metric: Metric) -> Picture:
    first = dict.fromkeys(answer.variant for answer in document.answers)
    order = list(first | dict.fromkeys(variant.label for variant in document.campaign.variants))
    compared = [row for row in document.findings if row.metric == metric.name and row.compared_with]
    of_arms = [[row for row in compared if row.variant == arm and row.points] for arm in order]
    of_arms = [rows for rows in of_arms if rows]
    titles = {workload.label: workload.short_title for workload in document.campaign.workloads}
    reach = _reach([row for rows in of_arms for row in rows])
    single = [
        _row([row], "" if number else row.variant, titles[row.workload], reach, metric.time_unit)
        for rows in of_arms
        for number, row in enumerate(rows)
    ]
    several = any(len(rows) > 1 for rows in of_arms)
    together = [_row(rows, rows[0].variant, f"all {len(rows)}", reach, metric.time_unit) for rows in of_arms]
    is_long = several and len(single) > _MOST_ROWS
    return Picture(
        metric,
        " or ".join(sorted({row.average for rows in of_arms for row in rows if row.average})),
        together if is_long else single,
        single if is_long else [],
        _place(1.0, reach),
        _ticks(reach),
        several and not is_long,
    )


def _row(rows: Sequence[Finding], arm: str, workload: str, reach: float, unit: str) -> Row:
    helps, harms, equivalent, undecided = (
        sum(getattr(row, count) or 0 for row in rows)
        for count in ("helps", "harms", "equivalent", "undecided")
    )
    with_ratio = sorted((row for row in rows if row.ratio is not None), key=lambda row: row.ratio or 0)
    texts = [ratio(row.ratio, row.ratio_low, row.ratio_high) for row in with_ratio]
    ends = [text.partition(" [")[0] for text in dict.fromkeys((texts[0], texts[-1]))] if with_ratio else ["–"]
    only = with_ratio[0] if len(rows) == 1 and with_ratio else None
    return Row(
        arm=arm,
        workload=workload,
        helps=helps,
        harms=harms,
        equivalent=equivalent,
        undecided=undecided,
        dots=[_place(row.ratio, reach) for row in with_ratio if row.ratio is not None],
        line=None
        if only is None or only.ratio_low is None or only.ratio_high is None
        else (_place(only.ratio_low, reach), _place(only.ratio_high, reach)),
        ratio=texts[0] if only else " to ".join(dict.fromkeys(ends)),
        saved=saved(rows[0], unit) if len(rows) == 1 else "",
        more_bytes=more_bytes(rows[0]) if len(rows) == 1 else "",
        label=f"{rows[0].variant}, {workload}: helps {helps}, harms {harms}, no difference {equivalent},"
        f" undecided {undecided}",
    )


def _reach(rows: Sequence[Finding]) -> float:
    """Return the distance from 1 to either end of the axis of medians and their intervals, as a logarithm."""
    values = [value for row in rows for value in (row.ratio, row.ratio_low, row.ratio_high)]
    logs = [abs(math.log(value)) for value in values if value is not None and 0 < value < math.inf]
    return 1.08 * max([math.log(1.06), *logs])


def _place(value: float, reach: float) -> float:
    """Return the place of a ratio; 0 and ∞, of timeouts, are at the ends."""
    log = -reach if value <= 0 else min(max(math.log(value), -reach), reach) if value < math.inf else reach
    return round(50 + 50 * log / reach, 2)


def _ticks(reach: float) -> list[tuple[float, str]]:
    """Round ratios, 1 among them, whose labels stand apart."""
    places = {value: _place(value, reach) for value in _ROUND if abs(math.log(value)) < 0.97 * reach}
    ticks = [1.0]
    for value in sorted(places, key=lambda value: -abs(math.log(value))):
        if all(abs(places[value] - places[other]) >= _APART for other in ticks):
            ticks.append(value)
    return [(places[value], f"{value:g}") for value in sorted(ticks)]
