"""A calibration tells a true link from one that is not."""

import json
import os

import numpy as np
import pytest

from runners import calibration
from runners.calibrate import calibrate
from runners.calibration import Measurement, Table
from runners.isolation import run_isolated
from runners.provenance import DROPPER, WIRE

real = [
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root: makes namespaces"),
    pytest.mark.skipif(not (DROPPER.exists() and WIRE.exists()), reason="needs make build"),
]


def measured_by(experiment: str) -> dict[str, Measurement]:
    def body() -> bytes:
        found = list(getattr(calibration, experiment)("wire"))
        return Table(backend="wire", measurements=found).model_dump_json().encode()

    table = Table.model_validate_json(run_isolated(body, 60))
    return {each.name: each for each in table.measurements}


@pytest.mark.parametrize("experiment", ["_queue", "_verdicts"])
class TestRealLink:
    pytestmark = real

    def test_what_is_counted_is_exact(self, experiment: str) -> None:
        found = measured_by(experiment)
        assert found
        assert all(each.value == 0 for each in found.values()), found


@pytest.mark.parametrize(("value", "status"), [(1.0, 0), (1.1, 1)])
@pytest.mark.skipif(os.geteuid() != 0, reason="the command refuses others")
def test_a_bound_that_does_not_hold_is_told_by_the_exit_status(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], value: float, status: int
) -> None:
    line = Measurement(name="delay error", value=value, bound=1.0, unit="µs")
    monkeypatch.setattr(calibration, "measure", lambda _: Table(backend="wire", measurements=[line]))
    assert calibrate("auto", as_json=True) == status
    document = json.loads(capsys.readouterr().out)
    assert document["good"] == document["measurements"][0]["good"] == (status == 0)


def test_a_datagram_that_comes_behind_a_later_one_is_out_of_order() -> None:
    traffic = calibration.Traffic.__new__(calibration.Traffic)
    traffic.numbers = np.array([0, 2, 1, 3])
    assert traffic.disorder() == 1
