"""Points where enough messages are whole in time are counted, and drawn at what was lost there."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from fecbench.results import figures
from fecbench.results.analysis.keeping import kept, losses
from fecbench.results.figures.nothing import NothingToDraw
from fecbench.results.store.database import Database
from fecbench.results.store.records import CampaignInfo, Workload
from tests.support.campaigns import trial_row

METRIC = "messages.on_time_ratio_100ms"
WORKLOAD = "messages-datagram"
SHARES = {0: (1.0, 0.98), 1: (0.99, 0.97), 2: (0.5, 1.0)}  # of the two repetitions, by point
Filled = Callable[..., tuple[Database, CampaignInfo]]


@pytest.fixture
def campaign(filled: Filled) -> CampaignInfo:
    workload = Workload(label=WORKLOAD, name="messages", parameters={"direction": "up"}, metric=METRIC)
    _, filled_campaign = filled(
        {}, workloads=[workload], points=[{"owd_ms": owd_ms} for owd_ms in (10, 20, 30)]
    )
    return filled_campaign


@pytest.fixture
def trials(campaign: CampaignInfo) -> pd.DataFrame:
    return pd.DataFrame(
        trial_row(variant["label"], WORKLOAD, point, repetition)
        | {
            METRIC: share,
            "internet.up.lost": point,
            "internet.up.packets": 100,
            "internet.down.lost": 50,
            "internet.down.packets": 100,
        }
        for variant in campaign.variants
        for point, of_point in SHARES.items()
        for repetition, share in enumerate(of_point)
    )


def test_a_point_keeps_the_promise_when_its_statistic_over_repetitions_does(
    campaign: CampaignInfo, trials: pd.DataFrame
) -> None:
    table = kept(trials, campaign, METRIC).set_index(["variant", "point"])
    first = campaign.variants[0]["label"]
    assert campaign.statistic == "median"
    assert table.loc[first, "share"].round(3).tolist() == [0.99, 0.98, 0.75]
    assert table.loc[first, "kept"].tolist() == [True, False, False]


def test_a_point_of_too_few_repetitions_for_a_p95_is_neither_kept_nor_not(
    campaign: CampaignInfo, trials: pd.DataFrame
) -> None:
    assert kept(trials, replace(campaign, statistic="p95"), METRIC).empty


def test_a_time_limit_is_a_trial_without_messages_in_time_and_an_invalid_one_is_none(
    campaign: CampaignInfo, trials: pd.DataFrame
) -> None:
    of_first = (trials["variant"] == campaign.variants[0]["label"]) & (trials["point"] == 0)
    trials.loc[of_first & (trials["repetition"] == 1), ["state", METRIC]] = ["timeout", np.nan]
    trials.loc[trials["point"] == 1, "state"] = "invalid"
    table = kept(trials, campaign, METRIC).set_index(["variant", "point"])
    assert table.loc[campaign.variants[0]["label"], "share"].to_dict() == {0: 0.5, 2: 0.75}


def test_losses_are_those_on_the_way_of_the_messages(campaign: CampaignInfo, trials: pd.DataFrame) -> None:
    assert losses(trials, campaign)["losses"].tolist() == [0, 0.01, 0.02]


def test_losses_are_a_share_of_all_links(campaign: CampaignInfo, trials: pd.DataFrame) -> None:
    trials = trials.assign(**{"path2.up.lost": 0, "path2.up.packets": 300})
    assert losses(trials, campaign)["losses"].tolist() == [0, 1 / 400, 2 / 400]


def test_the_map_has_a_mark_a_point_and_counts_those_that_keep_it(
    campaign: CampaignInfo, trials: pd.DataFrame
) -> None:
    figure = figures.kept_map(trials, campaign, WORKLOAD)
    first = figure.axes[0]
    assert first.get_title(loc="left").endswith("1 of 3")
    (marks,) = first.collections
    full = [tuple(color[:3]) == (0, 0, 0) for color in marks.get_facecolor()]
    assert marks.get_offsets().tolist() == [[0, 10], [0.01, 20], [0.02, 30]]
    assert full == [True, False, False]


def test_no_variant_is_counted_in_other_networks_than_the_others(
    campaign: CampaignInfo, trials: pd.DataFrame
) -> None:
    """A variant that lacks the networks where it breaks its promise keeps it in more of the others."""
    lacks = (trials["variant"] == campaign.variants[0]["label"]) & (trials["point"] == 1)
    trials.loc[lacks, "state"] = "invalid"
    table = kept(trials, campaign, METRIC)
    assert [set(rows["point"]) for _, rows in table.groupby("variant")] == [{0, 2}] * 2


def test_a_network_in_which_every_trial_ran_into_its_time_limit_is_not_left_out(
    campaign: CampaignInfo, trials: pd.DataFrame
) -> None:
    trials.loc[trials["point"] == 2, ["state", METRIC]] = ["timeout", np.nan]
    figure = figures.kept_map(trials, campaign, WORKLOAD)
    assert figure.axes[0].get_title(loc="left").endswith("1 of 3")


def test_without_a_delay_that_varies_or_a_share_on_time_there_is_nothing_to_draw(
    campaign: CampaignInfo, trials: pd.DataFrame
) -> None:
    with pytest.raises(NothingToDraw, match=WORKLOAD):
        figures.kept_map(trials.assign(state="failed"), campaign, WORKLOAD)
