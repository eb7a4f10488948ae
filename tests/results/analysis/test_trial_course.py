"""The course of a trial: what became of each packet is what the link and the loss model say."""

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fecbench.results.analysis import trial_course
from fecbench.results.analysis.trial_course import ARRIVED, DROPPED, LOST, MISSING, UNDER_WAY
from fecbench.results.store.records import SeriesTable, StoredTrial, TrialKey, VerdictLog
from fecbench.results.store.stored_series import of_endpoint
from tests.support import campaigns


def log_of(lost: list[bool], direction: str = "down") -> VerdictLog:
    """The verdicts of a loss model, as a dropper writes them."""
    bitmap = np.packbits(np.array(lost, dtype=np.bool_), bitorder="little").tobytes()
    return VerdictLog("internet", direction, len(lost), sum(lost), bitmap)


def met(truth: list[int]) -> tuple[np.ndarray, VerdictLog, int]:
    """Return what captures, model and link report of packets with these fates."""
    arrived = np.array([fate == ARRIVED for fate in truth], dtype=np.bool_)
    judged = [fate == LOST for fate in truth if fate in (ARRIVED, LOST)]
    return arrived, log_of(judged), truth.count(DROPPED)


TRUTHS = st.lists(st.sampled_from([ARRIVED, ARRIVED, LOST, DROPPED]), max_size=60)


@given(TRUTHS, st.integers(0, 3))
def test_as_many_packets_are_lost_and_dropped_as_the_record_counts(truth: list[int], under_way: int) -> None:
    """The last packets are on their way when the trial ends."""
    whole = truth + [UNDER_WAY] * under_way
    fates = trial_course.fates(*met(whole))
    assert [np.count_nonzero(fates == fate) for fate in range(5)] == [whole.count(fate) for fate in range(5)]
    assert ((fates == ARRIVED) == (np.array(whole) == ARRIVED)).all()


@given(st.lists(st.sampled_from([ARRIVED, LOST]), max_size=60))
def test_without_a_queue_that_drops_each_packet_is_told_apart(truth: list[int]) -> None:
    assert trial_course.fates(*met(truth)).tolist() == truth


def test_between_two_packets_that_came_those_of_the_model_are_told_from_those_of_another_gap() -> None:
    truth = [ARRIVED, LOST, ARRIVED, DROPPED, ARRIVED, LOST, DROPPED, ARRIVED]
    assert trial_course.fates(*met(truth)).tolist() == truth


def test_packets_that_fit_no_record_are_missing() -> None:
    """The model let more packets pass than came."""
    arrived, log, _ = met([ARRIVED, LOST, ARRIVED, ARRIVED])
    arrived[0] = False
    assert trial_course.fates(arrived, log, 0).tolist() == [MISSING, MISSING, ARRIVED, ARRIVED]


def repair_table(sent: list[int], endpoint: str = "server", connection: int = 0) -> SeriesTable:
    times = [0.5 * n for n in range(len(sent))]
    columns: dict[str, list[Any]] = {
        "t_s": times,
        "connection": [connection] * len(sent),
        "repair_sent": sent,
    }
    zeros = [0] * len(sent)
    columns |= {"repair_received": zeros, "packets_rebuilt": zeros}
    table = pa.table({name: pa.array(values, pa.float64()) for name, values in columns.items()})
    return of_endpoint(endpoint, trial_course.REPAIR, table)


@given(st.lists(st.integers(0, 3), min_size=1, max_size=40))
def test_there_is_a_time_for_each_packet_that_a_series_has_counted(steps: list[int]) -> None:
    counted = np.cumsum(steps).tolist()
    (repair,) = trial_course.repair_of([repair_table(counted)], {"server": 10.0})
    assert repair.sent_s.size == counted[-1]
    assert np.isin(repair.sent_s, 10 + 0.5 * np.flatnonzero(steps)).all()


def test_repair_of_which_there_was_none_is_known_to_be_none() -> None:
    (repair,) = trial_course.repair_of([repair_table([])])
    assert repair.sent_s.size == repair.rebuilt_s.size == 0


def test_a_series_of_the_same_name_with_other_columns_is_not_read() -> None:
    foreign = of_endpoint("server", trial_course.CONGESTION, pa.table({"t_s": [0.0], "gap_ms": [1.0]}))
    assert trial_course.congestion_of([foreign]) == []


def test_the_rtt_is_unknown_before_its_first_measurement() -> None:
    table = pa.table(
        {
            **{"t_s": [0.0, 0.1], "connection": [0, 0], "congestion_window_bytes": [9, 9]},
            **{"bytes_in_flight": [0, 5], "smoothed_rtt_ms": [0.0, 25.5]},
        }
    )
    (rows,) = trial_course.congestion_of([of_endpoint("server", trial_course.CONGESTION, table)])
    assert np.isnan(rows.smoothed_rtt_ms[0])
    assert rows.smoothed_rtt_ms[1] == 25.5


@pytest.mark.parametrize(("up", "down", "sender"), [(10, 9, "client"), (9, 10, "server")])
def test_who_sent_more_is_the_sender_and_what_was_not_recorded_is_said(
    up: int, down: int, sender: str
) -> None:
    links = {"internet": {"directions": {"up": {"bytes_in": up}, "down": {"bytes_in": down}}}}
    record = campaigns.trial(TrialKey("rlc", "download", 2, 0), links=links)
    trial = StoredTrial(id=7, campaign_id=1, start_id=None, attempt=1, record=record)
    fates = trial_course.of_record(trial, [repair_table([0, 1])])
    assert (fates.sender, fates.detail) == (sender, "trial 7 · rlc · download · point 2 · repetition 0")
    (note,) = fates.notes
    assert "packets" in note
    assert "congestion control" in note
    assert "repair" not in note
