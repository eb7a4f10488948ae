"""Needs of emulated trials: a file with such tests has `pytestmark = needs.TRIALS`."""

import os

import pytest

from fecbench.dropper.command import COMMAND as DROPPER
from fecbench.runners.implementations.implementation import Implementation
from fecbench.topologies.programs import WIRE

ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="needs root: makes namespaces")
TRIALS = [ROOT, pytest.mark.skipif(not (DROPPER.exists() and WIRE.exists()), reason="needs make build")]


def built(*implementations: Implementation) -> pytest.MarkDecorator:
    """The mark of tests that need these."""
    missing = any(implementation.missing_programs() for implementation in implementations)
    return pytest.mark.skipif(missing, reason="needs make build")
