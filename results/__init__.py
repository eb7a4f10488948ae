"""The results database, and the frames, figures and report that are read from it."""

from __future__ import annotations

from os import PathLike
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fecbench.results.reading import Results


def open(path_or_url: str | PathLike[str]) -> Results:
    """Open the SQLite file or PostgreSQL URL of a results database, for reading in a notebook or a script.

    Raises fecbench.results.store.database.DatabaseError, which says in one line why it cannot be read.
    """
    # Imported here: pandas takes longer to load than most commands take to run.
    from fecbench.results.reading import Results

    return Results(path_or_url)


# Names that notebooks know these by.
_MODULES = {"frames": "fecbench.results.analysis", "statistics": "fecbench.results.analysis.intervals"}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module 'fecbench.results' has no attribute {name!r}")
    return resolve_name(_MODULES[name])
