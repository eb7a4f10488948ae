"""Metrics of messages follow from the records of both ends, and from the oracle's losses."""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fecbench.dropper.loss_model import LossModel
from fecbench.dropper.model import GilbertElliott, Pattern, Uniform, verdicts
from fecbench.runners.trial.judge import judge
from fecbench.runners.workloads.messages import noted as messages
from fecbench.runners.workloads.messages import traffic
from fecbench.runners.workloads.messages.noted import Messages, measure
from tests.runners.workloads.radio import BANDWIDTH_MBPS, OWD_MS, Radio, in_stream_order, lossless

WHOLE_MS = OWD_MS + 8 * 8 * 1048 / (1e3 * BANDWIDTH_MBPS)
"""Time of the link for a message of eight parts."""


def read(radio: Radio) -> Messages:
    return messages.read(radio.task(), radio.outcome())


def measured(radio: Radio) -> dict[str, float]:
    return measure(read(radio), radio.playout_ms, None)


def predicted(
    model: LossModel, seed: int, count: int, packets: int, interval_s: float
) -> tuple[float, int, int]:
    """Return the oracle's re-buffering in s by the thesis, received bytes, and messages that were lost in
    part.

    A lost datagram never comes. Any other datagram comes long before its message is read.
    """
    lost = verdicts(model, seed, count * packets)
    rebuffering_s, received_bytes, partial = 0.0, 0, 0
    for message in range(count):
        of_message = lost[message * packets : (message + 1) * packets]
        missing = int(of_message.sum())
        if missing:
            rebuffering_s += interval_s
        if 0 < missing < packets:
            partial += 1
        received_bytes += 1000 * (packets - missing)
    return rebuffering_s, received_bytes, partial


LOSSES: dict[str, tuple[dict[str, Any], LossModel]] = {
    "uniform": ({"model": "uniform", "p": 0.03}, Uniform(0.03)),
    "bursts": (
        {"model": "ge", "p": 0.01, "r": 0.2, "k": 0.98, "h": 0.1},
        GilbertElliott(0.01, 0.2, 0.98, 0.1),
    ),
    "pattern": (
        {"model": "pattern", "drop": [3, 4, 5, 100], "length": 150, "repeat": True},
        Pattern((3, 4, 5, 100), 150, True),
    ),
}


@pytest.mark.parametrize("kind", LOSSES)
def test_rebuffering_of_datagrams_is_what_the_oracle_predicts(kind: str) -> None:
    parameters, model = LOSSES[kind]
    for seed in (1, 2):
        metrics = measured(Radio(loss=parameters, seed=seed))
        rebuffering_s, received_bytes, partial = predicted(model, seed, 300, 8, 1 / 30)
        assert metrics["rebuffering_s"] == pytest.approx(rebuffering_s, abs=1e-4)
        assert metrics["rebuffering_2_s"] == pytest.approx(rebuffering_s, abs=1e-4)
        assert metrics["received_bytes"] == received_bytes
        assert metrics["messages_partial"] == partial
        assert metrics["rebuffering_s"] > 0.1, "something was lost"


def test_without_losses_every_latency_is_that_of_the_link() -> None:
    metrics = measured(lossless())
    for metric in ("latency_p50_ms", "latency_p95_ms", "latency_p99_ms", "latency_max_ms"):
        assert metrics[metric] == pytest.approx(WHOLE_MS, abs=0.002)
    assert (metrics["on_time_ratio_50ms"], metrics["on_time_ratio_100ms"]) == (1.0, 1.0)
    assert (
        metrics["rebuffering_s"],
        metrics["freezes"],
        metrics["messages_lost"],
        metrics["messages_late"],
    ) == (0,) * 4
    assert metrics["received_bytes"] == 300 * 8000


@settings(max_examples=15, deadline=None)
@given(
    seed=st.integers(0, 2**64 - 1),
    p=st.sampled_from([0.0, 0.01, 0.2, 0.9]),
    playouts=st.lists(st.floats(0, 500), min_size=2, max_size=8, unique=True),
)
def test_the_on_time_ratio_never_falls_as_the_playout_delay_grows(
    seed: int, p: float, playouts: list[float]
) -> None:
    playouts.sort()
    radio = Radio(
        loss={"model": "uniform", "p": p},
        seed=seed,
        timetable=traffic.regular(30, 3000, 2),
        playout_ms=tuple(playouts),
    )
    metrics = measure(read(radio), playouts, None)
    ratios = [metrics[f"on_time_ratio_{playout:g}ms"] for playout in playouts]
    assert ratios == sorted(ratios)
    assert all(0 <= ratio <= 1 for ratio in ratios)


def test_the_share_on_time_steps_from_0_to_1_at_the_latency_of_the_link() -> None:
    radio = lossless(playout_ms=(WHOLE_MS - 0.1, WHOLE_MS + 0.1))
    metrics = measured(radio)
    assert [metrics[f"on_time_ratio_{playout:g}ms"] for playout in radio.playout_ms] == [0.0, 1.0]


def test_latency_counts_from_when_a_message_was_due_not_from_when_it_was_handed_over() -> None:
    radio = lossless()
    for row in radio.rows:
        row.sent_s += 0.03
        row.arrived_s += 0.03
    metrics = measured(radio)
    assert metrics["latency_p50_ms"] == pytest.approx(30 + WHOLE_MS, abs=0.002)
    assert metrics["send_lag_max_ms"] == pytest.approx(30, abs=0.002)
    assert metrics["messages_sent_late"] == 300


def test_a_percentile_that_falls_on_a_lost_message_is_none() -> None:
    metrics = measured(Radio(loss={"model": "uniform", "p": 0.02}))
    lost = metrics["messages_lost"] / 300
    assert 0.05 < lost < 0.5, "by the seed"
    assert "latency_p50_ms" in metrics
    assert "latency_p95_ms" not in metrics
    assert "latency_p99_ms" not in metrics
    assert metrics["latency_max_ms"] < 30


def test_a_stream_receives_all_bytes_and_is_late_by_what_its_reader_waited_for() -> None:
    """The reader comes 100 ms after the first bytes of a message could have: message 10 waits for what it
    lost, and those behind it with it."""
    for delay_s, late in ((0.05, 0), (0.120, 1), (0.150, 2)):
        radio = Radio(loss={"model": "pattern", "drop": [80]}, delivery="reliable")
        in_stream_order(radio, delay_s)
        metrics = measured(radio)
        assert metrics["rebuffering_s"] == pytest.approx(late / 30, abs=1e-4)
        assert metrics["messages_late"] == late
        assert metrics["received_bytes"] == 300 * 8000
        assert metrics["messages_lost"] == 0


def test_what_comes_after_the_reader_went_on_is_lost_to_it_without_streams() -> None:
    def late_part(delivery: str) -> dict[str, float]:
        radio = lossless(delivery=delivery)
        next(row for row in radio.rows if (row.message, row.part) == (10, 3)).arrived_s += 0.15
        return measured(radio)

    skips, blocks = late_part("datagram"), late_part("stream")
    assert skips["received_bytes"] == 300 * 8000 - 1000
    assert blocks["received_bytes"] == 300 * 8000
    assert skips["messages_late"] == blocks["messages_late"] == 1


def test_a_smaller_buffer_waits_for_less() -> None:
    radio = lossless()
    next(row for row in radio.rows if (row.message, row.part) == (10, 3)).arrived_s += 0.06
    metrics = measured(radio)
    assert metrics["rebuffering_s"] == 0
    assert metrics["rebuffering_2_s"] == pytest.approx(1 / 30, abs=1e-4)
    assert metrics["received_2_bytes"] == metrics["received_bytes"] - 1000


def frozen(lost: set[int]) -> tuple[float, float]:
    radio = lossless()
    for row in radio.rows:
        row.lost = row.message in lost
    metrics = measured(radio)
    return metrics["freezes"], metrics["freeze_s"]


def test_a_lost_frame_is_no_freeze_and_five_in_a_row_are_one() -> None:
    assert frozen({100}) == (0, 0)
    assert frozen({100, 102, 104}) == (0, 0)
    # 33 ms and 150 ms more are 183 ms: five frames are gone for 200 ms.
    assert frozen(set(range(100, 104))) == (0, 0)
    count, seconds = frozen(set(range(100, 105)))
    assert (count, seconds) == (1, pytest.approx(0.2, abs=1e-3))
    count, seconds = frozen(set(range(100, 105)) | set(range(200, 230)))
    assert (count, seconds) == (2, pytest.approx(0.2 + 31 / 30, abs=1e-3))


def test_a_stream_that_dies_is_frozen_until_its_end() -> None:
    count, seconds = frozen(set(range(150, 300)))
    # The last frame stands for its own interval, too.
    assert (count, seconds) == (1, pytest.approx(151 / 30, abs=1e-3))
    count, seconds = frozen(set(range(1, 300)))
    assert (count, seconds) == (1, pytest.approx(300 / 30, abs=1e-3))
    count, seconds = frozen(set(range(100, 130)) | set(range(150, 300)))
    assert (count, seconds) == (2, pytest.approx((31 + 151) / 30, abs=1e-3))
    # Four lost at the end are no freeze, as they are none elsewhere.
    assert frozen(set(range(296, 300))) == (0, 0)


def test_a_stream_of_which_only_the_end_arrives_is_frozen_before() -> None:
    count, seconds = frozen(set(range(150)))
    assert (count, seconds) == (1, pytest.approx(150 / 30, abs=1e-3))
    assert frozen(set(range(5))) == (0, 0)  # 167 ms without a picture


@settings(max_examples=15, deadline=None)
@given(
    lost=st.sets(st.integers(0, 299), max_size=20),
    ends=st.lists(st.integers(1, 200), min_size=2, max_size=2, unique=True),
)
def test_a_stream_that_dies_earlier_is_frozen_for_no_less(lost: set[int], ends: list[int]) -> None:
    earlier, later = (frozen(lost | set(range(end, 300)))[1] for end in sorted(ends))
    assert earlier >= later - 1e-6


def test_nothing_that_arrives_makes_every_message_a_rebuffering() -> None:
    metrics = measured(Radio(loss={"model": "uniform", "p": 1.0}))
    assert metrics["rebuffering_s"] == pytest.approx(300 / 30, abs=1e-3)
    assert (metrics["received_bytes"], metrics["messages_lost"], metrics["messages_partial"]) == (0, 300, 0)
    assert metrics["on_time_ratio_200ms"] == 0
    assert (metrics["freezes"], metrics["freeze_s"]) == (1, pytest.approx(300 / 30, abs=1e-3))
    assert all(math.isfinite(value) for value in metrics.values())
    assert not [name for name in metrics if name.startswith("latency")]


def test_a_single_message_of_one_part_has_all_metrics() -> None:
    metrics = measured(lossless(timetable=[[0, 1]]))
    assert (metrics["on_time_ratio_50ms"], metrics["rebuffering_s"]) == (1, 0)


def test_what_a_campaign_keeps_has_a_row_for_each_message() -> None:
    radio = Radio(loss={"model": "pattern", "drop": list(range(16, 25))})
    table = messages.rows(read(radio)).to_pandas()
    assert list(table["message"]) == list(range(300))
    assert list(table["parts_arrived"][:5]) == [8, 8, 0, 7, 8]
    assert list(table["whole_s"][:4] < 0) == [False, False, True, True]
    assert table["first_s"][2] == -1
    assert np.allclose(table["t_s"], np.arange(300) / 30, atol=1e-6)


def test_overhead_is_what_the_sender_sent_over_what_the_messages_have() -> None:
    radio = Radio()
    metrics = judge(radio.task(), radio.outcome()).metrics["messages"]
    assert metrics["overhead"] == pytest.approx(1006 / 1000)
