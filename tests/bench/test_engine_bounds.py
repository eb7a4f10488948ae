"""The bounds of whole campaigns in virtual time: what misses one is told."""

import pytest

from bench.engine_cost import ALONE, BOUNDS, EMULATED, HARNESS, VIRTUAL, Bound, Cost, missed, print_costs

WITH_BOTH = next(bound for bound in BOUNDS.values() if bound.alone_per_s)


def costs_of(*, seconds: float, alone_per_s: float, harness_per_s: float = 1e6) -> dict[str, Cost]:
    trials = 1000
    return {
        VIRTUAL: Cost(trials, seconds, harness_s=1.0, others_s=1.0),
        ALONE: Cost(trials, trials / alone_per_s, harness_s=0.0, others_s=1.0),
        HARNESS: Cost(trials, trials / harness_per_s, harness_s=1.0, others_s=0.0),
        EMULATED: Cost(trials, 100 * seconds, harness_s=1.0, others_s=1.0),
    }


@pytest.mark.parametrize("bound", BOUNDS.values(), ids=lambda bound: bound.design)
def test_at_its_bounds_a_design_keeps_them(bound: Bound) -> None:
    costs = costs_of(
        seconds=bound.seconds, alone_per_s=bound.alone_per_s or 0.1, harness_per_s=bound.harness_per_s or 0.1
    )
    assert missed(bound, costs) == []


def test_a_campaign_that_takes_longer_is_told() -> None:
    costs = costs_of(seconds=1.01 * WITH_BOTH.seconds, alone_per_s=WITH_BOTH.alone_per_s)
    (line,) = missed(WITH_BOTH, costs)
    assert WITH_BOTH.design in line and VIRTUAL in line


def test_a_simulator_that_is_slower_is_told() -> None:
    costs = costs_of(seconds=WITH_BOTH.seconds, alone_per_s=0.99 * WITH_BOTH.alone_per_s)
    (line,) = missed(WITH_BOTH, costs)
    assert WITH_BOTH.design in line and ALONE in line


def test_a_harness_that_is_slower_is_told() -> None:
    least_per_s = WITH_BOTH.harness_per_s
    costs = costs_of(
        seconds=WITH_BOTH.seconds, alone_per_s=WITH_BOTH.alone_per_s, harness_per_s=0.99 * least_per_s
    )
    (line,) = missed(WITH_BOTH, costs)
    assert WITH_BOTH.design in line and HARNESS in line


def test_the_table_says_how_many_times_the_rate_of_emulation(capsys: pytest.CaptureFixture[str]) -> None:
    costs = costs_of(seconds=10.0, alone_per_s=200.0)
    print_costs(WITH_BOTH.design, costs)
    of_virtual = next(line for line in capsys.readouterr().out.splitlines() if VIRTUAL in line)
    assert [cell.strip() for cell in of_virtual.split("│")[2:6]] == ["1,000", "10.0", "100.00", "100.0"]
