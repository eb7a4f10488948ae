"""Tidy data frames of a campaign: its trials, its points, its metrics and its series."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import astuple
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from fecbench.results.analysis import losses, one_host
from fecbench.results.analysis.harness import FIRST_PACKETS, in_order, phases, unjudged
from fecbench.results.analysis.harness import frame as harness_frame
from fecbench.results.analysis.pairing import PAIR
from fecbench.results.metrics import SOURCES, of
from fecbench.results.store import arrow
from fecbench.results.store.database import Database, DatabaseError
from fecbench.results.store.records import STATES, TRIAL_COLUMNS, CampaignInfo, StoredTrial, TrialSeries
from fecbench.results.store.stored_series import unpack

_Values = np.ndarray[Any, np.dtype[np.float64]]
_Ids = np.ndarray[Any, np.dtype[np.int64]]

_M_ARENA_MAX = -8  # of malloc.h
_PAGE_TRIALS = 10_000  # read at once


def trials(
    database: Database,
    campaign: CampaignInfo,
    metrics: Collection[str] | None = None,
    harness: bool | None = None,
) -> pd.DataFrame:
    """One row a trial, sorted by variant, workload, point and repetition, in the order of the design.

    Columns: those of the trial, the factors of its point (`bandwidth_mbps`, `loss.p`, …), the parameters of
    its workload (`size_bytes`, …), its metrics (`client.dct_s`, …), NaN where a trial has none, and what the
    harness itself measured (`results.analysis.harness`), but for names that the design gives to its factors.
    `metrics` names the metrics to read; None reads all. `harness` says whether to read what the harness
    measured; None reads it with all metrics, or else what of it `metrics` names. If several
    hosts have run the campaign, the columns by which ratios keep to one of them are always there
    (`one_host.COLUMNS`).
    """
    return with_starts(database, campaign, metrics, harness)[0]


def with_starts(
    database: Database,
    campaign: CampaignInfo,
    metrics: Collection[str] | None = None,
    harness: bool | None = None,
) -> tuple[pd.DataFrame, dict[int | None, int]]:
    """Return `trials`, and how many of them each start has run, by its id; None: it is not known which."""
    whole_harness = metrics is None if harness is None else harness
    harness_names = {name for name in metrics or () if harness is None and not _is_reported(name)}
    if one_host.matters(database, campaign):
        harness_names.update(one_host.COLUMNS)
    pages = _pages(database, campaign) or [range(-1, 0)]  # a campaign without a trial has the columns too
    _share_one_heap()
    with ThreadPoolExecutor(os.cpu_count()) as threads:
        read = _numbered(threads.map(lambda page: _page(database, campaign, page, metrics), pages))
        key = ["variant", *PAIR]
        order = pd.concat([page[key] for page in read], ignore_index=True).sort_values(key).index.to_numpy()
        own = {name: _gathered(read, name, order) for name in TRIAL_COLUMNS}
        of_trials = {name: _gathered(read, name, order) for name in _names_in(read) if name not in own}
        counts = of_trials.pop("start_id").value_counts()
        by_start = {int(start) or None: int(counts[start]) for start in counts.index}
        del read  # a large campaign is not to be in memory twice
        columns = own | _repeated(campaign.points, own["point"])
        columns |= _repeated(
            [workload["parameters"] for workload in campaign.workloads], own["workload"].cat.codes
        )
        columns |= {name: of_trials.pop(name) for name in sorted(of_trials)}
        if whole_harness or harness_names:
            counted = whole_harness or not harness_names.isdisjoint(losses.COLUMNS)
            contents = losses.contents(database, campaign) if counted else {}  # a table a trial
            read = list(threads.map(lambda page: _harness_page(database, campaign, page, contents), pages))
            order = pd.concat([page[[]] for page in read]).index.get_indexer(pd.Index(own["id"]))
            read = _numbered(read)
            of_harness = {"engine": pd.Series(campaign.engine, index=range(len(order)))}
            for name in _names_in(read):
                of_harness[name] = _gathered(read, name, order)
            columns |= {
                name: of_harness[name]
                for name in in_order(of_harness)
                if name not in columns and (whole_harness or name in harness_names)
            }
            del read
    return pd.DataFrame(columns, copy=False), by_start


def _share_one_heap() -> None:
    """Have threads that begin from now on share one heap, where the C library is glibc.

    Each would keep one of its own, and what one frees, no other one uses: 50 MiB of a million trials.
    """
    with suppress(AttributeError, OSError, TypeError):  # another C library, or Windows
        ctypes.CDLL(None).mallopt(_M_ARENA_MAX, 1)


def _names_in(pages: Iterable[pd.DataFrame]) -> list[str]:
    return list(dict.fromkeys(str(name) for page in pages for name in page.columns))


def _numbered(pages: Iterable[pd.DataFrame]) -> list[pd.DataFrame]:
    """Return these pages with one index, which counts their rows from page to page."""
    numbered, first = [], 0
    for page in pages:
        numbered.append(page.set_axis(pd.RangeIndex(first, first + len(page))))
        first += len(page)
    return numbered


def _gathered(pages: Iterable[pd.DataFrame], name: str, order: _Ids) -> pd.Series:
    """A column of these pages (`_numbered`) as one, in this order of their rows; missing for a row that none
    has (-1), and in a page that lacks the column."""
    parts = [page[name] for page in pages if name in page]
    column: pd.Series = pd.concat(parts) if len(parts) > 1 else parts[0]
    return column.reindex(order).reset_index(drop=True)


def _repeated(documents: Sequence[Mapping[str, Any]], places: pd.Series) -> dict[str, pd.Series]:
    """The values of each trial's document, a column for each name; `places` has the place of its document."""
    table = values(documents)
    return {str(name): table[name].take(places.to_numpy()).reset_index(drop=True) for name in table.columns}


def values(documents: Sequence[Mapping[str, Any]]) -> pd.DataFrame:
    """One row a document, a column for each name in any of them: numbers are words in a column that has
    words, too, since no axis and no order has both."""
    table = pd.DataFrame(list(documents))
    for name, column in table.items():
        is_word = column.map(lambda value: isinstance(value, str))
        if is_word.any() and not is_word[column.notna()].all():
            table[name] = column.map(str, na_action="ignore")
    return table


def _pages(database: Database, campaign: CampaignInfo) -> list[range]:
    """The ids of the campaign's trials, as they are read at once."""
    first, last = database.id_range(campaign.id) or (0, -1)
    return [range(i, min(i + _PAGE_TRIALS, last + 1)) for i in range(first, last + 1, _PAGE_TRIALS)]


def overheads(database: Database, campaign: CampaignInfo) -> pd.DataFrame:
    """One row a trial, a column for each phase: how many seconds it took that were not the client's own, and
    `total`; NaN where a trial has none of it."""
    read = []
    for ids in _pages(database, campaign):
        with _naming(database, "the phases", ids):
            read.append(phases(arrow.overheads(database, campaign.id, ids[0], ids[-1])))
    return pd.concat(read, ignore_index=True) if read else pd.DataFrame()


def metric_names(database: Database, campaign: CampaignInfo) -> list[str]:
    """Every metric that any trial has: what endpoints reported, then what the harness measured."""
    frame = trials(database, campaign, [], harness=True).dropna(axis="columns", how="all")
    reported = database.metric_names(campaign.id)
    of_harness = [str(name) for name in frame.columns if of(str(name)).by in ("harness", "link")]
    return [*reported, *(name for name in of_harness if name not in reported)]


def points(campaign: CampaignInfo) -> pd.DataFrame:
    """One row a point of the design: `point`, then a column for each factor."""
    frame = values(campaign.points)
    frame.insert(0, "point", range(len(frame)))
    return frame


def metrics(frame: pd.DataFrame) -> pd.DataFrame:
    """The metrics of `trials` in long form, one row a (trial, metric) that was measured.

    Columns: `id`, the trial's key and its `state`, `metric` ("client.dct_s") and `value`, in the unit that
    the metric's name ends with.
    """
    measured = [name for name in frame.columns if _is_reported(name)]
    identifiers = ["id", "variant", *PAIR, "state"]
    return frame.melt(identifiers, measured, var_name="metric").dropna(subset="value", ignore_index=True)


def _is_reported(name: str) -> bool:
    """Whether a column is a metric that the database keeps as one; the harness' own are kept otherwise."""
    return name.partition(".")[0] in SOURCES


def series(
    database: Database, campaign: CampaignInfo, name: str, columns: Sequence[str] | None = None
) -> pd.DataFrame:
    """The series of that name, one row for each row that an endpoint left of a trial.

    Columns: the trial's `id` and key, `endpoint`, and the columns of the series that are named (None: all),
    NaN where an endpoint did not have one. Trials are in the order of the design, rows in that of the table.

    Raises DatabaseError when a table cannot be read.
    """
    stored, tables = [], []
    for trial in database.series(campaign.id, name):
        stored.append((trial.trial_id, *astuple(trial.key), trial.table.endpoint, trial.table.rows))
        tables.append(_unpacked(database, trial, columns))
    keys = pd.DataFrame(stored, columns=["id", "variant", *PAIR, "endpoint", "rows"])
    keys = keys.astype(_in_order(campaign)).sort_values(["variant", *PAIR, "endpoint"])
    values = pa.concat_tables([tables[i] for i in keys.index], promote_options="permissive").to_pandas()
    frame = keys.loc[keys.index.repeat(keys["rows"])].drop(columns="rows").reset_index(drop=True)
    names = list(values.columns) if columns is None else columns
    return frame.join(values.reindex(columns=names))


def series_of(database: Database, trial: StoredTrial) -> dict[str, pd.DataFrame]:
    """Every series that one run of a trial left, by its name, in the form that `series` has."""
    key = dict(zip(["id", "variant", *PAIR], [trial.id, *astuple(trial.record.key)], strict=True))
    parts: dict[str, list[pd.DataFrame]] = {}
    for table in database.series_of(trial.id):
        rows = unpack(table.data).to_pandas()
        columns = pd.DataFrame({**key, "endpoint": table.endpoint}, index=rows.index)
        parts.setdefault(table.name, []).append(columns.join(rows))
    return {name: pd.concat(tables, ignore_index=True) for name, tables in parts.items()}


def _unpacked(database: Database, trial: TrialSeries, columns: Sequence[str] | None) -> pa.Table:
    try:
        return unpack(trial.table.data, columns)
    except DatabaseError as error:
        raise DatabaseError(f"{database.address}: trial {trial.trial_id}: {error}") from error


def _in_order(campaign: CampaignInfo) -> dict[str, pd.CategoricalDtype]:
    """The types of the columns that are sorted as the design has them."""
    labels: dict[str, list[str]] = {
        "variant": [variant["label"] for variant in campaign.variants],
        "workload": [workload["label"] for workload in campaign.workloads],
    }
    return {name: pd.CategoricalDtype(order, ordered=True) for name, order in labels.items()}


def _page(
    database: Database, campaign: CampaignInfo, ids: range, metrics: Collection[str] | None
) -> pd.DataFrame:
    """The campaign's trials with these ids: TRIAL_COLUMNS, `start_id`, and those metrics that any of them
    has."""
    names = sorted({name for name in metrics or () if "." in name})
    trials = arrow.trials(database, campaign.id, ids[0], ids[-1], names)
    trials = trials.drop_columns([name for name in names if trials[name].null_count == len(trials)])
    types = _in_order(campaign) | {"state": pd.CategoricalDtype(list(STATES), ordered=True)}
    frame: pd.DataFrame = trials.to_pandas(categories=list(types)).astype(types)
    if frame.empty or metrics is not None:
        return frame
    measured = arrow.metrics(database, ids[0], ids[-1])
    return pd.concat([frame, pd.DataFrame(_columns(frame["id"].to_numpy(), measured))], axis=1)


def _harness_page(
    database: Database, campaign: CampaignInfo, ids: range, contents: Mapping[int, losses.Content]
) -> pd.DataFrame:
    """Return the harness's measurements of the campaign's trials with these ids, by id."""
    with _naming(database, "what the harness measured", ids):
        drops = arrow.drops(database, ids[0], ids[-1], FIRST_PACKETS)
        trials = arrow.harness(database, campaign.id, ids[0], ids[-1])
        measured = harness_frame(trials, drops)
        if not contents:
            return measured
        return measured.join(losses.frame(contents, drops, unjudged(trials), FIRST_PACKETS))


@contextmanager
def _naming(database: Database, what: str, ids: range) -> Iterator[None]:
    """Says of which trials the database holds what no harness writes."""
    try:
        yield
    except ValueError as error:
        where = f"{database.address}: {what} of trials {ids[0]} to {ids[-1]}"
        raise DatabaseError(f"{where} cannot be read: {str(error).splitlines()[0]}") from error


def _columns(trials: _Ids, measured: pa.Table) -> dict[str, _Values]:
    """The rows of `tables.metrics` as a column for each metric that any of these trials has.

    `trials`: their ids, ascending.
    """
    endpoints, of_endpoint = _encoded(measured["endpoint"])
    names, of_name = _encoded(measured["name"])
    column = of_endpoint * len(names) + of_name
    run = measured["trial_id"].to_numpy()
    row = np.searchsorted(trials, run)
    ours = trials.take(row, mode="clip") == run
    values = np.full((len(endpoints) * len(names), len(trials)), np.nan)
    values[column[ours], row[ours]] = measured["value"].to_numpy()[ours]
    columns = {
        f"{endpoints[i // len(names)]}.{names[i % len(names)]}": values[i]
        for i in np.flatnonzero(np.bincount(column[ours]))
    }
    return {name: columns[name] for name in sorted(columns)}


def _encoded(column: pa.ChunkedArray) -> tuple[list[str], _Ids]:
    """The different texts, and for each row the index of its own."""
    encoded = column.combine_chunks().dictionary_encode()
    return encoded.dictionary.to_pylist(), encoded.indices.to_numpy().astype(np.int64)
