"""What tests of reports share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from fecbench.results.store.database import Database


@pytest.fixture
def database(sqlite: str) -> Iterator[Database]:
    """In a file: a report is the same of either kind, as frames are."""
    with Database.open(sqlite, create=True) as opened:
        yield opened
