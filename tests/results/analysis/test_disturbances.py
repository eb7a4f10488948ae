"""Stalls and lateness are told by arm, and arms that stalled unequally are named."""

import math
from collections.abc import Callable
from html import unescape

import pytest

from fecbench.results.analysis import disturbances, frames
from fecbench.results.store.database import Database
from fecbench.results.store.records import CampaignInfo
from tests.results.pages import page_of

OFF, XOR = "rquic-off", "rquic-xor"


@pytest.fixture
def stalled(
    database: Database, new_campaign: Callable[..., CampaignInfo], make: Callable[..., object]
) -> Callable[..., CampaignInfo]:
    """Make a campaign of which trials of 1 s stalled for so many ms, by variant."""

    def stalled(engine: str = "local", **stalls_ms: list[float | None]) -> CampaignInfo:
        campaign = new_campaign(database, provenance={"engine": engine})
        for variant, of_trials in zip((OFF, XOR), stalls_ms.values(), strict=True):
            for repetition, stalled_ms in enumerate(of_trials):
                seconds = None if stalled_ms is None else stalled_ms / 1e3
                checks = {"stalled_s": seconds, "late_max_ms": 0.0 if repetition else 1.5, "stolen_s": 0.01}
                metrics = {"client": {"dct_s": 1.0}}
                database.record(
                    campaign.id, make(repetition, variant=variant, checks=checks, metrics=metrics)
                )
        return campaign

    return stalled


def test_what_a_machine_did_is_told_by_arm(database: Database, stalled: Callable[..., CampaignInfo]) -> None:
    campaign = stalled(off=[0, 0, 10, 20], xor=[30, 40, 50, None])
    table = disturbances.by_variant(frames.trials(database, campaign), campaign).set_index("variant")
    off, xor = table.loc[OFF], table.loc[XOR]
    assert (off["trials"], off["stalled"], off["late"]) == (4, 2, 1)
    assert (off["stalled_share"], off["stalled_max_ms"], off["late_max_ms"]) == pytest.approx(
        (0.005, 20, 1.5)
    )
    assert (xor["trials"], xor["stalled"], xor["stalled_max_ms"]) == (3, 3, pytest.approx(50))
    assert xor["stalled_share"] == pytest.approx(0.04)
    assert xor["stolen_max_ms"] == pytest.approx(10)


def test_arms_that_stalled_unequally_are_named_in_the_report(
    database: Database, stalled: Callable[..., CampaignInfo]
) -> None:
    campaign = stalled(off=[0, 0, 0], xor=[20, 20, 20])
    (warning,) = disturbances.warnings(
        disturbances.by_variant(frames.trials(database, campaign), campaign), campaign
    )
    assert warning.startswith(f"{XOR} stalled for 2.0 % of its time, {OFF} for 0.0 % (medians): ")
    page = unescape(page_of(database, campaign))
    assert "What the machine did to each variant" in page
    assert warning in page


def test_arms_that_stalled_alike_are_not(database: Database, stalled: Callable[..., CampaignInfo]) -> None:
    campaign = stalled(off=[20, 20, 20], xor=[25, 25, 25])
    table = disturbances.by_variant(frames.trials(database, campaign), campaign)
    assert disturbances.warnings(table, campaign) == []


def test_what_is_not_known_is_no_number(database: Database, stalled: Callable[..., CampaignInfo]) -> None:
    campaign = stalled(off=[None], xor=[None])
    table = disturbances.by_variant(frames.trials(database, campaign), campaign)
    assert table["trials"].tolist() == [0, 0]
    assert all(math.isnan(share) for share in table["stalled_share"])
    assert disturbances.warnings(table, campaign) == []


def test_virtual_trials_have_no_table(database: Database, stalled: Callable[..., CampaignInfo]) -> None:
    campaign = stalled("virtual", off=[0], xor=[0])
    assert disturbances.by_variant(frames.trials(database, campaign), campaign).empty
    assert "What the machine did to each variant" not in page_of(database, campaign)
