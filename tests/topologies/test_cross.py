"""Cross traffic: full frames of others by a law of its own, in the same queue, counted apart."""

import ctypes
import itertools
from collections.abc import Iterator
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fecbench.topologies.link import DirectionSettings, LinkSettings, TopologyError
from fecbench.topologies.topology import build
from fecbench.topologies.written import written
from tests.topologies.law_of_jitter import drawn
from tests.topologies.test_link_core import (
    ACCEPTED,
    CODEL,
    DROPTAIL,
    DUALPI2,
    FQ_CODEL,
    MS,
    START_NS,
    Lane,
    core,
    run,
    timed,
)

__all__ = ["core"]

FRAME, FLOW = 1514, 2**32 - 1
S = 10**9


def times(lane: Lane) -> Iterator[int]:
    """Yield when frames of others come, in exact numbers."""
    off_ns = START_NS
    for stay in itertools.count(0, 2):
        on_ns = off_ns + (2 * lane.cross_off_ns * drawn(lane.cross_seed, stay) >> 32)
        off_ns = on_ns + (2 * lane.cross_on_ns * drawn(lane.cross_seed, stay + 1) >> 32)
        for sent in itertools.count():
            at_ns = on_ns + sent * FRAME * 8 * S // lane.cross_bps
            if at_ns >= off_ns:
                break
            yield at_ns


crossed = st.builds(
    Lane,
    rate_bps=st.integers(1_000_000, 100_000_000),
    delay_ns=st.integers(0, 20 * MS),
    queue_packets=st.integers(1, 40),
    queue=st.sampled_from([DROPTAIL, CODEL, FQ_CODEL, DUALPI2]),
    cross_bps=st.integers(500_000, 200_000_000),
    cross_on_ns=st.integers(1 * MS, 20 * MS),
    cross_off_ns=st.integers(0, 20 * MS),
    cross_seed=st.integers(0, 2**64 - 1),
)
sent_frames = st.lists(st.tuples(st.integers(0, 3 * MS), st.integers(14, 1514)), min_size=1, max_size=60)


@given(crossed, sent_frames, st.sampled_from([0, 5 * MS, 60 * MS]))
@settings(max_examples=200, deadline=None)
def test_a_link_with_cross_traffic_is_one_to_which_these_frames_come_too(
    core: ctypes.CDLL, lane: Lane, sent: list[tuple[int, int]], more_ns: int
) -> None:
    """Against the same link, into which the frames of others are handed by their law."""
    arrivals, lengths = timed(sent)
    end_ns = arrivals[-1] + more_ns
    crossing = list(itertools.takewhile(lambda at_ns: at_ns <= end_ns, times(lane)))
    # At one instant, those of others come first.
    both = sorted(
        [(at_ns, 0, n, FRAME) for n, at_ns in enumerate(crossing)]
        + [(at_ns, 1, n, lengths[n]) for n, at_ns in enumerate(arrivals)]
    )
    alone = replace(lane, cross_bps=0, cross_on_ns=0, cross_off_ns=0, cross_seed=0)
    flows = [FLOW * (1 - is_own) for _, is_own, *_ in both]
    lengths_of_both = [length for *_, length in both]
    right = run(core, alone, [at for at, *_ in both], lengths_of_both, end_ns=end_ns, flows=flows)
    result = run(core, lane, arrivals, lengths, end_ns=end_ns)
    own = [place for place, (_, is_own, _, _) in enumerate(both) if is_own]
    others = [place for place, (_, is_own, _, _) in enumerate(both) if not is_own]
    assert result.fates == [right.fates[place] for place in own]
    assert result.exits == [right.exits[place] for place in own]
    outcome = result.outcome
    assert outcome.conserved
    assert outcome.frames_in == len(arrivals)
    if not more_ns:  # behind the last of ours, others come only as far as they matter
        assert outcome.cross_frames == len(others)
        assert outcome.cross_dropped + outcome.queue_dropped == right.outcome.queue_dropped


def test_cross_traffic_has_its_rate_and_its_share_of_the_time(core: ctypes.CDLL) -> None:
    lane = Lane(
        50_000_000, queue_packets=100, cross_bps=10_000_000, cross_on_ns=S, cross_off_ns=3 * S, cross_seed=7
    )
    outcome = run(core, lane, [START_NS + 4000 * S], [100]).outcome
    assert outcome.cross_frames == pytest.approx(4000 / 4 * 10e6 / 8 / FRAME, rel=0.05)
    assert outcome.cross_dropped == 0


def test_frames_before_the_start_meet_none(core: ctypes.CDLL) -> None:
    lane = Lane(1_000_000, queue_packets=1, cross_bps=100_000_000, cross_on_ns=S)
    result = run(core, lane, [0, START_NS + 100 * MS], [100, 100], end_ns=START_NS + 100 * MS)
    assert result.fates[0] == ACCEPTED
    assert result.fates[1] != ACCEPTED


def test_the_text_of_a_direction_has_it() -> None:
    link = LinkSettings(DirectionSettings(10, 5), DirectionSettings(10, 5, cross_mbps=4, cross_off_s=0.5))
    assert link.drawn == ("up/cross", "down/cross")
    seeded = link.seeded({"up/cross": 1, "down/cross": 2})
    assert "cross" not in written(seeded, "up")
    assert "cross 4000000 1000000000 500000000 2\n" in written(seeded, "down")


@pytest.mark.parametrize(
    ("fields", "refusal"),
    [
        ({"cross_mbps": 0.001}, "cross.mbps = 0.001: must be a number from 0.01 to 10000"),
        ({"cross_mbps": -1}, "cross.mbps = -1: must be a number from 0.01 to 10000"),
        ({"cross_mbps": 1, "cross_on_s": 0}, "cross.on_s = 0: must be a number from 0.001 to 1000"),
        ({"cross_mbps": 1, "cross_off_s": -1}, "cross.off_s = -1: must be a number from 0 to 1000"),
        ({"cross_off_s": 1}, "cross.off_s: there is no cross.mbps"),
    ],
)
def test_what_is_no_cross_traffic_is_refused(fields: dict[str, float], refusal: str) -> None:
    settings = DirectionSettings(10, 5, **fields)  # type: ignore[arg-type]
    with pytest.raises(TopologyError) as raised:
        LinkSettings(settings, settings)
    assert str(raised.value).startswith(refusal)


def test_netem_refuses_it() -> None:
    settings = DirectionSettings(10, 5, cross_mbps=1)
    with pytest.raises(TopologyError, match=r"cross\.mbps|needs root"):
        build("single-path", {"internet": LinkSettings(settings, settings)}, "netem")
