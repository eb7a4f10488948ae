"""The common parts of tests of cross-checks."""

from collections.abc import Callable, Iterator

import pytest

from fecbench.results.analysis.agreement import Agreement
from fecbench.results.store.database import Database
from tests.results.analysis.twin_campaigns import Laboratory


@pytest.fixture
def compare(sqlite: str) -> Iterator[Callable[..., Agreement]]:
    """Compare a campaign in virtual time with a sample of it that was emulated."""
    with Database.open(sqlite, create=True) as database:
        yield Laboratory(database).compare
