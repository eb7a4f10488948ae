"""The figures and claims of Michel's thesis: which trials they are about, and what makes a claim hold."""

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from fecbench.results.figures.nothing import NothingToDraw
from fecbench.results.papers import figures_of
from fecbench.results.papers.thesis2018.arms import (
    REED_SOLOMON,
    RELIABLE,
    RLC,
    UDP,
    XOR,
    Arm,
    at_points,
    ratios,
)
from fecbench.results.store.records import Variant, Workload
from tests.results.papers.planted import Planted, assert_all_hold, assert_none_holds, design_of, judged
from tests.support.campaigns import campaign_info, trial_row

POINTS = 60
ARMS = (UDP, RELIABLE, REED_SOLOMON, XOR, RLC)

Measured = dict[str, float]
Measure = Callable[[Arm, dict[str, float]], Measured]
Made = Callable[..., Planted]


def values_of(point: int) -> dict[str, float]:
    return {"owd_ms": 2.5 * point, "loss.r": 0.03 if point == 0 else 0.3}


def as_the_thesis_says(arm: Arm, point: dict[str, float]) -> Measured:
    """Return the thesis' results, with a difference at each point."""
    noise = point["owd_ms"] / 1e4
    high = point["owd_ms"] > 45
    rebuffering = {UDP: 5.0, RELIABLE: 15.0 if high else 1.5, REED_SOLOMON: 0.5, XOR: 0.9, RLC: 0.1}
    received = {UDP: 5.0e6, RELIABLE: 6.0e6, REED_SOLOMON: 5.99e6, XOR: 5.6e6, RLC: 5.65e6}
    if arm == REED_SOLOMON and point["loss.r"] < 0.06:
        received[arm] = 4.9e6
    low = {**rebuffering, REED_SOLOMON: 4.0, RLC: 0.12}
    sent = {UDP: 1.007, RELIABLE: 1.05, REED_SOLOMON: 1.56, XOR: 1.56, RLC: 1.57}
    return {
        "messages.overhead": sent[arm],
        "messages.received_bytes": received[arm],
        "messages.rebuffering_s": rebuffering[arm] + noise,
        "messages.received_2_bytes": {**received, REED_SOLOMON: 5.3e6}[arm],
        "messages.rebuffering_2_s": low[arm] + noise,
    }


def the_contrary(arm: Arm, point: dict[str, float]) -> Measured:
    """Return the contrary of the claims, as far as the judge accepts it.

    Reliable QUIC has received all data, or it fails. So it has sent all data, in packets with longer headers
    than UDP's.
    """
    noise = point["owd_ms"] / 1e4
    high = point["owd_ms"] > 45
    rebuffering = {UDP: 1.0, RELIABLE: 0.5 if high else 2.0, REED_SOLOMON: 11.0 if high else 6.0}
    rebuffering |= {XOR: 3.0, RLC: 9.0 if not high else 14.0}
    received = {UDP: 5.8e6, RELIABLE: 6.0e6, REED_SOLOMON: 5.0e6, XOR: 5.5e6}
    received |= {RLC: 5.9e6}
    low = {**rebuffering, REED_SOLOMON: 0.1, RLC: 20.0}
    sent = {UDP: 1.007, RELIABLE: 1.03, REED_SOLOMON: 1.2, XOR: 1.5, RLC: 1.8}
    return {
        "messages.overhead": sent[arm],
        "messages.received_bytes": received[arm],
        "messages.rebuffering_s": rebuffering[arm] + noise,
        "messages.received_2_bytes": {**received, REED_SOLOMON: 5.95e6}[arm],
        "messages.rebuffering_2_s": low[arm] + noise,
    }


@pytest.fixture
def planted_campaign() -> Made:
    """Trials of a design of the catalogue, of which a function gives what each arm measured."""

    def make(name: str, measure: Measure, state: str = "ok") -> Planted:
        design = design_of(name)
        variants = [
            Variant(**{**variant, "baseline": variant.get("baseline") is True})
            for variant in design["variants"]
        ]
        (table,) = design["workloads"]
        deliveries = table["delivery"] if isinstance(table["delivery"], list) else [table["delivery"]]
        workloads = [
            Workload(label=f"messages-{delivery}", name="messages", parameters={"delivery": delivery})
            for delivery in deliveries
        ]
        rows = []
        for arm in ARMS:
            for variant in variants:
                options = variant["options"]
                is_arm = (variant["implementation"], options["scheme"]) == (arm.implementation, arm.scheme)
                if not is_arm or arm.n not in (None, options.get("n")) or arm.delivery not in deliveries:
                    continue
                key = variant["label"], f"messages-{arm.delivery}"
                rows += [
                    trial_row(*key, point, repetition, state, **measure(arm, values_of(point)))
                    for point in range(POINTS)
                    for repetition in range(2)
                ]
        campaign = campaign_info(
            design_text=f'name = "{name}"\n',
            variants=variants,
            workloads=workloads,
            points=[values_of(point) for point in range(POINTS)],
            repetitions=2,
        )
        return pd.DataFrame(rows), campaign

    return make


DESIGNS = ("thesis2018-ge", "thesis2018-uniform", "thesis2018-delay", "thesis2018-low-desync-short")


def test_each_claim_agrees_where_it_is_as_the_thesis_says(planted_campaign: Made) -> None:
    for name in DESIGNS:
        assert_all_hold(planted_campaign(name, as_the_thesis_says), name)


def test_each_claim_differs_where_it_is_the_contrary(planted_campaign: Made) -> None:
    for name in DESIGNS:
        assert_none_holds(planted_campaign(name, the_contrary), name)


def test_a_little_more_agrees_in_direction(planted_campaign: Made) -> None:
    def a_little(arm: Arm, point: dict[str, float]) -> Measured:
        measured = as_the_thesis_says(arm, point)
        return measured | {"messages.received_bytes": 5.9e6 + measured["messages.received_bytes"] / 100}

    claims = [claim for claim in judged(*planted_campaign("thesis2018-ge", a_little)) if claim.in_direction]
    of_bytes = [claim for claim in claims if "receive" in claim.text and "messages" not in claim.text]
    assert {claim.verdict for claim in of_bytes if "5.7" not in claim.paper} == {"agrees in direction"}
    assert len(of_bytes) == 5


def test_without_trials_that_are_ok_there_is_nothing_to_draw_and_nothing_is_claimed(
    planted_campaign: Made,
) -> None:
    for name in DESIGNS:
        frame, campaign = planted_campaign(name, as_the_thesis_says, "failed")
        for figure in figures_of(campaign):
            with pytest.raises(NothingToDraw):
                figure.draw(frame, campaign)
            assert figure.claims(frame, campaign) == [], figure.number


def test_the_figures_of_both_loss_models_are_those_of_chapter_5(planted_campaign: Made) -> None:
    numbers = [
        figure.number.rpartition(" ")[2]
        for name in DESIGNS[:3]
        for figure in figures_of(planted_campaign(name, as_the_thesis_says)[1])
    ]
    assert sorted(numbers, key=lambda number: int(number.partition(".")[2])) == [
        f"5.{number}" for number in range(6, 20)
    ]


def test_arms_are_compared_at_points_and_repetitions_that_both_have(planted_campaign: Made) -> None:
    frame, campaign = planted_campaign("thesis2018-ge", as_the_thesis_says)
    lost = (frame["variant"] == "UDP") & (frame["point"] == 3)
    frame.loc[lost, "state"] = "invalid"
    table = at_points(frame, campaign, "messages.rebuffering_s", [UDP, RELIABLE])
    assert table.loc[table["point"] == 3, [UDP.name, RELIABLE.name]].isna().all(axis=None)
    assert table.loc[table["point"] != 3, UDP.name].notna().all()


def time_out(frame: pd.DataFrame, variant: str, points: range, repetitions: range = range(2)) -> None:
    """The trials of this variant, on all workloads, so time out."""
    choice = frame["point"].isin(points) & frame["repetition"].isin(repetitions)
    choice &= frame["variant"].str.contains(variant, regex=False)
    assert choice.any()
    frame.loc[choice, "state"] = "timeout"
    frame.loc[choice, [name for name in frame if name.startswith("messages.")]] = math.nan  # type: ignore[attr-defined]


WORST: list[tuple[str, float]] = [
    ("messages.rebuffering_s", math.inf),
    ("messages.received_bytes", -math.inf),
]


def test_an_arm_that_timed_out_is_worse_than_any_value_and_which_of_two_is_worse_nobody_can_tell(
    planted_campaign: Made,
) -> None:
    for metric, worst in WORST:
        frame, campaign = planted_campaign("thesis2018-ge", as_the_thesis_says)
        time_out(frame, "XOR", range(5, 15))
        time_out(frame, "RLC", range(10, 20))
        table = at_points(frame, campaign, metric, [XOR, RLC]).set_index("point")
        assert (table.loc[5:14, XOR.name] == worst).all() and np.isfinite(table.loc[15:, XOR.name]).all(), (
            metric
        )
        assert (table.loc[10:19, RLC.name] == worst).all(), metric
        ratio = ratios(table, metric, XOR, RLC)["ratio"]
        assert (ratio[5:9] == (math.inf if worst > 0 else 0)).all(), metric
        assert ratio[10:14].isna().all(), metric
        assert (ratio[15:19] == (0 if worst > 0 else math.inf)).all(), metric
        assert np.isfinite(ratio[20:]).all(), metric


def test_a_claim_counts_points_at_which_one_arm_timed_out_and_says_how_many_are_unknown(
    planted_campaign: Made,
) -> None:
    frame, campaign = planted_campaign("thesis2018-ge", as_the_thesis_says)
    time_out(frame, "XOR", range(5, 15))
    time_out(frame, "(30, 20)", range(10, 20))
    claim = next(
        claim
        for claim in judged(frame, campaign)
        if claim.text.startswith("points at which interleaved XOR re-buffers longer than Reed-Solomon")
    )
    # At 5 Reed-Solomon alone timed out, and at 5 both did.
    assert claim.measured.startswith(f"91 % of {POINTS - 5}, 5 unknown")
    assert claim.holds is True


def test_a_difference_between_arms_that_mostly_timed_out_is_left_open(planted_campaign: Made) -> None:
    frame, campaign = planted_campaign("thesis2018-ge", as_the_thesis_says)
    for variant in ("XOR", "(30, 20)"):
        time_out(frame, variant, range(40))
    claims = judged(frame, campaign)
    between = [claim for claim in claims if "Reed-Solomon" in claim.text and "XOR" in claim.text]
    assert {(claim.measured.split(" (")[0], claim.holds) for claim in between} == {
        ("100 % of 20, 40 unknown", None)
    }


def test_timeouts_are_beyond_the_ends_of_the_axis_and_the_figure_says_so(planted_campaign: Made) -> None:
    for name in DESIGNS[:3]:
        frame, campaign = planted_campaign(name, as_the_thesis_says)
        time_out(frame, "(30, 20)", range(5, 10))  # is in each of the figures
        for figure in figures_of(campaign):
            drawing = figure.draw(frame, campaign)
            printed = " ".join(text.get_text() for text in drawing.texts)
            assert "timed out" in " ".join(printed.split()), figure.number
            lines = [np.asarray(line.get_ydata(), float) for axes in drawing.axes for line in axes.lines]
            assert all(np.isfinite(line).all() for line in lines), figure.number


def test_a_point_that_was_not_run_is_not_unknown(planted_campaign: Made) -> None:
    frame, campaign = planted_campaign("thesis2018-ge", as_the_thesis_says)
    claims = judged(frame[frame["point"] < POINTS // 2], campaign)
    assert not any("unknown" in claim.measured for claim in claims)


def test_a_ratio_to_nothing_is_none() -> None:
    table = pd.DataFrame({UDP.name: [0.0, 2.0], RLC.name: [1.0, 1.0]})
    assert list(ratios(table, "messages.rebuffering_s", RLC, UDP)["ratio"].isna()) == [True, False]


def test_the_95th_percentile_of_an_arm_is_at_its_bad_end(planted_campaign: Made) -> None:
    """19 of 20 repetitions are as good or better, whichever direction is better."""
    frame, campaign = planted_campaign("thesis2018-ge", as_the_thesis_says)
    campaign = replace(campaign, statistic="p95")
    one = frame[(frame["point"] == 3) & (frame["repetition"] == 0)]
    many = pd.concat([one.assign(repetition=n) for n in range(20)], ignore_index=True)
    for metric, expected in (("messages.rebuffering_s", 18.0), ("messages.received_bytes", 1.0)):
        many[metric] = many["repetition"].astype("float64")
        table = at_points(many, campaign, metric, [UDP, RELIABLE])
        assert table.loc[3, [UDP.name, RELIABLE.name]].tolist() == [expected] * 2
