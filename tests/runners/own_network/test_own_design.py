"""The design of a path: its points lie within the intervals, and what is not known is drawn."""

import math
from dataclasses import replace

import pytest

from fecbench.runners.own_network import design_of
from fecbench.runners.own_network.own_design import POINTS, REPETITIONS
from fecbench.runners.paths import Estimate, Path, exactly

KNOWN = Path(
    form="flags",
    rtt_ms=exactly(80.0),
    bandwidth_mbps=exactly(20.0),
    loss=exactly(0.02),
    burst=exactly(1.0),
    queue_bdp=exactly(1.0),
)
MEASURED = replace(
    KNOWN,
    rtt_ms=Estimate(80.0, 75.0, 80.0),
    bandwidth_mbps=Estimate(20.0, 18.0, 22.0),
    loss=Estimate(0.02, 0.01, 0.04),
    burst=Estimate(2.0, 1.5, 3.0),
    queue_bdp=None,
)


def test_a_network_that_is_known_is_one_point() -> None:
    design = design_of(KNOWN, 50_000)
    (point,) = design.plan().points
    assert design.repetitions == POINTS * REPETITIONS
    assert design.constants["owd_ms"] == 40 and design.constants["loss.p"] == 0.02 and point == {}


def test_points_lie_within_the_intervals_and_fill_them() -> None:
    design = design_of(MEASURED, 50_000)
    points = design.plan().points
    assert len(points) == POINTS
    ends = {
        "owd_ms": (37.5, 40),
        "bandwidth_mbps": (18, 22),
        "loss.rate": (0.01, 0.04),
        "loss.burst": (1.5, 3),
        "queue_bdp": (0.25, 4),
    }
    for name, (low, high) in ends.items():
        values = sorted(float(point[name]) for point in points)  # type: ignore[arg-type]
        assert low <= values[0] and values[-1] <= high
        assert values[0] < low + (high - low) / 4 and values[-1] > high - (high - low) / 3


def test_a_rate_that_may_be_higher_is_drawn_up_to_four_times() -> None:
    path = replace(MEASURED, bandwidth_mbps=Estimate(20.0, 18.0, math.inf))
    rates = [point["bandwidth_mbps"] for point in design_of(path, 50_000).plan().points]
    assert max(rates) > 50 and max(rates) <= 80  # type: ignore[type-var]


MODELS = [
    (replace(MEASURED, ends="time", burst_s=Estimate(0.01, 0.005, 0.02)), "ge-time"),
    (MEASURED, "markov"),
    (replace(MEASURED, burst=None), "markov"),
    (KNOWN, "uniform"),
    (replace(KNOWN, loss=Estimate(0.0, 0.0, 0.001)), "uniform"),
    (replace(KNOWN, loss=Estimate(0.0, 0.0, 0.001), burst=Estimate(1.0, 1.0, 4.0)), "markov"),
    (replace(KNOWN, loss=Estimate(0.01, 0.0, 0.02, "flag"), burst=exactly(3.0)), "markov"),
    (replace(KNOWN, loss=exactly(0.0)), "none"),
]


@pytest.mark.parametrize(("path", "model"), MODELS, ids=[model for _, model in MODELS])
def test_losses_have_the_model_of_what_ends_a_burst(path: Path, model: str) -> None:
    design = design_of(path, 50_000)
    assert design.constants["loss.model"] == model
    design.plan()


@pytest.mark.parametrize(
    ("burst", "ends"), [(None, (0.25, 1)), (Estimate(1.0, 1.0, 4.0), (0.25, 1)), (exactly(10.0), (0.1, 0.1))]
)
def test_bursts_that_a_recording_did_not_meet_begin_as_seldom_whatever_their_length(
    burst: Estimate | None, ends: tuple[float, float]
) -> None:
    """Losses of 0.4 %, with 4 in a row, are a burst in each thousandth packet."""
    design = design_of(replace(KNOWN, loss=Estimate(0.0, 0.0, 0.004), burst=burst), 50_000)
    points = [{**design.constants, **point} for point in design.plan().points]
    assert 0.0005 < max(float(point["loss.p"]) for point in points) <= 0.001  # type: ignore[arg-type]
    assert all(ends[0] <= float(point["loss.r"]) <= ends[1] for point in points)  # type: ignore[arg-type]


def test_each_path_and_size_has_seeds_of_its_own() -> None:
    seeds = {design_of(path, size).seed for path in (KNOWN, MEASURED) for size in (1000, 2000)}
    assert len(seeds) == 4 and design_of(KNOWN, 1000).seed in seeds
