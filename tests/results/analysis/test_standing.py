"""The standing of a campaign while it runs, in both kinds of database."""

from collections.abc import Callable

from fecbench.results.analysis.standing import by_cause, standing
from fecbench.results.store.database import Database
from fecbench.results.store.records import CampaignInfo, Group, TrialKey, TrialRecord

OFF, XOR = "rquic-off", "rquic-xor"
Make = Callable[..., TrialRecord]


def test_what_has_landed_is_counted_and_answered(
    database: Database, new_campaign: Callable[..., CampaignInfo], make: Make
) -> None:
    campaign = new_campaign(database, repetitions=1)
    before = standing(database, campaign)
    assert (before.done, before.has_ended) == (0, False)
    assert before.answers["points"].sum() == 0
    for variant, dct_s in ((OFF, 2.0), (XOR, 1.0)):
        key = TrialKey(variant, "download-10000", 0, 0)
        database.record(campaign.id, make(key=key, metrics={"client": {"dct_s": dct_s}}))
    after = standing(database, campaign)
    assert after.done == 2
    assert after.pulse != before.pulse
    row = after.answers.query("workload == 'download-10000' and variant == @XOR").iloc[0]
    assert (row["points"], row["median_ratio"]) == (1, 0.5)


def test_invalid_runs_are_told_by_cause_and_are_not_done(
    database: Database, new_campaign: Callable[..., CampaignInfo], make: Make
) -> None:
    campaign = new_campaign(database, repetitions=3)
    for number, reason in enumerate(("late by 3.1 ms", "late by 12 ms", "the oracle differs")):
        database.record(campaign.id, make(number, state="invalid", reason=reason))
    database.record(campaign.id, make(0))  # run again
    state = standing(database, campaign)
    assert state.done == 1
    assert state.invalid == {"late by … ms": 2, "the oracle differs": 1}


def test_a_campaign_has_ended_when_all_is_run_and_nothing_is_held(
    database: Database, new_campaign: Callable[..., CampaignInfo], make: Make
) -> None:
    campaign = new_campaign(database, repetitions=1, points=[{"owd_ms": 1}])
    start = database.start(campaign.id, "host", {})
    database.claim(campaign.id, start.id, Group("download-10000", 0, 0))
    for variant in (variant["label"] for variant in campaign.variants):
        for workload in (workload["label"] for workload in campaign.workloads):
            database.record(campaign.id, make(key=TrialKey(variant, workload, 0, 0)))
    assert not standing(database, campaign).has_ended
    database.give_up_all(start.id)
    assert standing(database, campaign).has_ended


def test_causes_differ_in_more_than_numbers() -> None:
    assert by_cause({"a 1": 2, "a 2": 3, "b": 4}) == {"a …": 5, "b": 4}
