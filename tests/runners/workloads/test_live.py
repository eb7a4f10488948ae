"""The workload `live`: its parameters, and what the harness computes from the records of both ends."""

import math
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from fecbench.runners import workloads
from fecbench.runners.refusal import Refusal
from fecbench.runners.workloads.live import noted, source
from fecbench.runners.workloads.live.noted import Broadcast, Noted, Timetable
from fecbench.runners.workloads.workload import Surroundings

LIVE = workloads.find("live", "design")
AROUND = Surroundings(variant="A", link=None, timeout_s=60)


def _workload_of(**choices: Any) -> dict[str, Any]:
    """The `workload` of an assignment with these parameters."""
    LIVE.check(choices, ["A"], "design")
    return LIVE.transfers(choices, AROUND)[0].workload


def broadcast(frames: list[list[int]], arrived_ms: list[float | None], track: str = "video") -> Broadcast:
    """A broadcast of one track, and when each of its frames arrived; None: never."""
    pair = SimpleNamespace(workload={"tracks": [{"name": track, "delivery": "group", "frames": frames}]})
    timetable = Timetable.of(pair)  # type: ignore[arg-type]
    number = np.array([n for n, at in enumerate(arrived_ms) if at is not None])
    at_s = np.array([at / 1e3 for at in arrived_ms if at is not None])
    return Broadcast(timetable, Noted(np.arange(len(frames)), timetable.due_s), Noted(number, at_s), 0.1)


def test_the_broadcast_of_the_defaults_has_a_group_a_second_and_its_first_frame_is_the_largest() -> None:
    workload = _workload_of(duration_s=3)
    video, audio = workload["tracks"]
    assert (video["name"], audio["name"]) == ("video", "audio")
    assert [n for n, (_, _, begins) in enumerate(video["frames"]) if begins] == [0, 30, 60]
    assert min(size for _, size, begins in video["frames"] if begins) > max(
        size for _, size, begins in video["frames"] if not begins
    )
    assert [due for due, _, _ in audio["frames"][:3]] == [0, 20_000, 40_000]
    assert audio["priority"] > video["priority"]
    assert workload["deadline_us"] == 150_000
    assert workload == _workload_of(duration_s=3)
    assert workload != _workload_of(duration_s=3, source_seed=2)


def test_all_frames_are_between_half_and_one_and_a_half_of_their_mean() -> None:
    sizes = [size for _, size, begins in _workload_of(duration_s=50)["tracks"][0]["frames"] if not begins]
    assert 3500 <= min(sizes) <= max(sizes) <= 10_500
    assert abs(np.mean(sizes) - 7000) < 5 * 7000 / math.sqrt(12 * len(sizes))


@pytest.mark.parametrize(
    ("choices", "problem"),
    [
        ({"fps": 0}, "fps = 0"),
        ({"video_delivery": "file"}, "video_delivery = 'file'"),
        ({"protocol": "moq-transport-14"}, "protocol = 'moq-transport-14'"),
        (
            {"protocol": "moq-transport-22"},
            "protocol = 'moq-transport-22': needs priority = 'equal', and that is 'audio'",
        ),
        ({"playout_ms": []}, "playout_ms = []: must be 1 to 50 numbers"),
        ({"playout_ms": [100, 100]}, "each must be another"),
        ({"playout_ms": [0]}, "playout_ms = [0]: each"),
        ({"duration_s": 3600, "fps": 240}, "frames; 200000 are the most"),
        ({"gop": 1}, "no parameter 'gop'"),
        (
            {"repair_track": "21:20"},
            "repair_track = '21:20': needs video_delivery = 'parts', and that is 'group'",
        ),
        ({"repair_track": "20:21", "video_delivery": "parts"}, "must be N:K with 0 < K < N <= 255"),
        ({"repair_track": "21", "video_delivery": "parts"}, "repair_track = '21': must be N:K"),
        ({"repair_track": "256:20", "video_delivery": "parts"}, "must be N:K with 0 < K < N <= 255"),
        ({"repair_track": "1:0", "video_delivery": "parts"}, "must be N:K with 0 < K < N <= 255"),
    ],
)
def test_a_wrong_parameter_is_refused_by_its_name(choices: dict[str, Any], problem: str) -> None:
    with pytest.raises(Refusal, match="workload live") as refusal:
        _workload_of(**choices)
    assert problem in str(refusal.value)


def test_video_in_parts_may_have_a_repair_track_and_audio_has_none() -> None:
    video, audio = _workload_of(video_delivery="parts", repair_track="21:20")["tracks"]
    assert (video["delivery"], video["repair"]) == ("parts", [21, 20])
    assert "repair" not in audio
    assert "repair" not in _workload_of(video_delivery="parts")["tracks"][0]


def test_endpoints_are_told_of_a_protocol_other_than_moq_lite_alone() -> None:
    for others in ({"priority": "equal"}, {"audio_hz": 0}):
        assert _workload_of(protocol="moq-transport-22", **others)["protocol"] == "moq-transport-22"
    assert "protocol" not in _workload_of()
    assert "protocol" not in _workload_of(protocol="moq-lite-06")


def test_the_last_frame_has_to_be_due_before_the_timeout() -> None:
    with pytest.raises(Refusal, match="duration_s = 60, and timeout_s = 60: it must be more"):
        _workload_of(duration_s=60)


def test_the_compared_metric_is_of_the_first_playout_delay() -> None:
    assert LIVE.compared_with({"playout_ms": [300, 100]}) == "live.on_time_ratio_300ms"
    assert LIVE.compared_with({}) == LIVE.compared


FRAMES = [[0, 10, 1], [10_000, 10, 0], [20_000, 10, 0], [30_000, 10, 1], [40_000, 10, 0]]


def test_a_frame_is_usable_only_with_all_before_it_in_its_group() -> None:
    late_second = broadcast(FRAMES, [5, 200, 25, 35, 45])
    assert late_second.usable(0, 0.1).tolist() == [True, False, False, True, True]
    # It came at 200 ms, 190 ms after it was due.
    assert late_second.usable(0, 0.19).tolist() == [True] * 5
    late_first = broadcast(FRAMES, [5, 15, 25, None, 45])
    assert late_first.usable(0, 0.1).tolist() == [True, True, True, False, False]


def test_audio_needs_no_other_frame() -> None:
    assert broadcast(FRAMES, [5, 200, 25, 35, 45], "audio").usable(0, 0.1).tolist() == [
        True,
        False,
        True,
        True,
        True,
    ]


def test_a_run_of_unusable_frames_is_a_stall() -> None:
    measured = noted.measure(broadcast(FRAMES, [5, 200, 25, None, None]), [100, 500], 100)
    assert (measured["stalls"], measured["stall_s"]) == (1, pytest.approx(0.04))
    assert (measured["frames_lost"], measured["groups_cut"]) == (2, 1)
    assert (measured["on_time_ratio_100ms"], measured["on_time_ratio_500ms"]) == (0.2, 0.6)
    assert measured["overhead"] == 2
    assert measured["video_latency_max_ms"] == pytest.approx(190)
    # Three of five arrived, so the median did, and no higher percentile.
    assert measured["video_latency_p50_ms"] == pytest.approx(190)
    assert "video_latency_p95_ms" not in measured


def test_shares_grow_with_the_playout_delay_and_with_what_arrives() -> None:
    draw = np.random.default_rng(5)
    frames = [[10_000 * n, 10, int(n % 7 == 0)] for n in range(70)]
    arrived = [float(10 * n + 300 * draw.random()) for n in range(70)]
    delays = list(range(10, 400, 10))
    whole = noted.measure(broadcast(frames, list(arrived)), delays, None)
    shares = [whole[f"on_time_ratio_{delay}ms"] for delay in delays]
    assert shares == sorted(shares)
    assert shares[-1] == 1
    lacking = [None if n % 10 == 9 else at for n, at in enumerate(arrived)]
    less = noted.measure(broadcast(frames, lacking), delays, None)
    assert all(less[f"on_time_ratio_{delay}ms"] <= whole[f"on_time_ratio_{delay}ms"] for delay in delays)


def test_no_more_frames_are_made_than_due_before_the_end() -> None:
    assert source.count(30, 20) == 600
    assert all(due < 20e6 for due, _, _ in _workload_of()["tracks"][0]["frames"])
