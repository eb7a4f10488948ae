"""A variant with FEC that sent nothing to repair with is named, with the number of its trials."""

from collections.abc import Callable
from typing import Any

import pytest

from fecbench.results.analysis import repair
from fecbench.results.store.database import Database
from fecbench.results.store.records import CampaignInfo, TrialRecord

Make = Callable[..., TrialRecord]


def task(fec: bool | None, of_server: bool | None = None) -> dict[str, Any]:
    """Return the part of a task that shows whether FEC is on."""
    return {"pairs": [{"client": {"fec": fec}, "server": {"fec": fec if of_server is None else of_server}}]}


def record(database: Database, campaign: CampaignInfo, make: Make, *runs: tuple[Any, ...]) -> None:
    """Trials of the second variant: a task, what client and server sent to repair with, and the state."""
    for repetition, (of_task, client, server, *state) in enumerate(runs):
        metrics = {"client": {"repair_sent": client}, "server": {"repair_sent": server}}
        fields = {"task": of_task, "metrics": metrics, "state": state[0] if state else "ok"}
        database.record(campaign.id, make(repetition, variant="rquic-xor", **fields))


def test_trials_with_fec_in_which_neither_end_sent_a_repair_packet_are_counted(
    database: Database, campaign: CampaignInfo, make: Make
) -> None:
    on = task(True)
    runs = [(on, 0.0, 0.0), (on, 0.0, 2.0), (on, 1.0, 0.0), (on, 0.0, 0.0), (on, 0.0, 0.0, "timeout")]
    record(database, campaign, make, *runs)
    assert repair.sentences(database, campaign) == ["rquic-xor sent no repair packet in 2 of 4 trials."]


def test_one_end_with_fec_is_enough(database: Database, campaign: CampaignInfo, make: Make) -> None:
    record(database, campaign, make, (task(False, True), 0.0, 0.0))
    assert repair.sentences(database, campaign) == ["rquic-xor sent no repair packet in 1 of 1 trial."]


@pytest.mark.parametrize("fec", [False, None], ids=["off", "not known"])
def test_nothing_is_said_of_variants_without_fec(
    database: Database, campaign: CampaignInfo, make: Make, fec: bool | None
) -> None:
    record(database, campaign, make, (task(fec), 0.0, 0.0))
    assert repair.sentences(database, campaign) == []


def test_nothing_is_said_where_each_trial_had_a_repair_packet(
    database: Database, campaign: CampaignInfo, make: Make
) -> None:
    record(database, campaign, make, (task(True), 0.0, 1.0), (task(True), 3.0, 0.0))
    assert repair.sentences(database, campaign) == []
