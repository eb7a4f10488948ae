"""A netem link's configuration is what the kernel says, but for the digits that tc does not show."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from fecbench.topologies.link import LinkError
from fecbench.topologies.link_report import DirectionConfiguration
from fecbench.topologies.netem_shown import configuration

# Verbatim of iproute2 6.1, of "delay 33333.333us rate 300001bit" on Linux 6.1, and of such a shaper on 6.18.
LINE = (
    '[{"kind":"netem","handle":"1:","root":true,"refcnt":2,"options":{"limit":1000000000,"delay":{"delay":0.033332,'
    '"jitter":0,"correlation":0},"rate":{"rate":37500,"packetoverhead":0,"cellsize":0,"celloverhead":0},'
    '"ecn":false,"gap":0}}]'
)
QUEUE = (
    '[{"kind":"tbf","handle":"1:","root":true,"refcnt":3,"options":{"rate":37500,"burst":"1517b/1","mpu":0,'
    '"burst_raw":"9a6b3","lat":759521,"limit":30000,"linklayer":"ethernet"}}]'
)
ASKED = DirectionConfiguration(rate_bps=300_001, delay_ns=33_333_333, queue_bytes=30_000, burst_bytes=1518)


def changed(output: str, change: Callable[[dict[str, Any]], object]) -> str:
    qdiscs = json.loads(output)
    change(qdiscs[0]["options"])
    return json.dumps(qdiscs)


def test_what_is_shown_as_what_was_asked_would_be_is_as_asked() -> None:
    assert configuration(ASKED, QUEUE, LINE) == ASKED


def test_a_seed_that_nothing_is_drawn_with_is_no_more_than_delay_and_rate() -> None:
    line = changed(LINE, lambda options: options.update(seed=6904211290437561227))
    assert configuration(ASKED, QUEUE, line) == configuration(ASKED, QUEUE, LINE)


def test_no_delay_is_none() -> None:
    line = changed(LINE, lambda options: options.pop("delay"))
    assert configuration(ASKED, QUEUE, line).delay_ns == 0
    assert configuration(ASKED.model_copy(update={"delay_ns": 0}), QUEUE, line).delay_ns == 0


def test_another_rate_of_either_stands_as_it_is_shown() -> None:
    slow = changed(QUEUE, lambda options: options.update(rate=37_499, burst_raw="9a6c4"))
    assert configuration(ASKED, slow, LINE).rate_bps == 299_992
    fast = changed(LINE, lambda options: options["rate"].update(rate=37_501))
    assert configuration(ASKED, QUEUE, fast).rate_bps == 300_008
    without = changed(LINE, lambda options: options.pop("rate"))
    assert configuration(ASKED, QUEUE, without).rate_bps == 0


def test_a_queue_of_packets_is_the_one_below_the_shaper() -> None:
    inner = {"kind": "pfifo", "handle": "10:", "parent": "1:1", "options": {"limit": 41}}
    expected = ASKED.model_copy(update={"queue_bytes": None, "queue_packets": 40})
    output = configuration(expected, json.dumps([*json.loads(QUEUE), inner]), LINE)
    assert (output.queue_bytes, output.queue_packets) == (None, 41)


SHOWN: list[tuple[int, float]] = [
    # What iproute2 6.1 showed of these delays.
    *((10_000, 9e-06), (100_125, 9.9e-05), (1_000, 0), (30_000_000, 0.03), (1_234_567_891, 1.23457)),
    # What it does since 6.9, with TCA_NETEM_LATENCY64: every nanosecond is kept.
    *((10_000, 1e-05), (100_125, 0.000100125), (33_333_333, 0.0333333)),
    # 1.023 × 1000 is less than 1023.
    (1023, 1.022e-06),
]


OTHER: list[tuple[int, float]] = [
    *((33_333_333, 0.033334), (33_333_333, 0.033333), (33_333_333, 0.033331), (33_333_333, 0.0333334)),
    *((10_000, 7e-06), (10_000, 8e-06), (10_000, 1.1e-05), (1_234_567_891, 1.23458), (1_000_000, 0)),
]


def test_delays_are_shown_with_fewer_digits_and_another_delay_stands_as_it_is_shown() -> None:
    for asked_ns, shown_s in (*SHOWN, *OTHER):
        line = changed(LINE, lambda options, shown_s=shown_s: options["delay"].update(delay=shown_s))
        output = configuration(ASKED.model_copy(update={"delay_ns": asked_ns}), QUEUE, line).delay_ns
        expected = asked_ns if (asked_ns, shown_s) in SHOWN else round(shown_s * 1e9)
        assert output == expected, (asked_ns, shown_s)


LINES_THAT_DO_MORE: list[tuple[dict[str, Any], str]] = [
    ({"loss-random": {"loss": 0.01, "correlation": 0}}, "loss-random"),
    ({"duplicate": {"duplicate": 0.01, "correlation": 0}, "gap": 5}, "duplicate, gap"),
    ({"delay": {"delay": 0.033332, "jitter": 0.001, "correlation": 0}}, "jitter"),
    ({"rate": {"rate": 37500, "packetoverhead": 20, "cellsize": 0, "celloverhead": 0}}, "packetoverhead"),
    (
        {"rate": {"rate": 37500, "packetoverhead": 0, "cellsize": 53, "celloverhead": 5}},
        "celloverhead, cellsize",
    ),
    ({"slot": {"min-delay": 0.3, "max-delay": 0.3, "packets": 0, "bytes": 0}}, "slot"),
    ({"ecn": True}, "ecn"),
]


# Verbatim of the same tc, after "overhead 4" or such was added.
SHAPERS_THAT_DO_MORE: list[tuple[dict[str, Any], str]] = [
    ({"burst": "1521b/1", "burst_raw": "9ad36", "lat": 759414, "overhead": 4}, "overhead"),
    ({"mpu": 64}, "mpu"),
    ({"mtu": "1604b/1", "mtu_raw": "30f34"}, "mtu, mtu_raw"),
    ({"linklayer": "atm"}, "linklayer"),
]


BURST = {"burst": "1599b/1", "burst_raw": "a2c2a", "lat": 757334}


def test_what_does_more_or_is_another_qdisc_is_refused_with_what_it_does() -> None:
    def shown(qdisc: str, more: dict[str, Any]) -> str:
        return changed(qdisc, lambda options: options.update(more))

    for queue, line, complaint in (
        *(
            (QUEUE, shown(LINE, more), f"^netem does more than delay and serialize: {named}$")
            for more, named in LINES_THAT_DO_MORE
        ),
        (QUEUE, shown(LINE, {"limit": 1000}), r"^netem's limit is 1000: must be 1000000000$"),
        *(
            (shown(QUEUE, more), LINE, f"^tbf does more than shape: {named}$")
            for more, named in SHAPERS_THAT_DO_MORE
        ),
        (shown(QUEUE, BURST), LINE, r"^tbf lets out 1600 bytes at once: must be 1518$"),
        *(
            (queue, line, r"^the link has the qdiscs .*: must be (tbf|netem)$")
            for queue, line in (("[]", LINE), (LINE, LINE), (QUEUE, "[]"), (QUEUE, QUEUE))
        ),
    ):
        with pytest.raises(LinkError, match=complaint):
            configuration(ASKED, queue, line)
