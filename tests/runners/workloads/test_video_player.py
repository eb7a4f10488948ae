"""The player of DASH video: what it asks for, and when the picture stands still."""

from collections.abc import Callable, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fecbench.runners.workloads.video.abr import RULES
from fecbench.runners.workloads.video.ladder import Ladder, Level
from fecbench.runners.workloads.video.player import Player, Session, Settings, latencies_s
from fecbench.runners.workloads.video.session import Played, metrics
from tests.runners.workloads import viewer

RATES = (500.0, 1000.0, 2000.0, 4000.0)


def ladder(segments: int = 60, segment_s: float = 2.0) -> Ladder:
    """Segments of one size at each level."""
    levels = tuple(
        Level(kbps=rate, width=320, height=240, fps=25.0, sizes=(round(125 * rate * segment_s),) * segments)
        for rate in RATES
    )
    return Ladder(segment_s=segment_s, levels=levels)


def settings(**chosen: object) -> Settings:
    usual = {"abr": "throughput", "start_segments": 2, "buffer_s": 30.0}
    return Settings(**{**usual, **chosen})  # type: ignore[arg-type]


def play(
    took_s: Callable[[int, int], float], of: Ladder | None = None, **chosen: object
) -> tuple[Player, Session]:
    """A session in which the download of so many bytes, the number-th, takes so long."""
    player = Player(of or ladder(), settings(**chosen))
    number = 0
    while (request := player.request) is not None:
        done_s = request.at_s + took_s(number, request.bytes)
        if done_s > player.leaves_s:
            break
        player.arrived(request.at_s, request.at_s, done_s)
        number += 1
    return player, player.end()


def at_rate(kbps: float) -> Callable[[int, int], float]:
    return lambda _, size_bytes: 8e-3 * size_bytes / kbps


def test_the_highest_level_that_fits_is_reached_and_held_without_a_stall() -> None:
    for abr in ("throughput", "bola", "dynamic", "buffer"):
        _, session = play(at_rate(10_000), abr=abr)
        levels = [arrival.request.level for arrival in session.arrivals]
        assert levels[-20:] == [3] * 20, abr
        assert session.stalls == []
        assert session.played_s == pytest.approx(120)
    _, session = play(at_rate(3_500))
    assert {arrival.request.level for arrival in session.arrivals[2:]} == {2}


def test_over_half_the_lowest_rate_stalls_add_up_to_what_a_model_of_two_lines_says() -> None:
    _, session = play(at_rate(RATES[0] / 2), of=ladder(segments=30))
    # A segment takes twice as long as it plays: n come in 4 n s, and 2 (n - 1) s of that were shown.
    whole = 30  # in the 120 s after which the viewer leaves
    stalled_s = sum(stall.length_s for stall in session.stalls)
    assert len(session.arrivals) == whole
    assert session.startup_s == pytest.approx(8)
    assert stalled_s == pytest.approx(4 * whole - 8 - 2 * (whole - 1), rel=0.01)


def test_the_buffer_is_never_asked_to_hold_more_than_it_can() -> None:
    _, session = play(at_rate(50_000), buffer_s=10.0)
    assert max(arrival.buffer_after_s for arrival in session.arrivals) <= 10 + 1e-9
    waits = [
        later.requested_s - earlier.done_s
        for earlier, later in zip(session.arrivals, session.arrivals[1:], strict=False)
    ]
    assert max(waits) == pytest.approx(2 - 8e-3 * 1_000_000 / 50_000, abs=0.01)


def test_a_viewer_whose_video_never_comes_leaves() -> None:
    player, session = play(lambda *_: 1e6)
    assert session.startup_s is None
    measured = metrics(ladder(), settings(), Played(session, []))
    # A viewer who saw nothing is not one whose picture never stood still.
    assert not measured.keys() & {"startup_s", "stalls", "stall_s", "stall_ratio", "latency_p95_s"}
    assert measured["unplayed_s"] == ladder().duration_s
    assert session.left
    assert session.ended_s == player.leaves_s == 240
    assert session.played_s == 0


def test_live_video_without_losses_keeps_its_latency_and_is_never_asked_for_before_it_was_taken() -> None:
    _, session = play(at_rate(20_000), live_latency_s=2.0, start_segments=1)
    assert sorted(latencies_s(session, settings(live_latency_s=2.0)))[-1] < 2.05
    assert (session.stalls, session.skipped_s) == ([], 0.0)
    assert len(session.arrivals) == 240
    for number, arrival in enumerate(session.arrivals):
        assert arrival.requested_s >= 0.5 * (number + 1) - 2.0


def test_live_video_that_is_far_too_late_is_passed_over() -> None:
    late = settings(live_latency_s=2.0)
    _, session = play(lambda number, _: 12.0 if number == 40 else 0.1, live_latency_s=2.0)
    assert session.skipped_s > 4
    assert min(latencies_s(session, late)) == pytest.approx(2.0, abs=0.01)  # never earlier than wanted
    assert session.played_s + session.skipped_s == pytest.approx(120)
    latencies = list(latencies_s(session, late))
    assert max(latencies) > 10
    assert latencies[-1] == pytest.approx(2.0, abs=0.1)


def watched(rates_kbps: Sequence[float], **chosen: object) -> tuple[Session, int]:
    """A session whose link has these rates in turn, for 0.1 s each, and how often a second player was asked
    whether to give up what was on its way, and said the same."""
    player, number, compared = Player(ladder(segments=20), settings(abandon=True, **chosen)), 0, 0
    while (request := player.request) is not None:
        now_s, received = request.at_s, 0.0
        downloads: list[tuple[int, float, float]] = []
        gone = player.session.given_up
        before = bool(gone) and gone[-1].request.index == request.index
        while received < request.bytes and now_s < player.leaves_s:
            now_s += 0.1
            received += 0.1 * 125 * rates_kbps[number % len(rates_kbps)]
            number += 1
            if received >= request.bytes:
                break
            stops = player.progressed(int(received), now_s)
            downloads.append((int(received), now_s, player.buffer_s))
            level = viewer.given_up_for(list(RATES), 2.0, request.level, request.bytes, downloads)
            assert player.instead == (None if before else level)
            compared += 1
            if stops:
                player.gave_up(int(received), request.at_s, now_s)
                break
        else:
            break  # the viewer has left
        if player.request is request:
            player.arrived(request.at_s, request.at_s + 0.1, now_s)
    return player.end(), compared


def test_a_segment_that_comes_too_slowly_is_asked_for_at_a_level_that_the_rate_carries() -> None:
    fast, slow = [4000.0] * 40, [600.0] * 400
    session, compared = watched(fast + slow)
    first = session.given_up[0]
    assert compared > 100
    again = next(arrival for arrival in session.arrivals if arrival.request.index == first.request.index)
    assert again.request.level == 0 < first.request.level  # of 0.9 times 600 kbit/s
    assert again.requested_s == first.done_s


def test_nothing_is_given_up_with_much_video_at_hand_nor_at_the_lowest_level() -> None:
    session, _ = watched([20_000.0] * 60 + [1200.0] * 1000, abr="fixed", level=3, buffer_s=60.0)
    assert {item.request.level for item in session.given_up} <= {3}
    assert session.given_up == [] or session.given_up[0].done_s > 6
    session, _ = watched([100.0] * 50)
    assert session.given_up == []


@given(st.lists(st.floats(20, 9000), min_size=1, max_size=60), st.sampled_from(sorted(RULES)))
def test_time_adds_up_and_each_segment_is_given_up_once_at_most(rates: list[float], abr: str) -> None:
    session, _ = watched(rates, abr=abr, level=3 if abr == "fixed" else 0)
    given_up = [item.request.index for item in session.given_up]
    assert given_up == sorted(set(given_up))
    places = [place for _, place in session.path]
    assert places == sorted(places)
    assert [arrival.request.index for arrival in session.arrivals] == list(range(len(session.arrivals)))
    if session.startup_s is not None:
        assert session.ended_s is not None
        stalled_s = sum(stall.length_s for stall in session.stalls)
        assert session.played_s == pytest.approx(session.ended_s - session.startup_s - stalled_s, abs=1e-6)


times = st.lists(st.floats(0.01, 40), min_size=1, max_size=80)


@given(
    times,
    st.sampled_from(sorted(RULES)),
    st.sampled_from([0.0, 1.0, 3.5]),
    st.integers(1, 4),
    st.sampled_from([8.0, 30.0]),
)
def test_time_adds_up_whatever_the_network_does(
    taken: list[float], abr: str, latency_s: float, start: int, buffer_s: float
) -> None:
    player, session = play(
        lambda number, _: taken[number % len(taken)],
        of=ladder(segments=20),
        abr=abr,
        live_latency_s=latency_s,
        start_segments=start,
        buffer_s=buffer_s,
    )
    assert session.ended_s is not None and session.ended_s <= player.leaves_s + 1e-6
    for arrival in session.arrivals:
        assert arrival.buffer_s >= -1e-9 and arrival.buffer_after_s <= buffer_s + 1e-6
        assert 0 <= arrival.request.level < len(RATES)
    places = [place for _, place in session.path]
    assert places == sorted(places)
    assert 0 <= session.played_s + session.skipped_s <= 40 + 1e-6
    if session.startup_s is None:
        return
    stalled_s = sum(stall.length_s for stall in session.stalls)
    shown_s = session.ended_s - session.startup_s - stalled_s
    if latency_s == 0:
        assert session.played_s == pytest.approx(shown_s, abs=1e-6)
    else:  # it may play faster, by a tenth
        assert shown_s - 1e-6 <= session.played_s <= 1.1 * shown_s + 1e-6
