"""LinkSettings: ranges, queue arithmetic, and the arguments that the wire is started with."""

import math
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from fecbench.topologies.link import (
    DIRECTIONS,
    Direction,
    DirectionSettings,
    LinkEnd,
    LinkSettings,
    QueueLimit,
    TopologyError,
)
from fecbench.topologies.topology import check_backend
from fecbench.topologies.wire_link import wire_arguments

bandwidths = st.floats(0.1, 10_000)
delays = st.floats(0, 10_000)


def test_a_queue_in_bdps_takes_the_rate_of_its_direction_and_the_delays_of_both() -> None:
    # 30 + 70 ms: 12,500 bytes for each Mbit/s
    link = LinkSettings(up=DirectionSettings(2, 30, queue_bdp=1), down=DirectionSettings(20, 70, queue_bdp=3))
    assert link.rtt_ms == 100
    assert link.queue_limit("up") == QueueLimit(bytes=25_000)
    assert LinkSettings.symmetric(10, 50).queue_limit("up") == QueueLimit(bytes=187_500), "1.5 by default"
    assert link.queue_limit("down") == QueueLimit(bytes=750_000)


def test_a_codel_queue_without_a_limit_has_that_of_linux_and_else_its_own() -> None:
    link = LinkSettings(
        up=DirectionSettings(2, 30, queue="codel"), down=DirectionSettings(20, 70, queue_bdp=3, queue="codel")
    )
    assert link.queue_limit("up") == QueueLimit(packets=1000)
    assert link.queue_limit("down") == QueueLimit(bytes=750_000)


OUTAGES: list[Any] = [
    3,
    "1",
    (1,),
    (1, 2, 3),
    (2, 1),
    (1, 1),
    (-1, 1),
    (1, "2"),
    (False, True),
    (0, math.inf),
]


def test_an_outage_is_from_one_time_to_a_later_one() -> None:
    for outage_s in OUTAGES:
        with pytest.raises(TopologyError, match=r"^down\.outage_s = .*: must be \[from, to\], in seconds"):
            LinkSettings(up=DirectionSettings(10, 5), down=DirectionSettings(10, 5, outage_s=outage_s))


directions = st.builds(
    DirectionSettings, st.floats(0.1, 10_000), st.floats(0, 10_000), queue_bdp=st.none() | st.floats(0, 1000)
)


@given(directions, directions)
def test_the_link_of_the_other_way_has_the_queues_of_this_one_exchanged(
    up: DirectionSettings, down: DirectionSettings
) -> None:
    this, other = LinkSettings(up, down), LinkSettings(up=down, down=up)
    assert this.queue_limit("up") == other.queue_limit("down")
    assert this.queue_limit("down") == other.queue_limit("up")


@given(bandwidths, delays, st.floats(0, 1000))
@example(705.0, 0.00011641177612365461, 738.0)
def test_a_queue_in_bdps_has_room_for_ten_full_frames_at_least(
    bandwidth_mbps: float, owd_ms: float, multiple: float
) -> None:
    limit = LinkSettings.symmetric(bandwidth_mbps, owd_ms, queue_bdp=multiple).queue_limit("up")
    exact = multiple * bandwidth_mbps * 1e6 / 8 * 2 * owd_ms / 1e3
    assert limit.packets is None
    assert limit.bytes is not None
    assert limit.bytes >= 15_140
    nanosecond = multiple * bandwidth_mbps * 1e6 / 8 * 2 / 1e9  # the delay is rounded to one
    assert math.isclose(limit.bytes, max(exact, 15_140), rel_tol=1e-4, abs_tol=1 + nanosecond)


@given(bandwidths, delays, st.integers(1514, 10**9))
def test_a_queue_in_bytes_or_packets_is_taken_as_it_is(bandwidth: float, owd: float, limit: int) -> None:
    packets = limit % 1000 + 1
    link = LinkSettings(
        up=DirectionSettings(bandwidth, owd, queue_bytes=limit),
        down=DirectionSettings(bandwidth, owd, queue_packets=packets),
    )
    assert link.queue_limit("up") == QueueLimit(bytes=limit)
    assert link.queue_limit("down") == QueueLimit(packets=packets)


def test_only_wire_and_simulators_have_outages_and_codel() -> None:
    plain = DirectionSettings(10, 50)
    for link, complaint in (
        (
            LinkSettings(up=replace(plain, outage_s=(0.5, 2)), down=plain),
            r"^path2\.up\.outage_s is \[0\.5, 2\]; the netem link",
        ),
        (
            LinkSettings(up=plain, down=replace(plain, queue="codel")),
            r"^path2\.down\.queue is 'codel'; the netem link has droptail only",
        ),
        (
            LinkSettings(up=plain, down=replace(plain, queue="dualpi2", ecn=True)),
            r"^path2\.down\.queue is 'dualpi2'; the netem link has droptail only",
        ),
    ):
        for backend in ("wire", "virtual"):
            check_backend(backend, "path2", link)
        with pytest.raises(TopologyError, match=complaint):
            check_backend("netem", "path2", link)


IMPOSSIBLE: list[tuple[dict[str, Any], str]] = [
    ({"bandwidth_mbps": 0}, "bandwidth_mbps = 0: "),
    ({"bandwidth_mbps": 10_001}, "bandwidth_mbps = 10001: "),
    ({"bandwidth_mbps": float("nan")}, "bandwidth_mbps = nan: "),
    ({"bandwidth_mbps": "10"}, "bandwidth_mbps = '10': "),
    ({"bandwidth_mbps": True}, "bandwidth_mbps = true: "),
    ({"owd_ms": -1}, "owd_ms = -1: "),
    ({"owd_ms": 10_001}, "owd_ms = 10001: "),
    ({"queue_bdp": -0.5}, "queue_bdp = -0.5: "),
    ({"queue_bytes": 1513}, "queue_bytes = 1513: "),
    ({"queue_bytes": 2000.0}, "queue_bytes = 2000.0: "),
    ({"queue_packets": 0}, "queue_packets = 0: "),
    ({"queue_bdp": 2, "queue_packets": 5}, "queue_bdp = 2 and queue_packets = 5 "),
    ({"queue": "red"}, "queue = 'red': must be one of droptail, codel, pie, fq_codel, dualpi2"),
    ({"queue": "dualpi2"}, "queue is 'dualpi2', which has to mark; write ecn = true"),
    ({"queue": "dualpi2", "ecn": 1}, "ecn = 1: must be true or false"),
]


GOOD = DirectionSettings(10, 20)


OF_ONE_DIRECTION = [
    (DirectionSettings(0, 20), GOOD, "up.bandwidth_mbps = 0: "),
    (GOOD, DirectionSettings(10, -1), "down.owd_ms = -1: "),
    (GOOD, DirectionSettings(10, 20, queue_packets=0), "down.queue_packets = 0: "),
    (
        DirectionSettings(10, 20, queue_bdp=1, queue_bytes=2000),
        DirectionSettings(10, 20, queue_bdp=1),
        "queue_bdp = 1 and up.queue_bytes = 2000 ",
    ),
    # What is wrong with both directions is not the fault of one.
    (DirectionSettings(0, 20), DirectionSettings(0, 30), "bandwidth_mbps = 0: "),
]


def test_an_impossible_setting_is_refused_in_one_line_that_names_it_and_its_direction() -> None:
    symmetric = [
        (one, one, named)
        for settings, named in IMPOSSIBLE
        for one in [DirectionSettings(**{"bandwidth_mbps": 1, "owd_ms": 1, **settings})]
    ]
    for up, down, named in (*symmetric, *OF_ONE_DIRECTION):
        with pytest.raises(TopologyError) as refusal:
            LinkSettings(up, down)
        assert str(refusal.value).startswith(named)
        assert "\n" not in str(refusal.value)


@given(bandwidths, delays, st.sampled_from(DIRECTIONS))
def test_the_wire_is_told_whole_bits_and_nanoseconds_outages_and_codel_of_each_direction(
    bandwidth_mbps: float, owd_ms: float, direction: Direction
) -> None:
    choice = DirectionSettings(bandwidth_mbps, owd_ms, queue_packets=3, queue="codel", outage_s=(0.5, 2))
    end = LinkEnd("/proc/1/ns/net", "x")
    words = wire_arguments(end, end, LinkSettings(**{"up": GOOD, "down": GOOD, direction: choice}), 1000)
    texts = {name: words[words.index(f"--{name}") + 1] for name in DIRECTIONS}
    assert [name for name, text in texts.items() if "codel" in text or "outage" in text] == [direction]
    lines = dict(line.split(" ", 1) for line in texts[direction].splitlines())
    assert abs(int(lines.pop("rate_bps")) - bandwidth_mbps * 1e6) <= 0.5
    assert abs(int(lines.pop("delay_ns")) - owd_ms * 1e6) <= 0.5
    assert lines == {"queue_packets": "3", "queue": "codel", "outage_ns": "500000000 2000000000"}
