"""Tests of the store have a database of each kind in turn."""

import pytest


@pytest.fixture(params=["sqlite", "postgresql"])
def address(request: pytest.FixtureRequest) -> str:
    """Return the address of a database to make."""
    return str(request.getfixturevalue(request.param))
