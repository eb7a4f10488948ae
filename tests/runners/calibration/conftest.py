"""Experiments in namespaces of their own."""

import os
from collections.abc import Callable, Iterable

import pytest

from fecbench.dropper.command import COMMAND
from fecbench.runners.calibration.laboratory import Laboratory
from fecbench.runners.calibration.table import Measurement, Table
from fecbench.runners.sandbox.isolation import run_isolated
from fecbench.topologies.programs import PROBER, WIRE

Measure = Callable[..., dict[str, Measurement]]


@pytest.fixture
def measure() -> Measure:
    """measure(experiment, topology=…, link=…): its lines and those of its traffic's integrity, by name."""
    if os.geteuid() != 0:
        pytest.skip("needs root: makes namespaces")
    if not all(program.exists() for program in (COMMAND, WIRE, PROBER)):
        pytest.skip("needs make build")

    def lines(
        experiment: Callable[[Laboratory], Iterable[Measurement]], **place: str
    ) -> dict[str, Measurement]:
        def body() -> bytes:
            laboratory = Laboratory("wire", **place)
            measurements = [*experiment(laboratory), *laboratory.integrity()]
            table = Table(kind="full", at="now", backend="wire", real_time=None, measurements=measurements)
            return table.model_dump_json().encode()

        table = Table.model_validate_json(run_isolated(body, 60))
        return {line.name: line for line in table.measurements}

    return lines
