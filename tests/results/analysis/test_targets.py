"""Live video at latency targets: shares, differences to the baseline, and the figure that has them."""

from collections.abc import Callable, Sequence
from itertools import product

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest

from fecbench.results import figures
from fecbench.results.analysis import targets
from fecbench.results.analysis.pairing import baselines_of
from fecbench.results.figures.nothing import NothingToDraw
from fecbench.results.store.database import Database
from fecbench.results.store.records import CampaignInfo, Variant, Workload

TARGETS = (100, 200)
NETWORKS = [
    {"owd_ms": owd_ms, "losses": losses, "loss.p": p}
    for owd_ms in (25, 50)
    for losses, p in (("few", 0.01), ("many", 0.05))
]
REPETITIONS = 8
Filled = Callable[..., tuple[Database, CampaignInfo]]


@pytest.fixture
def campaign(filled: Filled) -> CampaignInfo:
    workload = Workload(label="live", name="live", parameters={}, metric="live.on_time_ratio_100ms")
    return filled({}, workloads=[workload], points=NETWORKS, repetitions=REPETITIONS)[1]


def broadcasts(campaign: CampaignInfo, share: Callable[[bool, int, int], float]) -> pd.DataFrame:
    """The trials of all variants; `share` of whether it is the baseline, the target in ms, the repetition."""
    return pd.DataFrame(
        {
            "variant": variant["label"],
            "workload": "live",
            "point": point,
            "repetition": repetition,
            "state": "ok",
            **{
                f"live.on_time_ratio_{target}ms": share(variant["baseline"], target, repetition)
                for target in TARGETS
            },
            "live.audio_on_time_ratio_100ms": 0.5,
        }
        for variant in campaign.variants
        for point in range(len(campaign.points))
        for repetition in range(REPETITIONS)
    )


def test_a_target_counts_in_round_trips_of_the_network(campaign: CampaignInfo) -> None:
    table = targets.verdicts(broadcasts(campaign, lambda *_: 1.0), campaign)
    in_round_trips = table.groupby(["rtt_ms", "target_ms"])["round_trips"].first().to_dict()
    assert in_round_trips == {(50, 100): 2, (50, 200): 4, (100, 100): 1, (100, 200): 2}


def test_a_factor_that_names_all_others_names_the_network() -> None:
    points = pd.DataFrame(NETWORKS)
    assert targets.networks(points).tolist() == ["few", "many"] * 2
    both = targets.networks(points.assign(rate=[1, 1, 2, 2]))
    assert both.nunique() == len(NETWORKS)
    assert set(targets.networks(points[["owd_ms"]])) == {"all networks"}


@pytest.mark.parametrize(
    ("gains", "verdict"),
    [
        ([0.1, 0.12] * 4, "gain"),
        ([-0.1, -0.12] * 4, "harm"),
        ([0.001, -0.001] * 4, "equivalent"),
        ([0.3, -0.3] * 4, "undecided"),
    ],
)
def test_a_difference_is_named_where_its_interval_is_beyond_the_margin(
    campaign: CampaignInfo, gains: Sequence[float], verdict: str
) -> None:
    frame = broadcasts(campaign, lambda is_baseline, _, turn: 0.5 + (0 if is_baseline else gains[turn]))
    table = targets.verdicts(frame, campaign)
    assert set(table["verdict"]) == {verdict}
    assert table["difference"].tolist() == pytest.approx([np.mean(gains)] * len(table))
    assert table["low"].lt(table["difference"]).all()


def test_where_a_baseline_has_no_usable_frame_the_gain_is_told(campaign: CampaignInfo) -> None:
    table = targets.verdicts(
        broadcasts(campaign, lambda is_baseline, *_: 0.0 if is_baseline else 1.0), campaign
    )
    assert table["difference"].tolist() == [1.0] * len(table)
    assert set(table["verdict"]) == {"gain"}


def test_few_repetitions_have_no_interval_and_decide_nothing(campaign: CampaignInfo) -> None:
    frame = broadcasts(campaign, lambda is_baseline, *_: 0.0 if is_baseline else 1.0)
    table = targets.verdicts(frame[frame["repetition"] < 5], campaign)
    assert table["low"].isna().all()
    assert set(table["verdict"]) == {"undecided"}


def test_a_trial_that_timed_out_has_no_usable_frame_and_an_invalid_one_is_left_out(
    campaign: CampaignInfo,
) -> None:
    frame = broadcasts(campaign, lambda *_: 1.0)
    is_compared = frame["variant"] != baselines_of(campaign)[frame["variant"].iloc[-1]]
    ratios = [f"live.on_time_ratio_{target}ms" for target in TARGETS]
    for state, mean in (("timeout", 1 - 1 / REPETITIONS), ("invalid", 1.0)):
        one = is_compared & (frame["repetition"] == 0)
        changed = frame.assign(state=frame["state"].mask(one, state))
        changed.loc[one, ratios] = np.nan
        table = targets.verdicts(changed, campaign)
        assert table["share"].tolist() == pytest.approx([mean] * len(table)), state


def test_in_words_a_cell_has_the_baseline_then_each_variant_with_what_is_sure(campaign: CampaignInfo) -> None:
    def share(is_baseline: bool, target: int, _: int) -> float:
        return 0.5 if is_baseline else 0.9 if target == 100 else 0.1

    words = targets.in_words(targets.verdicts(broadcasts(campaign, share), campaign))
    assert words["network"].tolist() == ["few", "many"] * 2
    assert words["RTT"].tolist() == ["50 ms"] * 2 + ["100 ms"] * 2
    arms = len(baselines_of(campaign))
    assert set(words["100 ms"]) == {" / ".join(["50", *["90+"] * arms])}
    assert set(words["200 ms"]) == {" / ".join(["50", *["10−"] * arms])}


def test_a_pair_of_two_hosts_is_in_no_difference(campaign: CampaignInfo) -> None:
    frame = broadcasts(campaign, lambda is_baseline, _, turn: turn / 10 + (0.05 if is_baseline else 0))
    arms = baselines_of(campaign)
    elsewhere = ~frame["variant"].isin(arms) & (frame["repetition"] < 2)
    frame = frame.assign(engine="emulated", host=np.where(elsewhere, "two", "one"))
    table = targets.verdicts(frame, campaign)
    assert set(table["repetitions"]) == {REPETITIONS - 2}
    assert table["share"].to_numpy() == pytest.approx(np.arange(2, REPETITIONS).mean() / 10)


def test_in_words_a_variant_stands_beside_its_own_baseline_in_its_own_repetitions(filled: Filled) -> None:
    baselines = {"off": "", "a": "off", "b": "off", "c": "a"}
    labels = [
        Variant(label=label, implementation="rquic", options={}, baseline=not of, compared_with=of)
        for label, of in baselines.items()
    ]
    workload = Workload(label="live", name="live", parameters={}, metric="live.on_time_ratio_100ms")
    _, campaign = filled({}, variants=labels, workloads=[workload], points=NETWORKS[:1], repetitions=9)
    shares = {"off": [0.5] * 8 + [0.95], "a": [0.7] * 9, "b": [0.5] * 9, "c": [0.9] * 9}
    frame = pd.DataFrame(
        {"variant": label, "workload": "live", "point": 0, "repetition": number, "state": "ok"}
        | {"live.on_time_ratio_100ms": share, "live.on_time_ratio_200ms": share}
        for label, of_label in shares.items()
        for number, share in enumerate(of_label)
    )
    frame.loc[(frame["variant"] == "a") & (frame["repetition"] == 8), "state"] = "invalid"
    frame.loc[frame["variant"] == "b", "live.on_time_ratio_200ms"] = np.nan
    table = targets.verdicts(frame, campaign)
    words = targets.in_words(table).set_index("network").drop(columns="RTT")
    assert words.loc["all networks, beside off"].tolist() == ["50 to 55 / 70+ / 50", "50 / 70+ / ?"]
    assert words.loc["all networks, beside a"].tolist() == ["70 / 90+", "70 / 90+"]
    counts = targets.signs(table).set_index("variant")
    assert counts["2 to 3 RTT: + and −, of 1"].to_dict() == {"a": "1, 0", "b": "0, 0", "c": "1, 0"}
    assert counts["3 RTT and more: + and −"].to_dict() == {
        "a": "1, 0 of 1",
        "b": "0, 0 of 0",
        "c": "1, 0 of 1",
    }


def test_signs_are_counted_by_the_target_in_round_trips(campaign: CampaignInfo) -> None:
    def share(is_baseline: bool, target: int, _: int) -> float:
        return 0.5 if is_baseline else 0.9 if target == 100 else 0.1

    table = targets.verdicts(broadcasts(campaign, share), campaign)
    counts = targets.signs(table)
    arms = baselines_of(campaign)
    assert counts["variant"].tolist() == list(arms)
    # Two networks each at 50 and 100 ms; targets of 100 ms help and others harm.
    bands = [(0.5, 2), (2, 3), (3, np.inf)]
    for (name, cells), (low, high) in zip(counts.drop(columns="variant").items(), bands, strict=True):
        expected = {"+": 0, "−": 0, "all": 0}
        for rtt, target in product((50, 50, 100, 100), sorted(set(table["target_ms"]))):
            if low <= target / rtt < high and target / rtt > 0.5:
                expected["all"] += 1
                expected["+" if target == 100 else "−"] += 1
        assert str(name).endswith(f"of {expected['all']}")
        assert set(cells) == {f"{expected['+']}, {expected['−']}"}


def test_the_figure_has_a_panel_for_each_kind_of_network(campaign: CampaignInfo) -> None:
    frame = broadcasts(campaign, lambda is_baseline, target, _: (0.2 if is_baseline else 0.4) + target / 1e3)
    figure = figures.usable_over_targets(frame, campaign)
    assert [axes.get_title(loc="left") for axes in figure.axes] == ["few", "many"]
    for axes in figure.axes:
        lines = [line.get_ydata() for line in axes.lines if len(line.get_ydata()) == 3]
        # 1 to 2 round trips: 100 ms at 100 ms; 2 to 3: 100 at 50, 200 at 100; 3 to 5: 200 at 50
        assert [0.3, 0.35, 0.4] in [pytest.approx(np.asarray(line, float)) for line in lines]
    mpl.pyplot.close("all")


def test_no_variant_is_drawn_in_other_networks_than_the_others(campaign: CampaignInfo) -> None:
    frame = broadcasts(campaign, lambda *_: 0.5)
    shares = list(frame.filter(like="live.on_time"))
    frame.loc[frame["point"] % 4 > 1, shares] = 0.1  # the longer delay
    frame.loc[~frame["variant"].isin(baselines_of(campaign)) & (frame["point"] > 1), "state"] = "invalid"
    for axes in figures.usable_over_targets(frame, campaign).axes:
        for line in axes.lines:
            values = np.asarray(line.get_ydata(), float)
            assert len(values) < 3 or values[np.isfinite(values)] == pytest.approx(0.5)
    mpl.pyplot.close("all")


def test_without_live_video_there_is_nothing_to_draw(campaign: CampaignInfo) -> None:
    frame = broadcasts(campaign, lambda *_: 1.0)
    with pytest.raises(NothingToDraw, match="no target"):
        figures.usable_over_targets(frame.drop(columns=list(frame.filter(like="on_time"))), campaign)
