"""The comparison that `fecbench replay` prints of the two runs of a trial."""

import dataclasses
from typing import Any

from fecbench.results.store.digest import of_trial
from fecbench.results.store.records import State, StoredTrial, TrialKey, VerdictLog
from fecbench.runners.campaign.replay import Replay
from fecbench.runners.commands.replay import comparison
from tests.support import campaigns


def trial(state: State, bitmap: bytes, **others: Any) -> StoredTrial:
    verdicts = [VerdictLog("internet", "down", 8, bitmap.count(1), bitmap)]
    record = campaigns.trial(TrialKey("off", "download", 0, 0), state, verdicts=verdicts, **others)
    return StoredTrial(id=1, campaign_id=1, start_id=None, attempt=1, record=record)


def test_a_replay_says_the_state_and_what_is_not_as_recorded() -> None:
    same = Replay(trial("ok", b"\x01"), trial("ok", b"\x01"), [])
    assert comparison(same) == "ok, as recorded"
    other_state = dataclasses.replace(same, replayed=trial("timeout", b"\x01"))
    assert comparison(other_state) == "NOT as recorded: the state was ok, and is timeout"
    other_losses = dataclasses.replace(same, replayed=trial("ok", b"\x02"))
    assert comparison(other_losses) == "NOT as recorded: packets met other verdicts"
    none = dataclasses.replace(same.recorded, record=dataclasses.replace(same.recorded.record, verdicts=[]))
    for lacking, words in (
        (dataclasses.replace(same, recorded=none), "ok, but not compared: the verdicts"),
        (dataclasses.replace(same, replayed=none), "NOT as recorded: there are no verdicts"),
    ):
        assert not lacking.same and comparison(lacking).startswith(words)


def test_a_sample_without_tasks_is_compared_by_the_digest_that_it_has() -> None:
    replayed = of_metrics(freezes=1.0)
    checks = {"digest": of_trial(replayed.record), "metrics_digest": "of the metrics"}
    for digest, same in ((checks["digest"], True), ("another", False)):
        record = campaigns.trial(replayed.record.key, "ok", checks={**checks, "digest": digest})
        result = Replay(dataclasses.replace(replayed, record=record), replayed, [])
        assert result.same is same, comparison(result)


def of_metrics(**metrics: float) -> StoredTrial:
    return trial("ok", b"\x01", task={"backend": "virtual"}, metrics={"messages": metrics})


def test_in_virtual_time_another_metric_is_no_other_wire_and_a_new_one_is_no_difference() -> None:
    same = Replay(of_metrics(freezes=1.0), of_metrics(freezes=1.0, freeze_s=2.0), [])
    assert same.same
    assert comparison(same) == f"ok, digest {same.digests[0]}, as recorded"
    other = Replay(of_metrics(freezes=1.0), of_metrics(freezes=3.0), [])
    assert not other.same
    assert comparison(other) == (
        f"ok, digest {same.digests[0]}, as recorded; NOT as recorded: messages.freezes 3, was 1"
    )
    wire = Replay(of_metrics(), trial("ok", b"\x02", task={"backend": "virtual"}), [])
    assert not wire.same
    assert comparison(wire).startswith("ok, NOT as recorded: digest ")
