"""The extrapolation from a measured cluster to a larger one."""

import pytest

from bench.cluster_cost import SHARED, Cost, workers_carried


def test_a_part_that_a_worker_keeps_busy_for_a_hundredth_of_the_time_carries_a_hundred() -> None:
    cost = Cost(600, 200, 50.0, {"scheduler": 0.5, "run": 0.1, "database": 5.0, "worker 1": 49.0})
    assert workers_carried(cost) == pytest.approx({"scheduler": 100, "run": 500, "database": 10})
    assert tuple(workers_carried(cost)) == SHARED
