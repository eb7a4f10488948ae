"""The page "What a database holds", made of the schema and of the registry of metrics and series.

`python -m fecbench.results.dictionary` prints it; a test compares it with docs/what-a-database-holds.md.
"""

from collections.abc import Iterable, Iterator, Sequence

import sqlalchemy as sa

from fecbench.results import metrics
from fecbench.results.metrics import ALL, SERIES, Column, Metric
from fecbench.results.store import schema

_TYPES: dict[type[object], str] = {
    sa.Integer: "integer",
    sa.Double: "number",
    sa.Text: "text",
    sa.Boolean: "boolean",
    sa.JSON: "JSON",
    sa.LargeBinary: "bytes",
}
_BETTER = {"less": "less is better", "more": "more is better", None: ""}


def page() -> str:
    """The page, in Markdown."""
    sections = [
        _HEAD,
        *_tables(),
        _FRAMES,
        _columns_of(metrics.COLUMNS),
        _FACTORS,
        _columns_of(metrics.FACTORS),
        _RATIOS,
        _columns_of(metrics.RATIOS),
        _METRICS,
        *_metric_tables(),
        _SERIES,
        *_series(),
        _END,
    ]
    return "\n\n".join(sections) + "\n"


_HEAD = f"""# What a database holds

A results database is one SQLite file, or a PostgreSQL database, with the tables below: version
{schema.VERSION} of the schema. Notebooks rather read frames, such as
`fecbench.open("campaigns.sqlite")["demo"].trials()`, with the columns that follow the tables.

Units stand in names: `_s`, `_ms`, `_us`, `_bytes`, `_mbps`; probabilities are 0 to 1.

## Tables"""

_FRAMES = """## Columns of frames and exports

A frame of trials has one row a trial. Besides these columns and the metrics below, it has one for each
factor of the design (`bandwidth_mbps`, `loss.p`, …) and one for each parameter of a workload (`size_bytes`,
…). LINK and DIRECTION are a link of the topology, and `up` or `down`."""

_FACTORS = """These are the factors and parameters that designs vary most. The name of a link or a direction
stands before that of its parameter: `path1.owd_ms`. `rtt_ms` is computed in frames, where the delays of both
directions are known."""

_RATIOS = """A frame of ratios has the variant, the workload, the point and its factors, and these columns:"""

_METRICS = """## Metrics

What an endpoint reports is a column with the endpoint before it: `client.dct_s`, `server.packets_sent`; of
two transfers that compete, also `background_client` and `background_server`; of more, `background2_client`
and so on. PATH is one of several paths, or a relay's hop, by the name of its link:
`client.path1.packets_sent`, `relay.access.packets_sent`. An
implementation may report more than these: such a metric has the unit that its name ends with."""

_SERIES = """## Series

Tables that an endpoint leaves of a trial when its variant asks for them: `campaign.series("cwnd")` reads
those of all trials."""

_END = """This page is made by `python -m fecbench.results.dictionary`."""


def _tables() -> Iterator[str]:
    for table in schema.tables.sorted_tables:
        rows = [(f"`{column.name}`", _type_of(column), column.doc or "") for column in table.columns]
        columns = _markdown(("column", "type", "meaning"), rows)
        yield f"### `{table.name}`\n\n{table.info['meaning']}\n\n{columns}"


def _type_of(column: sa.Column[object]) -> str:
    name = _TYPES[type(column.type)]
    return f"{name}, or null" if column.nullable else name


def _columns_of(columns: Iterable[Column]) -> str:
    rows = [(f"`{column.name}`", column.unit, column.meaning) for column in columns]
    return _markdown(("column", "unit", "meaning"), rows)


def _metric_tables() -> Iterator[str]:
    for title, group in (
        ("Of endpoints", [metric for metric in ALL if metric.by not in ("harness", "link")]),
        ("Of the harness and of links", [metric for metric in ALL if metric.by in ("harness", "link")]),
    ):
        rows = [_metric_row(metric) for metric in group]
        heads = ("metric", "unit", "by", "", "meaning")
        yield f"### {title}\n\n{_markdown(heads, rows)}"


def _metric_row(metric: Metric) -> tuple[str, ...]:
    return f"`{metric.name}`", metric.unit, metric.by or "", _BETTER[metric.better], metric.meaning


def _series() -> Iterator[str]:
    for series in SERIES:
        rows = [(f"`{column.name}`", column.unit, column.meaning) for column in series.columns]
        yield f"### `{series.name}`\n\n{series.meaning}\n\n{_markdown(('column', 'unit', 'meaning'), rows)}"


def _markdown(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


if __name__ == "__main__":
    print(page(), end="")
