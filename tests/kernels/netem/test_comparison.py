"""The plausibility of lateness in the comparison of netem with wire."""

from typing import Any

from tests.kernels.netem.comparison import is_plausible

TOLD: dict[str, Any] = {
    "lateness_us": {"p50": 30.0, "p99": 60.0, "p999": 1200.0, "max": 1250.0},
    "late": 2,
    "late_sum_us": 2400.0,
    "bound_us": 1000,
}
IN_TIME = {
    "lateness_us": {"p50": 30.0, "p99": 60.0, "p999": 60.0, "max": 60.0},
    "late": 0,
    "late_sum_us": 0.0,
}


CONTRADICTIONS: list[dict[str, Any]] = [
    *({"lateness_us": None}, {"late": None}, {"late_sum_us": None}),
    {"lateness_us": {"p50": 70.0, "p99": 60.0, "p999": 1200.0, "max": 1250.0}},
    IN_TIME | {"lateness_us": dict.fromkeys(("p50", "p99", "p999", "max"), 0.0)},
    *({"late": 0}, {"late": 1}, {"late_sum_us": 1249.0}, {"late_sum_us": 2501.0}),
    *(IN_TIME | {"late": 1}, IN_TIME | {"late_sum_us": 1.0}),
]


def test_numbers_of_the_same_frames_are_plausible_and_those_that_are_absent_or_contradict_are_not() -> None:
    for change in ({}, IN_TIME, {"late_sum_us": 1250.0}):
        assert is_plausible(**TOLD | change), change
    for change in CONTRADICTIONS:
        assert not is_plausible(**TOLD | change), change
