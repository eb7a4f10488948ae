"""The trials that met an outage, and the difference of two arms in that."""

from collections.abc import Callable

import numpy as np
import pandas as pd
import pytest

from fecbench.results.analysis import exposure
from fecbench.results.store.database import Database
from fecbench.results.store.records import CampaignInfo
from tests.results.analysis.outcomes import KEYS, OFF, VARIANTS, WORKLOADS, XOR, frame_with

Filled = Callable[..., tuple[Database, CampaignInfo]]
SHORT, LONG = WORKLOADS[1], WORKLOADS[0]


@pytest.fixture
def campaign(filled: Filled) -> CampaignInfo:
    return filled({})[1]


def frame_of(met: Callable[[pd.Series], bool], state: str = "ok") -> pd.DataFrame:
    """Return all trials of the design. The link dropped three packets in an outage of those for which `met`
    is true."""
    frame = frame_with(dict.fromkeys(KEYS, (state, 1.0)))
    dropped = [3.0 if met(row) else np.nan for _, row in frame.iterrows()]
    return frame.assign(**{"path1.up.outage_dropped": 0.0, "path1.down.outage_dropped": dropped})


def test_arms_that_met_the_same_outages_are_counted_and_give_no_warning(campaign: CampaignInfo) -> None:
    table = exposure.exposure(frame_of(lambda row: row["point"] == 1), campaign)
    assert list(table.columns) == list(exposure.COLUMNS)
    assert [*zip(table["workload"], table["variant"], strict=True)] == [
        (workload, variant) for workload in WORKLOADS for variant in VARIANTS
    ]
    assert set(table["trials"]) == {6}
    assert set(table["met_outage"]) == {3}
    assert exposure.sentences(table) == []


def test_an_arm_that_met_outages_which_the_other_was_spared_is_named_with_the_pairs(
    campaign: CampaignInfo,
) -> None:
    """The path may die after the end of the faster transfers."""
    frame = frame_of(lambda row: row["variant"] == XOR and row["workload"] == LONG and row["repetition"] < 2)
    table = exposure.exposure(frame, campaign)
    of_long = table[(table["workload"] == LONG) & (table["variant"] == XOR)].iloc[0]
    assert (of_long["met_outage"], of_long["pairs"], of_long["alone"], of_long["spared"]) == (4, 6, 4, 0)
    (warning,) = exposure.sentences(table)
    assert warning.startswith(f"{XOR} against {OFF}, {LONG}: in 4 of 6 pairs")
    assert f"{XOR} alone in 4, {OFF} alone in 0" in warning


def test_a_trial_that_did_not_get_through_met_an_outage_and_an_invalid_one_counts_nowhere(
    campaign: CampaignInfo,
) -> None:
    """A connection that dies in an outage fails, and its pair is in a ratio."""
    for state in ("timeout", "failed"):
        table = exposure.exposure(frame_of(lambda _: True, state), campaign)
        assert set(table["met_outage"]) == {6}
    assert exposure.exposure(frame_of(lambda _: True, "invalid"), campaign).empty


def test_campaigns_whose_links_are_never_out_have_no_table(filled: Filled) -> None:
    database, campaign = filled({})
    assert not exposure.may_be_out(campaign)
    assert exposure.of_campaign(database, campaign).empty
    assert exposure.exposure(frame_of(lambda _: False), campaign).empty
