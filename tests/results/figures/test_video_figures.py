"""Figures of video: what they show is what sessions were."""

from __future__ import annotations

from itertools import pairwise

import pandas as pd
import pytest
from matplotlib.axes import Axes
from matplotlib.patches import Rectangle

from fecbench.results.figures import NothingToDraw, pictures, scores, session_over_time, sessions
from fecbench.runners.workloads.video.player import Player
from fecbench.runners.workloads.video.session import series
from tests.results.papers.test_rquic2021 import OFF, XOR
from tests.results.papers.test_rquic2021_video import sessions as planted
from tests.runners.workloads.test_video_player import RATES, ladder, settings

LEVELS = [{"kbps": 200.0}, {"kbps": 800.0}]


def campaign_of_sessions() -> tuple[pd.DataFrame, object]:
    frame, campaign = planted()
    frame["video.qoe_lin"] = frame["video.qoe_log"]
    frame["video.stall_ratio"] = 0.1
    return frame, campaign


def test_bars_of_pictures_hold_all_segments() -> None:
    frame, campaign = campaign_of_sessions()
    (axes,) = pictures(frame, campaign).axes  # type: ignore[arg-type]
    assert [label.get_text() for label in axes.get_yticklabels()] == [OFF, XOR]
    bars = [patch for patch in axes.patches if isinstance(patch, Rectangle)]
    in_order = sorted(bars, key=lambda bar: (round(bar.get_y()), bar.get_x()))
    assert [bar.get_width() for bar in in_order] == pytest.approx([0.9, 0.1, 0.2, 0.8])
    assert in_order[1].get_x() == pytest.approx(0.9)


def test_curves_of_sessions_count_those_that_timed_out_as_worst() -> None:
    frame, campaign = campaign_of_sessions()
    frame.loc[(frame["variant"] == XOR) & (frame["repetition"] < 4), ["state"]] = "timeout"
    quality, _ = sessions(frame, campaign).axes  # type: ignore[arg-type]
    _, with_timeouts = quality.get_lines()
    low, high = quality.get_xlim()
    values = [value for value in with_timeouts.get_xdata() if low < value < high]  # type: ignore[union-attr]
    assert len(values) == (frame["variant"] == XOR).sum() / 2


def test_scores_count_sessions_that_timed_out_as_worst_and_draw_each_variant_in_the_same_groups() -> None:
    frame, campaign = campaign_of_sessions()
    is_xor, number = frame["variant"] == XOR, frame["repetition"]
    frame = frame.assign(id=range(len(frame)))
    frame.loc[is_xor & (number < 2), "state"] = "timeout"
    frame.loc[is_xor & (number == 3), "state"] = "invalid"
    ok = frame[frame["state"] == "ok"]
    by_trial = dict(zip(ok["id"], 1 + ok["repetition"] / 10, strict=True))
    (axes,) = scores(by_trial, frame, campaign).axes  # type: ignore[arg-type]
    low, high = axes.get_xlim()
    whole, with_timeouts = (
        sorted({round(float(x), 6) for x in line.get_xdata() if low < x < high}) for line in axes.get_lines()
    )
    repetitions = sorted(set(number) - {3})
    assert whole == pytest.approx([1 + repetition / 10 for repetition in repetitions])
    assert with_timeouts == pytest.approx(
        [1 + repetition / 10 for repetition in repetitions if repetition > 1]
    )
    (_, of_timeouts) = axes.get_lines()
    shares = dict(zip(of_timeouts.get_xdata(), of_timeouts.get_ydata(), strict=True))  # type: ignore[arg-type]
    assert max(shares.values()) == 1
    first = min(share for x, share in shares.items() if low < x < high)
    assert first == pytest.approx(3 / len(repetitions))


def test_a_session_is_empty_from_the_beginning_of_a_stall_to_its_end() -> None:
    arrived = pd.DataFrame(
        {
            "requested_s": [0.0, 1.0, 2.0],
            "done_s": [1.0, 2.0, 9.0],
            "buffer_s": [0.0, 2.0, 0.0],
            "buffer_after_s": [2.0, 4.0, 2.0],
            "level": [0, 1, 1],
            "estimate_kbps": [300.0, 400.0, 500.0],
        }
    )
    stalls = pd.DataFrame({"t_s": [0.0, 4.0], "length_s": [2.0, 3.0]})
    above, _ = session_over_time(arrived, stalls, LEVELS, 7).axes
    (line,) = above.get_lines()
    assert list(zip(line.get_xdata(), line.get_ydata(), strict=True)) == [  # type: ignore[arg-type]
        (1.0, 0.0),
        (1.0, 2.0),
        (2.0, 2.0),
        (2.0, 4.0),
        (6.0, 0.0),
        (9.0, 0.0),
        (9.0, 2.0),
    ]
    assert grey_in(above) == [(0.0, 2.0), (6.0, 3.0)]


def test_a_stall_of_live_video_stands_at_its_time() -> None:
    """A player that catches up, or skips, has seen more of the video by then than time has passed."""
    player = Player(ladder(), settings(live_latency_s=1.0, start_segments=1))
    times = []
    while (request := player.request) is not None and len(times) < 40:
        done_s = request.at_s + (8.0 if len(times) in (9, 25) else 0.3)
        player.arrived(request.at_s, request.at_s, done_s)
        times.append((done_s, len(player.session.stalls)))
    tables = series(player.end())
    arrived, stalls = (tables["client", name].to_pandas() for name in ("segments", "stalls"))
    ends_s = [done_s for (_, before), (done_s, after) in pairwise(times) if after > before]
    above, _ = session_over_time(arrived, stalls, [{"kbps": rate} for rate in RATES], 7).axes
    drawn_s = [begin_s + length_s for begin_s, length_s in grey_in(above)[1:]]
    assert len(ends_s) > 1 and drawn_s[: len(ends_s)] == pytest.approx(ends_s)


def grey_in(axes: Axes) -> list[tuple[float, float]]:
    """The grey parts, each with its beginning and its length."""
    return [(patch.get_x(), patch.get_width()) for patch in axes.patches if isinstance(patch, Rectangle)]


def test_without_a_session_there_is_nothing_to_draw() -> None:
    frame, campaign = campaign_of_sessions()
    with pytest.raises(NothingToDraw):
        pictures(frame.assign(state="failed"), campaign)  # type: ignore[arg-type]
