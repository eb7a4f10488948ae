"""The tables of the page. A column that would repeat one value is left out; the value stands below the
table."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import Any

from fecbench.results import metrics
from fecbench.results.analysis import attempts
from fecbench.results.analysis.intervals import WORDS
from fecbench.results.analysis.margins import percent
from fecbench.results.metrics.units import (
    axis_label,
    change,
    change_text,
    difference,
    number,
    quantity,
    ratio_text,
    size,
    unit_of,
)
from fecbench.results.papers.claim import size_and_ours
from fecbench.results.report.document import Document
from fecbench.results.report.sections.crosscheck import Crosscheck
from fecbench.results.report.sections.findings import Explained, Finding, Medians, Reproduced
from fecbench.results.report.sections.trials import Trial
from fecbench.results.store.records import STATES

MOST_POINTS = 1000
"""The most points that are listed one by one: a page with more is too large to send."""
_MOST_ARMS = 6  # side by side
_ABSENT = "–"


@dataclass(frozen=True)
class Column:
    """The head of a column."""

    head: str
    is_number: bool = False
    is_long: bool = False
    """Whether its cells are sentences."""


@dataclass(frozen=True)
class Table:
    """A table as the page shows it."""

    columns: list[Column]
    rows: list[list[str]]
    same: list[str]
    """Values that all rows share: "margin: 2 %"."""


def table_of(columns: Sequence[Column], rows: Iterable[Sequence[str]]) -> Table:
    """Return the table of the columns that differ between rows, the first one in any case."""
    cells = list(rows)
    constant = [len(cells) > 1 and len({row[i] for row in cells}) == 1 for i in range(len(columns))]
    constant[0] = False
    varying = [i for i in range(len(columns)) if not constant[i]]
    heads: dict[str, list[str]] = {}
    for i, is_constant in enumerate(constant):
        if is_constant and cells[0][i] not in ("", _ABSENT):
            heads.setdefault(cells[0][i], []).append(columns[i].head)
    return Table(
        [columns[i] for i in varying],
        [[row[i] for i in varying] for row in cells],
        [f"{', '.join(names)}: {value}" for value, names in heads.items()],
    )


def text(value: float | None, form: Callable[[float], str]) -> str:
    """A value in this form, or a dash for none."""
    return _ABSENT if value is None else form(value)


def ratio(value: float | None, low: float | None = None, high: float | None = None) -> str:
    """A ratio with its interval, or the remark that it has none."""
    return ratio_text(value, low, high)


def results(document: Document) -> Table:
    """Every number behind the answers, a row for each workload and variant that is compared."""
    outages = {(row.workload, row.variant): row.met_outage for row in document.outages}
    compared = {metric.name: metric.title for metric in document.metrics}
    titles = {workload.label: workload.title for workload in document.campaign.workloads}
    units = {metric.name: metric.time_unit for metric in document.metrics}
    outage = [Column("met an outage: it, its baseline", True)] if outages else []
    columns = [
        *(Column("workload"), Column("variant"), Column("against"), Column("metric")),
        *(Column("ok / run", True), *outage),
        *(Column(head, True) for head in ("helps", "harms", "no difference", "undecided", "networks")),
        *(Column(f"{_average(document)} ratio [95 %]", True), Column("ratio of p95 [95 %]", True)),
        *(Column("saved [95 %]", True), Column("bytes [95 %]", True), Column("margin", True)),
    ]

    def cells(row: Finding) -> list[str]:
        counts_of_outages = (
            [f"{outages[row.workload, arm]}" for arm in (row.variant, row.compared_with)] if outages else []
        )
        planned = f" of {row.planned_points}" if row.points < row.planned_points else ""
        return [
            *(titles[row.workload], row.variant, row.compared_with, compared[row.metric]),
            *(f"{row.ok} / {row.trials}", *([", ".join(counts_of_outages)] if counts_of_outages else [])),
            *(f"{row.helps} ({row.helps_discovered})", f"{row.harms} ({row.harms_discovered})"),
            *(f"{row.equivalent}", f"{row.undecided}", f"{row.points}{planned}"),
            ratio(row.ratio, row.ratio_low, row.ratio_high),
            _ABSENT if row.p95_low is None else ratio(row.p95_ratio, row.p95_low, row.p95_high),
            *(saved(row, units[row.metric]), more_bytes(row), text(row.margin, percent)),
        ]

    return table_of(columns, [cells(row) for row in document.findings if row.compared_with])


def _average(document: Document) -> str:
    """Return the kind of average of the ratios of all rows in words."""
    return " or ".join(sorted({row.average for row in document.findings if row.average})) or "median"


def saved(row: Finding, unit: str) -> str:
    """Return the time that a variant saves with its interval; a dash where it is no time or unknown."""
    if not unit or row.saved is None or row.saved_low is None or row.saved_high is None:
        return _ABSENT
    return difference(row.saved, row.saved_low, row.saved_high, unit)


def more_bytes(row: Finding) -> str:
    """Return the change of the bytes that are sent, with its interval; a dash for unknown."""
    if row.more_bytes is None or row.more_bytes_low is None or row.more_bytes_high is None:
        return _ABSENT
    return change_text(1 + row.more_bytes, 1 + row.more_bytes_low, 1 + row.more_bytes_high)


def states(document: Document) -> Table:
    names = list(next(iter(document.states.values()), {}))
    columns = [Column("variant"), *(Column(name, True) for name in names)]
    return table_of(columns, ([variant, *map(str, of.values())] for variant, of in document.states.items()))


def calibration(measurements: Sequence[Mapping[str, Any]]) -> Table:
    columns = [
        Column("measured"),
        Column("value", True),
        Column("bound", True),
        Column("unit"),
        Column("within"),
    ]
    return table_of(
        columns,
        (
            [
                *(line["name"], f"{line['value']:.4g}", text(line["bound"], "{:.4g}".format), line["unit"]),
                _ABSENT if line["bound"] is None else "yes" if line["good"] else "no",
            ]
            for line in measurements
        ),
    )


def crosscheck(result: Crosscheck) -> Table:
    """The reasons of tolerances stand below it: `reasons`."""
    columns = [
        *(Column("workload"), Column("variant"), Column("compared"), Column("n", True)),
        *(Column("5 to 95 % of them", True), Column("median [95 %]", True), Column("mean", True)),
        *(Column("far off", True), Column("either way", True), Column("95 % tail", True)),
        *(Column("tolerance", True), Column("verdict")),
    ]

    def in_words(value: float | None, of_shares: bool) -> str:
        return text(value, lambda number: change(number, points=of_shares))

    def span(low: float | None, high: float | None, of_shares: bool) -> str:
        ends = (in_words(low, of_shares), in_words(high, of_shares))
        return " to ".join(ends).replace(" %", "", 1) if _ABSENT not in ends else _ABSENT

    return table_of(
        columns,
        (
            [
                *(row.workload, row.variant, row.what, str(row.n)),
                span(row.quantiles[0], row.quantiles[-1], row.of_shares),
                f"{in_words(row.quantiles[len(row.quantiles) // 2], row.of_shares)}"
                f" [{span(*row.interval, row.of_shares)}]",
                *(in_words(row.mean, row.of_shares), in_words(row.far, False)),
                *(in_words(row.either, False), in_words(row.tail, row.of_shares)),
                *(span(*row.tolerance, row.of_shares), row.verdict),
            ]
            for row in result.comparisons
        ),
    )


def mean_ratios(result: Crosscheck) -> Table:
    columns = [
        *(Column("variant"), Column("baseline"), Column("workload"), Column("n", True)),
        *(Column("mean ratio, virtual / emulated - 1 [95 %]", True), Column("to 1 %")),
    ]

    def in_words(value: float | None) -> str:
        return text(value, change)

    return table_of(
        columns,
        (
            [
                *(row.variant, row.baseline, row.workload or "all", str(row.n)),
                f"{in_words(row.value)} [{in_words(row.interval[0])} to {in_words(row.interval[1])}]",
                row.verdict,
            ]
            for row in result.mean_ratios
        ),
    )


def reasons(result: Crosscheck) -> list[str]:
    """Return the reason of each tolerance once, with the quantities that it applies to."""
    of: dict[str, list[str]] = {}
    for row in result.comparisons:
        if row.what not in of.setdefault(row.reason, []):
            of[row.reason].append(row.what)
    return [f"{', '.join(whats)}: {reason}" for reason, whats in of.items()]


def disturbances(document: Document) -> Table:
    heads = (
        "valid trials",
        "stalled",
        "median share of its time",
        "95 % stalled at most (ms)",
        "longest (ms)",
    )
    late = ("with a late packet", "latest (ms)", "most stolen (ms)")
    columns = [Column("variant"), *(Column(head, True) for head in (*heads, *late))]
    one, none = "{:.1f}".format, "{:.0f}".format
    return table_of(
        columns,
        (
            [
                *(row.variant, str(row.trials), str(row.stalled)),
                text(row.stalled_share, lambda share: f"{100 * share:.2f} %"),
                *(text(row.stalled_p95_ms, one), text(row.stalled_max_ms, one), text(row.late, none)),
                *(text(row.late_max_ms, one), text(row.stolen_max_ms, one)),
            ]
            for row in document.disturbances
        ),
    )


def points(document: Document) -> Table:
    """The networks, a column a factor, MOST_POINTS at most; factors that do not vary stand below it."""
    all_points = document.campaign.points
    factors = list(all_points[0]) if all_points else []
    columns = [
        Column("network", True),
        *(Column(axis_label(name), _numeric(all_points, name)) for name in factors),
    ]
    rows = (
        [str(number_), *(factor(name, point[name]) for name in factors)]
        for number_, point in enumerate(islice(all_points, MOST_POINTS))
    )
    return table_of(columns, rows)


def _numeric(all_points: Sequence[Mapping[str, Any]], name: str) -> bool:
    return isinstance(all_points[0][name], int | float)


def factor(name: str, value: Any) -> str:
    """A value of a factor in four digits, without the unit that the head of its column has."""
    if not isinstance(value, int | float) or isinstance(value, bool):
        return str(value)
    in_words = quantity(name, float(f"{value:.4g}"))
    return in_words.removesuffix(f" {unit_of(name)}")


def variants(document: Document) -> Table:
    columns = [
        Column("variant"),
        Column("implementation"),
        Column("options", is_long=True),
        Column("against"),
    ]
    return table_of(
        columns,
        (
            [
                *(variant.label, variant.implementation),
                ", ".join(f"{name} = {value}" for name, value in variant.options.items()),
                variant.compared_with or _ABSENT,
            ]
            for variant in document.campaign.variants
        ),
    )


def medians(of_workload: Medians) -> list[Table]:
    """A row a metric, in as many tables as the arms need; what is 0 for every arm is named below."""
    arms = range(0, len(of_workload.variants), _MOST_ARMS)
    return [_medians(of_workload, slice(first, first + _MOST_ARMS)) for first in arms]


def _medians(of_workload: Medians, arms: slice) -> Table:
    columns = [Column("metric"), *(Column(variant, True) for variant in of_workload.variants[arms])]
    rows, zero = [], []
    for metric, values in of_workload.medians.items():
        if all(value == 0 for value in values):
            zero.append(metric)
        else:
            rows.append([metric, *(text(value, partial(measured, metric)) for value in values[arms])])
    return Table(columns, rows, [f"{', '.join(zero)}: 0"] if zero else [])


def measured(metric: str, value: float) -> str:
    """A value of a metric as people write it, in four digits, with its unit."""
    if math.isinf(value):
        return number(value)
    rounded, unit = float(f"{value:.4g}"), metrics.of(metric).unit
    return size(round(rounded)) if unit == "bytes" else f"{rounded:,.10g} {unit}".strip()


def rules(explained: Explained) -> Table:
    average = next((rule.average for rule in explained.rules), "median")
    columns = [Column("where"), Column(f"{average} ratio [95 %]", True), Column("networks", True)]
    columns += [Column("ratios", True), Column("verdict")]
    return table_of(
        columns,
        (
            [
                " and ".join(rule.conditions) or "everywhere",
                ratio(rule.ratio, rule.low, rule.high),
                *(str(rule.points), f"{rule.ratios} of {rule.planned_ratios}", rule.says),
            ]
            for rule in explained.rules
        ),
    )


def claims(reproduced: Reproduced) -> Table:
    columns = [Column("claim", is_long=True), Column("paper"), Column("paper's size, ours")]
    columns += [Column("measured"), Column("verdict")]
    rows = [
        [claim.text, claim.paper, size_and_ours(claim.size, claim.ours), claim.measured, claim.verdict]
        for claim in reproduced.claims
    ]
    return Table(columns, rows, [])


def trials(listed: Sequence[Trial]) -> Table:
    columns = [Column("trial", True), Column("variant"), Column("workload"), Column("network", True)]
    columns += [
        Column("repetition", True),
        Column("attempt", True),
        Column("state"),
        Column("reason", is_long=True),
    ]
    return table_of(
        columns,
        (
            [
                *(str(trial.id), trial.variant, trial.workload, str(trial.point)),
                *(str(trial.repetition), str(trial.attempt), trial.state, trial.reason),
            ]
            for trial in listed
        ),
    )


def attempted(document: Document) -> Table:
    """Return a table of attempts, by variant."""
    heads = ("attempts", *STATES, "superseded", "groups run again", "invalid [95 %]", "p")
    columns = [Column("variant"), *(Column(head, True) for head in heads)]
    return table_of(
        columns,
        (
            [
                *(row.variant, str(row.attempts), *(str(getattr(row, state)) for state in STATES)),
                *(str(row.superseded), str(row.retried_groups), attempts.share_text(dict(row))),
                text(row.p_value, "{:.2g}".format),
            ]
            for row in document.attempts
        ),
    )


def verdict_word(verdict: str) -> str:
    """Return the word of a verdict."""
    return WORDS.get(verdict, verdict)


def second_tries(document: Document) -> Table:
    baselines = {variant.label: variant.compared_with or "" for variant in document.campaign.variants}
    columns = [Column("workload"), Column("variant"), Column("against"), Column("networks: all, first", True)]
    columns += [Column("all trials", True), Column("say"), Column("first attempts", True), Column("say ")]
    section = document.second_tries
    return table_of(
        columns,
        (
            [
                *(row.workload, row.variant, baselines[row.variant], f"{row.points}, {row.points_first}"),
                *(ratio(row.median_ratio, row.low, row.high), verdict_word(row.verdict)),
                *(
                    ratio(row.median_ratio_first, row.low_first, row.high_first),
                    verdict_word(row.verdict_first),
                ),
            ]
            for row in (section.rows if section else [])
        ),
    )


def unpaired(document: Document) -> Table:
    columns = [Column("variant"), Column("workload"), Column("reason", is_long=True), Column("pairs", True)]
    return table_of(
        columns,
        ([row.variant, row.workload, row.reason, str(row.repetitions)] for row in document.unpaired),
    )


def starts(document: Document) -> Table:
    columns = [Column("start", True), Column("began"), Column("host"), Column("trials", True)]
    rows = (
        [str(start.id), start.started_at, start.host, str(start.trials)] for start in document.starts.starts
    )
    return table_of(columns, rows)


def differences(document: Document) -> Table:
    """Return a table of the differences between starts."""
    every = document.starts.starts
    columns = [Column("what differs"), *(Column(f"start {start.id}", is_long=True) for start in every)]
    rows = [
        [difference.what, *(str(difference.values[start.id]) for start in every)]
        for difference in document.starts.differences
    ]
    return Table(columns, rows, [])


def provenance(rows: Iterable[tuple[str, str]]) -> Table:
    return Table([Column("what"), Column("value", is_long=True)], [list(row) for row in rows], [])
