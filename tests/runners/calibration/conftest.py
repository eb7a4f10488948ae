"""Experiments in namespaces of their own."""

import os
from collections.abc import Callable, Iterable

import pytest

from fecbench.dropper.command import COMMAND
from fecbench.runners.calibration.laboratory import Laboratory
from fecbench.runners.calibration.table import Measurement, Table
from fecbench.runners.sandbox.isolation import run_isolated
from fecbench.topologies.programs import PROBER, WIRE
from tests.support.patience import patiently

Lines = dict[str, Measurement]
Measure = Callable[..., Lines]


@pytest.fixture
def measure() -> Measure:
    """measure(experiment, is_right, topology=…, link=…): its lines and those of its traffic's integrity.

    What is not right is measured again: other programs may hold up what sends.
    """
    if os.geteuid() != 0:
        pytest.skip("needs root: makes namespaces")
    if not all(program.exists() for program in (COMMAND, WIRE, PROBER)):
        pytest.skip("needs make build")

    def measured(
        experiment: Callable[[Laboratory], Iterable[Measurement]],
        is_right: Callable[[Lines], bool] = lambda _: True,
        **place: str,
    ) -> Lines:
        def body() -> bytes:
            laboratory = Laboratory("wire", **place)
            measurements = [*experiment(laboratory), *laboratory.integrity()]
            table = Table(kind="full", at="now", backend="wire", real_time=None, measurements=measurements)
            return table.model_dump_json().encode()

        def attempt(_: int) -> Lines:
            table = Table.model_validate_json(run_isolated(body, 200))
            return {line.name: line for line in table.measurements}

        return patiently(attempt, lambda lines: not is_right(lines))

    return measured
