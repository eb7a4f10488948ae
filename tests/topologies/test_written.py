"""A direction as text: C reads what Python means, in any order of lines, and refuses all else in a line."""

import ctypes
import random
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fecbench.topologies.jitter import LAWS, Jitter
from fecbench.topologies.link import DIRECTIONS, QUEUES, DirectionSettings, LinkSettings
from fecbench.topologies.trace import REPEATS, STEP, Trace
from fecbench.topologies.written import written_whole
from tests.topologies.test_link_core import WIRE, Settings

REFUSAL_BYTES = 600


class Written(ctypes.Structure):
    _fields_ = (
        ("settings", Settings),
        ("steps", ctypes.c_void_p),
        ("given", ctypes.c_uint32),
        ("refusal", ctypes.c_char * REFUSAL_BYTES),
    )


Read = Callable[[str | bytes], Written | str]


@pytest.fixture(scope="session")
def read(shared_library: Callable[..., ctypes.CDLL]) -> Read:
    """read(text): what C has read, or why it refuses."""
    library = shared_library(*(WIRE / f"{name}.c" for name in ("written", "schedule", "jitter")))
    library.written_read.restype = ctypes.c_bool

    def read(text: str | bytes) -> Written | str:
        result = Written()
        library.written_begin(ctypes.byref(result))
        buffer = ctypes.create_string_buffer(text.encode() if isinstance(text, str) else text)
        if library.written_read(ctypes.byref(result), buffer):
            return result
        return str(result.refusal.decode("ascii"))

    return read


whole_ms = st.integers(0, 10_000_000).map(lambda us: us / 1000)
jitters = st.builds(
    Jitter, st.integers(1, 10**7).map(lambda us: us / 1000), st.sampled_from(LAWS), st.integers(0, 2**64 - 1)
)
traces = st.builds(
    Trace.of,
    st.lists(st.integers(1, 10**6), min_size=3, max_size=3),
    st.lists(st.integers(1, 10**10), min_size=3, max_size=3),
    st.none() | st.lists(st.integers(0, 10**6), min_size=3, max_size=3),
    st.none() | st.lists(st.integers(0, 10**5), min_size=3, max_size=3),
    st.sampled_from(REPEATS),
    st.none() | st.integers(0, 2**62),
)
limits = (
    st.integers(1514, 10**10).map(lambda limit: {"queue_bytes": limit})
    | st.integers(1, 10**7).map(lambda limit: {"queue_packets": limit})
    | st.just({"queue_ms": 250})
)
directions = st.builds(
    lambda limit, **others: DirectionSettings(**limit, **others),
    limits,
    bandwidth_mbps=st.integers(100, 10**7).map(lambda kbps: kbps / 1000),
    owd_ms=whole_ms,
    queue=st.sampled_from([queue for queue in QUEUES if queue != "dualpi2"]),
    pie_seed=st.integers(0, 2**64 - 1),
    outage_s=st.none()
    | st.tuples(st.integers(0, 10**6 - 2), st.just(10**6 - 1)).filter(lambda o: o[0] < o[1]),
    trace=st.none() | traces,
    jitter=st.none() | jitters,
    reorder=st.booleans(),
    duplicate=st.just(0.0) | st.floats(0.001, 1),
    duplicate_seed=st.integers(0, 2**64 - 1),
    corrupt_p=st.just(0.0) | st.floats(0.001, 1),
    corrupt_seed=st.integers(0, 2**64 - 1),
    reorder_seed=st.integers(0, 2**64 - 1),
    mtu_bytes=st.integers(576, 1500),
)
effects = st.fixed_dictionaries(
    {},
    optional={
        "dualpi2": st.just(True),
        "overtaking": st.tuples(st.floats(0.001, 1), st.integers(1, 256)),
        "policer": st.tuples(st.integers(1, 1000), st.integers(1514, 10**9)),
        "shaper_burst_bytes": st.integers(1, 10**9),
        "mtu_icmp": st.just(True),
        "ecn_threshold_ms": st.integers(1, 10**9).map(lambda us: us / 1000),
        "codel_target_ms": st.integers(1, 10**9).map(lambda us: us / 1000),
    },
)


@settings(max_examples=200)
@given(directions, directions, effects, st.integers(0, 2**32))
def test_c_reads_each_direction_as_python_has_it_in_any_order_of_lines(
    read: Read, up: DirectionSettings, down: DirectionSettings, values: dict[str, Any], order: int
) -> None:
    link = LinkSettings(affected(up, values), down)
    for direction in DIRECTIONS:
        own, limit = link.of(direction), link.queue_limit(direction)
        lines = written_whole(link, direction).splitlines(keepends=True)
        random.Random(order).shuffle(lines)
        result = read("".join(lines))
        assert isinstance(result, Written), result
        c = result.settings
        assert (c.rate_bps, c.delay_ns) == (own.rate_bps, own.delay_ns)
        hits = (limit.bytes or 0, limit.packets or 0, limit.time_ns or 0)
        assert (c.queue_bytes, c.queue_packets, c.queue_ns) == hits
        copies = (round(own.duplicate * 2**32), own.duplicate_seed) if own.duplicate else (0, 0)
        assert (c.duplicate_threshold, c.duplicate_seed) == copies
        corrupted = (round(own.corrupt_p * 2**32), own.corrupt_seed) if own.corrupt_p else (0, 0)
        assert (c.corrupt_threshold, c.corrupt_seed) == corrupted
        overtaking = (round(own.reorder_p * 2**32), own.reorder_seed, own.reorder_by_packets)
        assert (c.overtake_threshold, c.overtake_seed, c.overtake_by) == (
            overtaking if own.reorder_p else (0, 0, 0)
        )
        assert c.mtu_bytes == (0 if own.mtu_bytes == 1500 else own.mtu_bytes)
        policer = (0, 0) if own.policer_bps is None else (own.policer_bps, own.policer_burst_bytes)
        assert (c.policer_bps, c.policer_burst_bytes) == policer
        assert c.shaper_burst_bytes == own.shaper_burst_bytes
        assert c.mtu_icmp == own.mtu_icmp
        assert (c.queue, c.reorder) == (QUEUES.index(own.queue), own.reorder)
        assert c.pie_seed == (own.pie_seed if own.queue == "pie" else 0)
        assert (c.ecn, c.ecn_threshold_ns) == (own.ecn, own.ecn_threshold_ns or 0)
        target_ms = own.codel_target_ms
        assert c.codel_target_ns == (0 if target_ms == 5 else round(target_ms * 1e6))
        assert (c.outage_from_ns, c.outage_to_ns) == (own.outage_ns or (0, 0))
        noise = own.jitter
        law = 0 if noise is None else 1 + LAWS.index(noise.law)
        of_noise = (0, 0) if noise is None else (noise.mean_ns, noise.seed)
        assert (c.jitter.law, c.jitter.mean_ns, c.jitter.seed) == (law, *of_noise)
        if own.trace is None:
            assert (c.count, c.steps, result.steps) == (0, None, None)
        else:
            expected = own.trace.steps(own.rate_bps, own.delay_ns)
            assert (c.count, c.steps) == (len(expected), result.steps)
            assert bytes((ctypes.c_char * expected.nbytes).from_address(c.steps)) == expected.tobytes()
            assert (c.repeat, c.offset_ns) == (REPEATS.index(own.trace.repeat), own.trace.offset_ns or 0)


def affected(direction: DirectionSettings, values: dict[str, Any]) -> DirectionSettings:
    """Return the direction with effects that need each other, or exclude another."""
    if overtaking := values.get("overtaking"):
        direction = replace(direction, reorder_p=overtaking[0], reorder_by_packets=overtaking[1])
    if policer := values.get("policer"):
        direction = replace(direction, policer_mbps=policer[0], policer_burst_bytes=policer[1])
    if threshold_ms := values.get("ecn_threshold_ms"):
        direction = replace(direction, ecn=True, ecn_threshold_ms=threshold_ms)
    if target_ms := values.get("codel_target_ms"):
        direction = replace(direction, queue="codel", codel_target_ms=target_ms)
    elif values.get("dualpi2"):
        direction = replace(direction, ecn=True, queue="dualpi2")
    icmp = values.get("mtu_icmp", False) and direction.mtu_bytes != 1500
    direction = replace(direction, mtu_icmp=icmp)
    burst = 0 if direction.trace else values.get("shaper_burst_bytes", 0)
    return replace(direction, shaper_burst_bytes=burst)


GOOD = {"rate_bps": "1000000", "delay_ns": "0", "queue_packets": "10"}
STEPS = "QEIPAAAAAABAQg8AAAAAAAAAAAAAAAAAAAAAAAAAAAA="
"""A step of a millisecond at 1 Mbit/s."""
NUMBERS = {
    "rate_bps": (1000, 10**11),
    "delay_ns": (0, 10**12),
    "queue_bytes": (1, 10**12),
    "queue_packets": (1, 10**9),
    "queue_ns": (1, 10**12),
}
REFUSED: list[tuple[dict[str, str | None], str]] = [
    ({"rate_bps": None}, "rate_bps is missing: must be a whole number from 1000 to 100000000000"),
    ({"delay_ns": None}, "delay_ns is missing: must be a whole number from 0 to 1000000000000"),
    ({"queue_packets": None}, "no limit is given; a queue has one limit: queue_bytes, queue_packets or"),
    ({"queue_bytes": "1514"}, "two limits are given; a queue has one limit"),
    ({"queue_packets": None, "queue_ns": "1"}, "queue_ns needs a schedule; without one, give queue_bytes or"),
    ({"queue": "red"}, "queue red: must be droptail, codel, pie, fq_codel or dualpi2"),
    ({"queue": "dualpi2"}, "queue dualpi2: must have ecn true, to mark"),
    ({"ecn": "1"}, "ecn 1: must be true or false"),
    ({"ecn_threshold_ns": "0"}, "ecn_threshold_ns 0: must be a whole number from 1 to 1000000000000"),
    ({"pie_seed": "-1"}, "pie_seed -1: must be a whole number from 0 to 18446744073709551615"),
    ({"duplicate": "4294967297 1"}, "duplicate 4294967297 1: must be a threshold from 0 to 4294967296"),
    ({"duplicate": "0.5 1"}, "duplicate 0.5 1: must be"),
    ({"duplicate": "5"}, "duplicate 5: must be"),
    ({"corrupt": "4294967297 1"}, "corrupt 4294967297 1: must be a threshold from 0 to 4294967296, then"),
    ({"overtake": "5 5"}, "overtake 5 5: must be a threshold from 0 to 4294967296, the seed of 64 bits"),
    ({"overtake": "5 5 0"}, "overtake 5 5 0: must be"),
    ({"overtake": "5 5 257"}, "overtake 5 5 257: must be"),
    ({"mtu_icmp": "true"}, "mtu_icmp true: must have mtu_bytes, to tell of it"),
    ({"mtu_bytes": "1300", "mtu_icmp": "1"}, "mtu_icmp 1: must be true or false"),
    ({"mtu_bytes": "67"}, "mtu_bytes 67: must be a whole number from 68 to 65521"),
    ({"policer": "999 5"}, "policer 999 5: must be a rate from 1000 to 100000000000 bit/s, then a burst"),
    ({"policer": "1000 0"}, "policer 1000 0: must be"),
    ({"shaper_burst_bytes": "0"}, "shaper_burst_bytes 0: must be a whole number from 1 to 1000000000"),
    (
        {"shaper_burst_bytes": "5", "schedule": "loop 0", "steps": STEPS},
        "shaper_burst_bytes is given with a schedule, whose steps have bursts of their own",
    ),
    ({"reorder": ""}, "reorder: must be true or false"),
    ({"reorder": "1"}, "reorder 1: must be true or false"),
    ({"outage_ns": "5"}, "outage_ns 5: must be FROM TO, from 0 to 1000000000000000"),
    ({"outage_ns": "5 5"}, "outage_ns 5 5: must be"),
    ({"outage_ns": "5 6 7"}, "outage_ns 5 6 7: must be"),
    ({"outage_ns": "0 1000000000000001"}, "outage_ns 0 1000000000000001: must be"),
    ({"jitter": "gauss 1 1"}, "jitter gauss 1 1: must be uniform, normal or pareto, the mean from 1"),
    ({"jitter": "normal"}, "jitter normal: must be"),
    ({"jitter": "normal 0 1"}, "jitter normal 0 1: must be"),
    ({"jitter": "pareto 10000000001 1"}, "jitter pareto 10000000001 1: must be"),
    ({"jitter": "pareto 1 18446744073709551616"}, "jitter pareto 1 18446744073709551616: must be"),
    ({"jitter": "pareto 1  7"}, "jitter pareto 1  7: must be"),
    ({"schedule": "loop 0"}, "schedule and steps must be given together"),
    ({"steps": STEPS}, "schedule and steps must be given together"),
    ({"schedule": "twice 0", "steps": STEPS}, "schedule twice 0: must be loop, hold or end, then the"),
    ({"schedule": "loop -1", "steps": STEPS}, "schedule loop -1: must be"),
    ({"steps": ""}, "steps: must be steps of 32 bytes, in Base64"),
    ({"steps": STEPS[:-4]}, f"steps {STEPS[:40]}: must be"),
    ({"steps": STEPS[:-1]}, f"steps {STEPS[:40]}: must be"),
    ({"steps": "=" + STEPS[1:]}, "steps =EIPAAA"),
    ({"steps": "-" + STEPS[1:]}, "steps -EIPAAA"),
    ({"schedule": "loop 0", "steps": "A" * 43 + "="}, "steps: each must end after the one before, within"),
    ({"bogus": "1"}, "bogus is no name: must be one of rate_bps, delay_ns, queue_bytes, queue_packets,"),
    ({"": "1"}, "an empty line is no name: must be one of rate_bps"),
    ({"Rate_bps": "1"}, "Rate_bps is no name: must be one of rate_bps"),
    ({"\x1b[31m\r\x00": "1"}, "?[31m? is no name: must be"),
    ({"ä" * 200: "1"}, "?" * 20 + " is no name: must be one of rate_bps"),
]


def text(values: dict[str, Any]) -> str:
    return "".join(f"{name} {value}\n" for name, value in values.items() if value is not None)


def test_what_is_no_link_is_refused_in_a_line_that_names_it_and_what_would_be_right(read: Read) -> None:
    assert isinstance(read(text(GOOD)), Written)
    for changes, complaint in REFUSED:
        refusal = read(text({**GOOD, **changes}))
        assert isinstance(refusal, str), changes
        assert refusal.startswith(complaint), refusal
        assert refusal.isprintable()
    assert read(text(GOOD) + "delay_ns 5\n") == "delay_ns is given twice; each name has one line"
    assert read("") == "rate_bps is missing: must be a whole number from 1000 to 100000000000"
    assert read(text(GOOD) + "\n") == read(text(GOOD) + "\nreorder true\n")


def test_a_number_is_taken_within_its_bounds_and_refused_beyond(read: Read) -> None:
    """A limit of the queue takes the place of the other, and one in time needs steps."""
    for name, (least, most) in NUMBERS.items():
        others = {**GOOD, "schedule": "hold 0", "steps": STEPS}
        if name.startswith("queue"):
            del others["queue_packets"]
        for value in (least, most):
            result = read(text({**others, name: value}))
            assert isinstance(result, Written), result
            assert getattr(result.settings, name) == value
        for wrong in (least - 1, most + 1, "", "x", "1.5", "+1", "0x10", " 5", "5 ", "5\t", 2**64, "9" * 30):
            right = f"must be a whole number from {least} to {most}"
            output = str(wrong).replace("\t", "?")
            start = f"{name} {output}" if output else name
            assert read(text({**others, name: wrong})) == f"{start}: {right}"


def test_a_text_needs_no_end_of_its_last_line(read: Read) -> None:
    assert isinstance(read(text(GOOD).rstrip("\n")), Written)


@settings(max_examples=300)
@given(st.binary(max_size=400), st.integers(0, 300), st.integers(0, 300))
def test_bytes_that_were_changed_anywhere_are_read_or_refused_in_one_printable_line(
    read: Read, other: bytes, first: int, length: int
) -> None:
    whole = text({**GOOD, "schedule": "loop 5", "steps": STEPS, "jitter": "pareto 5 7", "outage_ns": "1 2"})
    changed = whole.encode()[:first] + other + whole.encode()[first + length :]
    result = read(changed)
    assert isinstance(result, Written) or (result and result.isprintable() and len(result) < REFUSAL_BYTES)


def test_a_step_in_the_text_has_the_layout_of_python() -> None:
    assert np.zeros(1, STEP).nbytes == 32
