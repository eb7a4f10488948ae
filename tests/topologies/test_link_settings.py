"""LinkSettings: ranges, queue arithmetic, and the arguments that the wire is started with."""

import math
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from topologies.link import LinkEnd, LinkSettings, QueueLimit, TopologyError
from topologies.wire_link import wire_arguments

bandwidths = st.floats(0.1, 10_000)
delays = st.floats(0, 10_000)


def test_the_default_queue_is_one_and_a_half_bdp_of_the_round_trip() -> None:
    # 10 Mbit/s and 2 x 50 ms: the BDP is 125,000 bytes
    assert LinkSettings(10, 50).queue_limit == QueueLimit(bytes=187_500)


@given(bandwidths, delays, st.floats(0, 1000))
@example(705.0, 0.00011641177612365461, 738.0)
def test_a_queue_in_bdps_has_room_for_ten_full_frames_at_least(
    bandwidth_mbps: float, owd_ms: float, multiple: float
) -> None:
    limit = LinkSettings(bandwidth_mbps, owd_ms, queue_bdp=multiple).queue_limit
    exact = multiple * bandwidth_mbps * 1e6 / 8 * 2 * owd_ms / 1e3
    assert limit.packets is None
    assert limit.bytes is not None
    assert limit.bytes >= 15_140
    nanosecond = multiple * bandwidth_mbps * 1e6 / 8 * 2 / 1e9  # the delay is rounded to one
    assert math.isclose(limit.bytes, max(exact, 15_140), rel_tol=1e-4, abs_tol=1 + nanosecond)


@given(bandwidths, delays, st.integers(1514, 10**9))
def test_a_queue_in_bytes_or_packets_is_taken_as_it_is(bandwidth: float, owd: float, limit: int) -> None:
    assert LinkSettings(bandwidth, owd, queue_bytes=limit).queue_limit == QueueLimit(bytes=limit)
    packets = limit % 1000 + 1
    assert LinkSettings(bandwidth, owd, queue_packets=packets).queue_limit == QueueLimit(packets=packets)


@pytest.mark.parametrize(
    ("settings", "named"),
    [
        ({"bandwidth_mbps": 0, "owd_ms": 1}, "bandwidth_mbps is 0; "),
        ({"bandwidth_mbps": 10_001, "owd_ms": 1}, "bandwidth_mbps is 10001; "),
        ({"bandwidth_mbps": float("nan"), "owd_ms": 1}, "bandwidth_mbps is nan; "),
        ({"bandwidth_mbps": "10", "owd_ms": 1}, "bandwidth_mbps is '10'; "),
        ({"bandwidth_mbps": True, "owd_ms": 1}, "bandwidth_mbps is True; "),
        ({"bandwidth_mbps": 1, "owd_ms": -1}, "owd_ms is -1; "),
        ({"bandwidth_mbps": 1, "owd_ms": 10_001}, "owd_ms is 10001; "),
        ({"bandwidth_mbps": 1, "owd_ms": 1, "queue_bdp": -0.5}, "queue_bdp is -0.5; "),
        ({"bandwidth_mbps": 1, "owd_ms": 1, "queue_bytes": 1513}, "queue_bytes is 1513; "),
        ({"bandwidth_mbps": 1, "owd_ms": 1, "queue_bytes": 2000.0}, "queue_bytes is 2000.0; "),
        ({"bandwidth_mbps": 1, "owd_ms": 1, "queue_packets": 0}, "queue_packets is 0; "),
        (
            {"bandwidth_mbps": 1, "owd_ms": 1, "queue_bdp": 2, "queue_packets": 5},
            "queue_bdp = 2 and queue_packets = 5 ",
        ),
    ],
)
def test_an_impossible_setting_is_refused_in_one_line_that_names_it(
    settings: dict[str, Any], named: str
) -> None:
    with pytest.raises(TopologyError) as refusal:
        LinkSettings(**settings)
    assert str(refusal.value).startswith(named)
    assert "\n" not in str(refusal.value)


@given(bandwidths, delays)
def test_the_wire_is_told_whole_bits_and_nanoseconds(bandwidth_mbps: float, owd_ms: float) -> None:
    end = LinkEnd("/proc/1/ns/net", "x")
    words = wire_arguments(end, end, LinkSettings(bandwidth_mbps, owd_ms, queue_packets=3), 1000)
    values = dict(zip(words[:-1:2], words[1::2], strict=True))
    assert abs(int(values["--rate-bps"]) - bandwidth_mbps * 1e6) <= 0.5
    assert abs(int(values["--delay-ns"]) - owd_ms * 1e6) <= 0.5
    assert values["--queue-packets"] == "3"
    assert "--queue-bytes" not in values
