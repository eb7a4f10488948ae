"""What `fecbench replay` says of the two runs of a trial."""

import dataclasses

from results.store.records import State, StoredTrial, TrialKey, TrialRecord, VerdictLog
from runners.campaign.replay import Replay
from runners.commands.replay import comparison


def trial(state: State, bitmap: bytes) -> StoredTrial:
    record = TrialRecord(
        key=TrialKey("off", "download", 0, 0),
        state=state,
        reason="",
        started_at="2026-01-02T03:04:05+00:00",
        duration_s=1.0,
        verdicts=[VerdictLog("internet", "down", 8, bitmap.count(1), bitmap)],
    )
    return StoredTrial(id=1, campaign_id=1, start_id=None, attempt=1, record=record)


def test_a_replay_says_the_state_and_what_is_not_as_recorded() -> None:
    same = Replay(trial("ok", b"\x01"), trial("ok", b"\x01"), [])
    assert comparison(same) == "ok, as recorded"
    other_state = dataclasses.replace(same, replayed=trial("timeout", b"\x01"))
    assert comparison(other_state) == "NOT as recorded: the state was ok, and is timeout"
    other_losses = dataclasses.replace(same, replayed=trial("ok", b"\x02"))
    assert comparison(other_losses) == "NOT as recorded: packets met other verdicts"
