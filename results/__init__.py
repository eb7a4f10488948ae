"""The results database, and the frames, figures and report that are read from it."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from results.reading import Results


def open(path_or_url: str) -> Results:
    """Open the SQLite file or PostgreSQL URL of a results database, for reading in a notebook or a script.

    Raises results.store.database.DatabaseError, which says in one line why it cannot be read.
    """
    # Imported here: pandas takes longer to load than most commands take to run.
    from results.reading import Results

    return Results(path_or_url)
