"""A worker for the trials of a file."""

from collections.abc import Iterator

import pytest

from tests.support.trials import Trials


@pytest.fixture(scope="module")
def trials() -> Iterator[Trials]:
    with Trials() as start_s:
        yield start_s
