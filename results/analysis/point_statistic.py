"""The statistic over the repetitions of a point: the median, the mean, or the 95th percentile.

The 95th percentile is the bad end of a metric: 95 % of the repetitions are as good as it, or better. It is
one of the values, as the inverse of the empirical distribution function gives it, so a timeout may be it.
Fewer than FEWEST_OF_P95 repetitions have none: it would be the worst of them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import pandas as pd

from fecbench.results.store.records import FEWEST_OF_P95, P95

STATISTICS = ("median", "mean", P95)


def by_group(
    table: pd.DataFrame, by: list[str], column: str, statistic: str, more_is_better: bool = False
) -> pd.Series:
    """The statistic of a column in each group of rows that have the same values in the columns `by`."""
    groups = table.groupby(by, observed=True)[column]
    if statistic != P95:
        values: pd.Series = groups.agg(statistic)
        return values
    ordered = table.sort_values(column, ascending=not more_is_better, kind="stable")
    in_order = ordered.groupby(by, observed=True)[column]
    counts = in_order.transform("count")
    places = counts.map({count: place_of_p95(count) for count in counts.unique()})
    at_p95 = ordered[in_order.cumcount() == places]
    at_the_end = at_p95.set_index(by)[column]
    return at_the_end.reindex(groups.count().index).where(groups.count() >= FEWEST_OF_P95)


def of_columns(
    table: pd.DataFrame, by: list[str], more_is_better: Mapping[str, bool], statistic: str
) -> pd.DataFrame:
    """The statistic `by_group` of several columns, for each of which it is said whether more is better."""
    if statistic != P95:
        values: pd.DataFrame = table.groupby(by, observed=True)[list(more_is_better)].agg(statistic)
        return values
    return pd.DataFrame(
        {name: by_group(table, by, name, statistic, more) for name, more in more_is_better.items()}
    )


def p95(values: pd.Series, more_is_better: bool = False) -> float:
    """The value at the bad end of these; NaN for fewer than FEWEST_OF_P95."""
    ordered = values.dropna().sort_values(ascending=not more_is_better)
    return math.nan if len(ordered) < FEWEST_OF_P95 else float(ordered.iloc[place_of_p95(len(ordered))])


def place_of_p95(count: int) -> int:
    """Return the place of the p95, from 0, among so many values in order."""
    return math.ceil(0.95 * count) - 1
