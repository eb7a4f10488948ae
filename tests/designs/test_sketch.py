"""A design from a few ranges: its text is a design that asks what was said."""

import tomllib
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from fecbench.designs.design import parse
from fecbench.designs.error import DesignError
from fecbench.designs.sketch import Arm, Sketch

SKETCH = Sketch(
    name="mine",
    bandwidth_mbps=(5, 50),
    rtt_ms=(20, 200),
    loss=(0.005, 0.05),
    burst=(1, 1),
    queue_bdp=(1.5, 1.5),
    sizes_bytes=[50_000],
    workload="download",
    arms=[Arm("off", "noq-fec", {"scheme": "none"}), Arm("safe", "noq-fec", {"n": 3}, baseline="off")],
    trials=1000,
)


def test_a_range_is_a_factor_and_a_single_value_a_constant() -> None:
    design = parse(SKETCH.text(), "mine.toml")
    assert {name: (factor.min, factor.max) for name, factor in design.factors.items()} == {
        "bandwidth_mbps": (5, 50),
        "rtt_ms": (20, 200),
        "loss.rate": (0.005, 0.05),
    }
    assert design.constants == {"queue_bdp": 1.5, "loss.model": "uniform"}
    assert [(variant.label, variant.baseline) for variant in design.variants] == [
        ("off", True),
        ("safe", "off"),
    ]
    assert design.trial_count == 16 * 2 * 31


def test_few_trials_have_few_points() -> None:
    assert parse(replace(SKETCH, trials=20).text(), "mine.toml").trial_count == 4 * 2 * 10
    assert parse(replace(SKETCH, trials=160).text(), "mine.toml").trial_count == 8 * 2 * 10


def test_one_network_has_no_plan_and_all_the_repetitions() -> None:
    one = replace(SKETCH, bandwidth_mbps=(10, 10), rtt_ms=(50, 50), loss=(0, 0))
    design = parse(one.text(), "mine.toml")
    assert not design.factors
    assert design.constants["loss.model"] == "none"
    assert design.repetitions == 500


def test_bursts_are_of_the_model_that_has_them() -> None:
    design = parse(replace(SKETCH, burst=(2, 2)).text(), "mine.toml")
    assert (design.constants["loss.model"], design.constants["loss.burst"]) == ("markov", 2)
    assert "loss.rate" in design.factors


@example(ends=[0.5] * 6 + [0.01, 0.010000000000000002], trials=20, sizes=[1])  # alike where written
@given(
    ends=st.lists(st.floats(0.01, 0.9), min_size=8, max_size=8),
    trials=st.integers(20, 5000),
    sizes=st.lists(st.integers(1, 10**7), min_size=1, max_size=3, unique=True),
)
@settings(max_examples=25, deadline=None)
def test_any_ranges_make_a_design(ends: list[float], trials: int, sizes: list[int]) -> None:
    low_high = [tuple(sorted(ends[at : at + 2])) for at in (0, 2, 4, 6)]
    bandwidth, rtt, loss, queue = low_high
    sketch = replace(
        SKETCH,
        **{"bandwidth_mbps": bandwidth, "rtt_ms": rtt, "loss": loss, "queue_bdp": queue},  # type: ignore[arg-type]
        sizes_bytes=sizes,
        trials=trials,
    )
    assert tomllib.loads(sketch.text())["workloads"][0]["name"] == "download"
    design = parse(sketch.text(), "mine.toml")
    assert design.trial_count >= trials / 2


@pytest.mark.parametrize(
    ("ranges", "refusal"),
    [
        ({"bandwidth_mbps": (0, 5)}, "bandwidth_mbps = 0: must be above 0"),
        ({"rtt_ms": (-1, 5)}, "rtt_ms = -1: must be above 0"),
        ({"loss": (0, 0.1)}, "loss = 0: must be above 0 where it is a range"),
        ({"loss": (0.1, 1)}, "loss = 1: must be 0 or more, and below 1"),
        ({"burst": (0.5, 1)}, "burst = 0.5: must be 1 or more"),
        ({"loss": (0, 0), "burst": (1, 3)}, "burst = 3: nothing is lost in a row where loss = 0"),
    ],
)
def test_ranges_that_no_network_has_are_refused(ranges: dict[str, Any], refusal: str) -> None:
    with pytest.raises(DesignError) as refusal_info:
        replace(SKETCH, **ranges).text()
    assert str(refusal_info.value).startswith(refusal)
