"""The figures of messages show what was measured, or say what is not there."""

import math
from collections.abc import Callable

import pandas as pd
import pytest
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.path import Path

from fecbench.results.analysis.selection import chosen
from fecbench.results.figures.nothing import NothingToDraw
from fecbench.results.figures.playout import latency_ecdf, on_time
from fecbench.results.store.database import Database
from fecbench.results.store.records import CampaignInfo, Workload
from tests.support.campaigns import trial_row, types_of

POINTS = 9
Filled = Callable[..., tuple[Database, CampaignInfo]]


@pytest.fixture
def campaign(filled: Filled) -> CampaignInfo:
    workloads = [
        Workload(label=f"messages-{delivery}", name="messages", parameters={"delivery": delivery})
        for delivery in ("datagram", "reliable")
    ]
    _, filled_campaign = filled(
        {}, workloads=workloads, points=[{"owd_ms": owd_ms} for owd_ms in range(POINTS)]
    )
    return filled_campaign


def trials(campaign: CampaignInfo, state: str = "ok") -> pd.DataFrame:
    """Return two repetitions; the share on time grows with the delay, and falls with the point."""
    return pd.DataFrame(
        trial_row(variant["label"], workload["label"], point, repetition, state)
        | {
            "id": POINTS * 2 * (len(campaign.workloads) * arm + kind) + 2 * point + repetition,
            "messages.on_time_ratio_100ms": 0.9 - point / 100 - repetition / 50,
            "messages.on_time_ratio_25ms": 0.5 - point / 100,
            "messages.on_time_ratio_33.3ms": 0.6 - point / 100,
        }
        for arm, variant in enumerate(campaign.variants)
        for kind, workload in enumerate(campaign.workloads)
        for point in range(POINTS)
        for repetition in range(2)
    )


def lines_of(figure: Figure) -> list[list[tuple[float, float]]]:
    """The points of each line that are within what its panel shows."""
    return [
        [
            (float(x), float(y))
            for x, y in zip(line.get_xdata(), line.get_ydata(), strict=True)
            if axes.get_xlim()[0] <= x <= axes.get_xlim()[1]
        ]
        for axes in figure.axes
        for line in axes.lines
    ]


def test_a_line_has_the_median_over_points_at_each_delay_in_order(campaign: CampaignInfo) -> None:
    figure = on_time(trials(campaign), campaign)
    drawing = lines_of(figure)
    assert len(drawing) == len(campaign.variants) * 2
    middle = 4 / 100
    for line in drawing:
        delays, shares = zip(*line, strict=True)
        assert delays == (25, 33.3, 100)
        assert shares == pytest.approx((0.5 - middle, 0.6 - middle, 0.89 - middle))
    assert [axes.get_title(loc="left") for axes in figure.axes] == ["messages-datagram", "messages-reliable"]


def bands_of(axes: Axes) -> list[Path]:
    return [path for band in axes.collections for path in band.get_paths() if len(path.vertices)]


def test_a_band_is_drawn_where_points_are_enough_for_an_interval(campaign: CampaignInfo) -> None:
    frame = trials(campaign)
    assert all(bands_of(axes) for axes in on_time(frame, campaign).axes)
    few = frame[frame["point"] < 3]
    assert not any(bands_of(axes) for axes in on_time(few, campaign).axes)


def test_without_messages_or_without_a_trial_that_is_ok_there_is_nothing_to_draw(
    campaign: CampaignInfo,
) -> None:
    with pytest.raises(NothingToDraw, match="No trial that is ok sent messages"):
        on_time(trials(campaign, "failed"), campaign)
    with pytest.raises(NothingToDraw, match="No trial that is ok sent messages"):
        on_time(trials(campaign)[["id", "variant", "workload", "point", "repetition", "state"]], campaign)


def test_no_variant_is_drawn_in_other_networks_than_the_others(campaign: CampaignInfo) -> None:
    """A variant that lacks the worst networks would look better."""
    frame = trials(campaign)
    lacks = (frame["variant"] == campaign.variants[0]["label"]) & (frame["point"] >= 6)
    frame.loc[lacks, "state"] = "invalid"
    first, *others = lines_of(on_time(frame, campaign))
    assert all(line == first for line in others)
    series = frame[["id", "variant", "workload"]].assign(t_s=0.0, whole_s=0.01 + frame["point"] / 100)
    first, *others = lines_of(latency_ecdf(series, campaign, frame))
    assert len({latency for latency, _ in first}) == 6 and all(line == first for line in others)


def test_messages_of_a_variant_that_is_left_out_are_neither_drawn_nor_counted(campaign: CampaignInfo) -> None:
    frame = trials(campaign)
    series = frame[["id", "variant", "workload"]].assign(t_s=0.0, whole_s=0.01)
    some, narrowed = chosen(
        frame.astype(types_of(campaign)), campaign, [variant["label"] for variant in campaign.variants[:1]]
    )
    figure = latency_ecdf(series, narrowed, some)
    assert f"{len(some)} messages of {len(some)} trials" in captions(figure)


def test_the_curve_of_latencies_ends_at_the_share_of_messages_that_were_whole(campaign: CampaignInfo) -> None:
    label = campaign.variants[0]["label"]
    series = pd.DataFrame(
        {
            "id": 0,
            "variant": label,
            "workload": "messages-datagram",
            "t_s": [0.0, 0.1, 0.2, 0.3],
            "whole_s": [0.02, 0.13, -1.0, 0.34],
        }
    )
    frame = trials(campaign)
    (line,) = lines_of(latency_ecdf(series, campaign, frame))
    assert line == [(pytest.approx(20), 0.25), (pytest.approx(30), 0.5), (pytest.approx(40), 0.75)]
    with pytest.raises(NothingToDraw, match="left the series messages"):
        latency_ecdf(series.iloc[:0], campaign, frame)


def captions(figure: Figure) -> str:
    return " ".join(" ".join(text.get_text() for text in figure.texts).split())


def with_worst(campaign: CampaignInfo, state: str) -> tuple[pd.DataFrame, str]:
    """Trials of which one variant did not get through a third of its chats: at three points of nine."""
    frame, label = trials(campaign), campaign.variants[0]["label"]
    choice = (frame["variant"] == label) & frame["point"].isin([0, 1, 2])
    frame.loc[choice, "state"] = state
    frame.loc[choice, [name for name in frame if str(name).startswith("messages.")]] = math.nan
    return frame, label


def test_who_does_not_get_through_has_no_message_in_time_and_the_caption_counts_by_variant(
    campaign: CampaignInfo,
) -> None:
    for state in ("failed", "timeout"):
        frame, label = with_worst(campaign, state)
        figure = on_time(frame, campaign)
        first, second, *_ = lines_of(figure)
        # The points 0, 1 and 2 had the greatest shares, and now have none: the median is that of point 7.
        assert [share for _, share in first] == pytest.approx([0.5 - 0.07, 0.6 - 0.07, 0.89 - 0.07]), state
        assert [share for _, share in second] == pytest.approx([0.5 - 0.04, 0.6 - 0.04, 0.89 - 0.04]), state
        assert f"no message in time, for the trial failed or timed out: {label} 12 of 36" in captions(
            figure
        ), state
        survivors, _, *_ = lines_of(on_time(frame[frame["state"] == "ok"], campaign))
        assert survivors[0][1] == pytest.approx(0.5 - 0.055), (
            state
        )  # what stood here before: the six that are left
        assert "failed" not in captions(on_time(trials(campaign), campaign)), state


def test_an_invalid_trial_is_in_no_share(campaign: CampaignInfo) -> None:
    frame, _ = with_worst(campaign, "invalid")
    assert lines_of(on_time(frame, campaign)) == lines_of(on_time(frame[frame["state"] == "ok"], campaign))


def test_the_curve_of_latencies_ends_below_1_where_trials_did_not_get_through(campaign: CampaignInfo) -> None:
    for state in ("failed", "timeout"):
        frame, label = with_worst(campaign, state)
        series = pd.DataFrame(
            [
                (number, label, "messages-datagram", message / 10, message / 10 + 0.02)
                for number in range(6, 18)  # of the points 3 to 8
                for message in range(2)
            ],
            columns=["id", "variant", "workload", "t_s", "whole_s"],
        )
        figure = latency_ecdf(series, campaign, frame)
        (line,) = lines_of(figure)
        assert line[-1][1] == pytest.approx(12 / 18), state
        assert f"{label} 6 of 18" in captions(figure), state
