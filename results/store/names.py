"""Names in a results database of SQLite, for whoever completes a word: campaigns, variants, trials.

They are read by plain SQL: loading the library of the other modules takes longer than a person waits for a
word. A database that cannot be read has none.
"""

import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Literal
from urllib.parse import quote

Kind = Literal["campaigns", "variants", "workloads", "metrics", "series"]
MOST_TRIALS = 200
_QUERIES: dict[Kind, str] = {
    "campaigns": "SELECT name FROM campaigns ORDER BY id DESC",
    "variants": "SELECT DISTINCT variant FROM variants",
    "workloads": "SELECT DISTINCT workload FROM workloads",
    # Of one trial of each variant and workload: a campaign may have millions.
    "metrics": "SELECT DISTINCT endpoint || '.' || name FROM metrics WHERE trial_id IN"
    " (SELECT max(id) FROM trials GROUP BY campaign_id, variant, workload) ORDER BY 1",
    "series": "SELECT DISTINCT name FROM series ORDER BY 1",
}


def names(path: Path, kind: Kind) -> list[str]:
    """The names of this kind in all campaigns."""
    return [str(name) for (name,) in _rows(path, _QUERIES[kind])]


def trials(path: Path, beginning: str) -> list[tuple[str, str]]:
    """The first trials whose number begins so, each with its label."""
    query = (
        "SELECT id, variant, workload, point, repetition, state FROM trials"
        f" WHERE CAST(id AS TEXT) LIKE ? ORDER BY id LIMIT {MOST_TRIALS}"
    )
    begun = f"{beginning}%" if not beginning or beginning.isdecimal() else ""
    return [
        (str(number), f"{variant}, {workload}, point {point}, repetition {repetition}: {state}")
        for number, variant, workload, point, repetition, state in _rows(path, query, (begun,))
    ]


def _rows(path: Path, query: str, values: Sequence[str] = ()) -> list[tuple[object, ...]]:
    try:
        with closing(sqlite3.connect(f"file:{quote(str(path))}?mode=ro", uri=True)) as database:
            return database.execute(query, values).fetchall()
    except sqlite3.Error:
        return []
