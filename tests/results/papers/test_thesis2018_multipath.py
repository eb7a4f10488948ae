"""The thesis' claims about two paths: which trials they are about, and what makes a claim hold."""

from collections.abc import Callable

import pandas as pd
import pytest

from fecbench.results.papers.thesis2018.multipath import ALL, HIGHRB, ROUND_ROBIN, SINGLE_PATH, Arm  # type: ignore[attr-defined]
from fecbench.results.store.records import Variant
from tests.results.papers.planted import Planted, assert_all_hold, assert_none_holds, design_of
from tests.support.campaigns import campaign_info, trial_row, workload

DESIGNS = ("homogeneous", "losses", "heterogeneous")
POINTS = 200

Point = dict[str, float]
Measure = Callable[[Arm, Point], tuple[float, float]]
"""Bytes received, and seconds of re-buffering."""
Made = Callable[[str, Measure], Planted]


def homogeneous(point: int) -> Point:
    return {"loss.p": 0.01 * (point % 7) / 6, "loss.r": 0.03 + 0.47 * (point % 11) / 10, "owd_ms": point / 2}


def of_both(point: int) -> Point:
    """p, r and the delay of each path."""
    first, second = homogeneous(point), homogeneous(3 * point + 5)
    paths = {
        f"path{number}.{name}": value
        for number, path in ((1, first), (2, second))
        for name, value in path.items()
    }
    return paths | {"path2.owd_ms": 100 * (point % 13) / 12}


def of_losses(point: int) -> Point:
    paths = of_both(point)
    return {name: value for name, value in paths.items() if "owd" not in name} | {
        "owd_ms": paths["path1.owd_ms"]
    }


def alike(point: int) -> Point:
    """Return enough points of short delays to show that something is true of none."""
    return {**homogeneous(point), "owd_ms": point / 4}


VALUES = {"homogeneous": alike, "losses": of_losses, "heterogeneous": of_both}


def as_the_thesis_says(arm: Arm, point: Point) -> tuple[float, float]:
    if "loss.r" in point:
        received = {SINGLE_PATH: 5.5e6, ROUND_ROBIN: 5.95e6, HIGHRB: 5.951e6}[arm]
        rebuffering = 2.0 if arm == SINGLE_PATH else 1.0 if point["loss.r"] > 0.2 else 3.0
        is_high = arm == ROUND_ROBIN and point["owd_ms"] > 15
        return received + (2e3 if is_high else 0), rebuffering
    by_r = point["path1.loss.r"] - point["path2.loss.r"]
    by = by_r - 30 * (point["path1.loss.p"] - point["path2.loss.p"])
    received = {SINGLE_PATH: 4.5e6 if by < -0.2 else 5.0e6, ROUND_ROBIN: 5.0e6, HIGHRB: 5.5e6}[arm]
    apart_ms = abs(point["path1.owd_ms"] - point["path2.owd_ms"]) if "path1.owd_ms" in point else 0
    is_better = by > 0.3 if "owd_ms" in point else apart_ms > 70 or by_r > 0.15
    return (5.99e6 if arm == SINGLE_PATH and is_better else received), 1.0


def the_contrary(arm: Arm, point: Point) -> tuple[float, float]:
    received = {SINGLE_PATH: 5.95e6, ROUND_ROBIN: 5.9e6, HIGHRB: 5.5e6}[arm]
    if "loss.r" in point:
        return received, 2.0 if arm == SINGLE_PATH else 3.0 if point["loss.r"] > 0.2 else 1.0
    first, second = (point[f"path{number}.loss.r"] - 50 * point[f"path{number}.loss.p"] for number in (1, 2))
    apart_ms = abs(point.get("path1.owd_ms", 0) - point.get("path2.owd_ms", 0))
    is_worse = first > second or apart_ms > 70 or point["path1.loss.r"] > point["path2.loss.r"] + 0.15
    if apart_ms and arm == HIGHRB:
        return (5.99e6 if is_worse and apart_ms > 70 else 5.7e6), 1.0
    return (5.6e6 if arm == SINGLE_PATH and is_worse else received), 1.0


@pytest.fixture
def planted_campaign() -> Made:
    """Trials of a design of the catalogue, of which a function gives what each arm measured."""

    def make(name: str, measure: Measure) -> Planted:
        design = design_of(f"thesis2018-multipath-{name}")
        variants = [
            Variant(**{**variant, "baseline": number == 0})
            for number, variant in enumerate(design["variants"])
        ]
        labels = {
            arm: variant["label"]
            for arm in ALL
            for variant in variants
            if variant["options"].items() >= {"scheme": arm.scheme, **dict(arm.options)}.items()
        }
        assert len(labels) == len(ALL)
        rows = []
        for point in range(POINTS):
            for arm, label in labels.items():
                received, rebuffering = measure(arm, VALUES[name](point))
                measured = {"messages.received_bytes": received, "messages.rebuffering_s": rebuffering}
                rows.append(trial_row(label, "messages", point, **measured))
        campaign = campaign_info(
            design_text=f'name = "thesis2018-multipath-{name}"\n',
            variants=variants,
            workloads=[workload("messages", "messages")],
            points=[VALUES[name](point) for point in range(POINTS)],
        )
        return pd.DataFrame(rows), campaign

    return make


def test_each_claim_agrees_where_it_is_as_the_thesis_says(planted_campaign: Made) -> None:
    for name in DESIGNS:
        assert_all_hold(planted_campaign(name, as_the_thesis_says), name)


def test_each_claim_differs_where_it_is_the_contrary(planted_campaign: Made) -> None:
    for name in DESIGNS:
        assert_none_holds(planted_campaign(name, the_contrary), name)
