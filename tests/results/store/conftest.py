"""Tests of the store have a database of each kind in turn."""

from __future__ import annotations

import pytest


@pytest.fixture(params=["sqlite", "postgresql"])
def address(request: pytest.FixtureRequest) -> str:
    """Where to make it."""
    return str(request.getfixturevalue(request.param))
