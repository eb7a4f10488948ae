"""Whether two runs of a trial met the same losses, and which trials make pairs."""

import numpy as np
import pytest

from fecbench.results.store.records import State, TrialKey, TrialRecord, VerdictLog
from tests.kernels.pairs import Pair, pairs

KEY = TrialKey("off", "download-1000", 0, 0)


def log(verdicts: list[int], direction: str = "down") -> VerdictLog:
    bitmap = np.packbits(np.array(verdicts, np.uint8), bitorder="little").tobytes()
    return VerdictLog("internet", direction, len(verdicts), sum(verdicts), bitmap)


def record(*verdicts: VerdictLog, key: TrialKey = KEY, state: State = "ok") -> TrialRecord:
    return TrialRecord(key=key, state=state, reason="", started_at="", duration_s=1, verdicts=list(verdicts))


def same(one: VerdictLog, other: VerdictLog) -> bool:
    return Pair(KEY, (record(one), record(other))).same_losses


def test_losses_are_the_same_when_those_of_the_shorter_run_begin_the_longer_one() -> None:
    assert same(log([0, 1, 0]), log([0, 1, 0]))
    assert same(log([0, 1, 0]), log([0, 1, 0, 1, 1, 1, 1, 1, 1]))
    assert same(log([0, 1, 0, 1, 1, 1, 1, 1, 1]), log([0, 1, 0]))


def test_losses_differ_when_a_packet_of_both_runs_is_lost_in_one() -> None:
    assert not same(log([0, 1, 0]), log([0, 1, 1]))
    assert not same(log([0, 1, 0]), log([0, 0, 0, 1]))


def test_losses_differ_when_they_were_judged_in_another_direction() -> None:
    assert not same(log([0, 1]), log([0, 1], "up"))
    assert not Pair(KEY, (record(log([0])), record())).same_losses


def test_a_pair_is_ok_when_both_runs_are() -> None:
    assert Pair(KEY, (record(), record())).ok
    assert not Pair(KEY, (record(), record(state="invalid"))).ok
    assert not Pair(KEY, (record(state="timeout"), record())).ok


def test_pairs_have_the_same_trial_in_the_order_that_was_given() -> None:
    other_key = TrialKey("off", "download-1000", 1, 0)
    one = {key: record(key=key) for key in (other_key, KEY)}
    other = {key: record(key=key) for key in (KEY, other_key)}
    assert [(pair.key, pair.records) for pair in pairs(one, other)] == [
        (KEY, (one[KEY], other[KEY])),
        (other_key, (one[other_key], other[other_key])),
    ]


def test_a_trial_that_only_one_run_has_is_named() -> None:
    with pytest.raises(ValueError, match="1 trials are in one of the two only, such as off, download-1000"):
        pairs({KEY: record()}, {})
