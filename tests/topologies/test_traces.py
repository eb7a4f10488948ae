"""Traces of links: their files, what they carry at most, and made ones."""

from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow import parquet

from fecbench.topologies import link_traces
from fecbench.topologies import trace as trace_module
from fecbench.topologies.link import FULL_FRAME_BYTES, DirectionSettings, LinkSettings, TopologyError
from fecbench.topologies.rate import ConstantRate, together
from fecbench.topologies.trace import Trace, TraceError, TraceRate
from tests.topologies import law_of_schedules as law
from tests.topologies.law_of_schedules import ENDS, HOLDS, LOOPS, Step, Timeline

REPEATS = {"loop": LOOPS, "hold": HOLDS, "end": ENDS}
MS = 1000
CONSTANT_BPS = 3_000_000

some_traces = st.builds(
    lambda rows, repeat: Trace.of(
        tuple(row[0] for row in rows),
        rate_bps=tuple(row[1] for row in rows),
        burst_bytes=tuple(row[2] for row in rows),
        repeat=repeat,
    ),
    st.lists(
        st.tuples(
            st.integers(1, 20 * MS), st.just(0) | st.integers(1000, 10**8), st.just(0) | st.integers(1, 5000)
        ),
        min_size=1,
        max_size=5,
    ).filter(lambda rows: any(row[1] or row[2] for row in rows)),
    st.sampled_from(sorted(REPEATS)),
)


def timeline(trace: Trace, until_ns: int) -> Timeline:
    steps = [Step(end_ns, *rest) for end_ns, *rest in trace.steps(CONSTANT_BPS, 0).tolist()]
    steps = [
        replace(step, keep_ns=step.keep_ns - before.keep_ns)
        for before, step in pairwise([Step(0, 0), *steps])
    ]
    return Timeline(steps, REPEATS[trace.repeat], until_ns, Step(1, CONSTANT_BPS))


@given(some_traces, st.floats(0, 0.1), st.lists(st.floats(0, 0.2), min_size=1, max_size=5))
@settings(max_examples=50, deadline=None)
def test_no_window_of_a_trace_carries_more_than_its_rate_says_and_one_carries_that(
    trace: Trace, lasts_s: float, begins_s: list[float]
) -> None:
    rate, lasts_ns = TraceRate(trace, CONSTANT_BPS), round(lasts_s * 1e9)
    most = rate.most_bytes(1, 1 + lasts_s)
    result = timeline(trace, 10**9)
    edges = [0, *(end for end in result.ends if end < 5 * 10**8)]
    begins = [round(at * 1e9) for at in begins_s] + edges + [max(0, edge - lasts_ns) for edge in edges]
    # A window begins just before a burst, so that it has it.
    carried = [(result.done(at + lasts_ns) - result.done(max(0, at - 1))) / 8e9 for at in begins]
    assert max(carried) <= most + max(trace.largest_rate_bps or 0, CONSTANT_BPS) / 8e9 * 3 + 1e-3
    if trace.period_ns < 10**8:
        assert max(carried) >= most * (1 - 1e-6) - 20


@given(some_traces, st.floats(1, 20_000))
@settings(max_examples=50, deadline=None)
def test_the_least_time_for_bytes_is_the_shortest_window_that_carries_them(trace: Trace, size: float) -> None:
    rate = TraceRate(trace, CONSTANT_BPS)
    least_s = rate.least_time_s(size)
    if least_s < 1e9:
        assert rate.most_bytes(0, least_s * (1 + 1e-6) + 1e-9) >= size - 1
        assert least_s < 1e-8 or rate.most_bytes(0, least_s * 0.999) <= size + 1


@given(some_traces, st.floats(0, 0.2), st.integers(1, 3))
@settings(max_examples=50, deadline=None)
def test_of_many_steps_the_most_is_told_by_bundles_and_never_too_small(
    trace: Trace, lasts_s: float, bundles: int
) -> None:
    exact = TraceRate(trace, CONSTANT_BPS).most_bytes(0, lasts_s)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(trace_module, "MOST_EXACT_STEPS", bundles)
        most_bytes = TraceRate(trace, CONSTANT_BPS).most_bytes(0, lasts_s)
    assert most_bytes >= exact * (1 - 1e-6) - 0.01
    # A window begins within one bundle and ends within another, neither of which is longer than all steps.
    longer = TraceRate(trace, CONSTANT_BPS).most_bytes(0, lasts_s + 2 * trace.period_ns / 1e9)
    assert most_bytes <= longer * (1 + 1e-6) + 0.01


def test_a_trace_that_never_changes_is_a_constant_rate() -> None:
    rate, constant = TraceRate(Trace.of((10 * MS,), rate_bps=(8_000_000,)), 1), ConstantRate(8e6)
    for size in (100, 5_000, 10**6):
        assert rate.least_time_s(size) == pytest.approx(constant.least_time_s(size), rel=1e-4)
    assert rate.largest_bps == pytest.approx(8e6, rel=1e-4)
    two = together([rate, constant])
    assert two.least_time_s(10**6) == pytest.approx(0.5, rel=1e-4)
    assert two.most_bytes(0, 1) == pytest.approx(2e6, rel=1e-4)


@given(
    st.lists(
        st.tuples(st.integers(1, 10**9), st.integers(0, 10**10), st.integers(0, 10**6)),
        min_size=1,
        max_size=9,
    ).filter(lambda rows: any(row[1] for row in rows)),
    st.sampled_from(["\n", "\r\n"]),
    st.booleans(),
    st.booleans(),
)
def test_a_file_is_read_as_it_was_written(
    tmp_path_factory: pytest.TempPathFactory,
    rows: list[tuple[int, int, int]],
    line_end: str,
    has_mark: bool,
    ends_bare: bool,
) -> None:
    keep, rates, delays = zip(*rows, strict=True)
    trace = Trace.of(keep, rate_bps=rates, owd_us=delays)
    text = link_traces.text_of(trace).replace("\n", line_end)
    path = tmp_path_factory.mktemp("trace") / "t.csv"
    path.write_bytes((b"\xef\xbb\xbf" if has_mark else b"") + (text.rstrip() if ends_bare else text).encode())
    assert link_traces.read(path)[0] == trace


@given(st.lists(st.tuples(st.integers(1, 10**11), st.integers(1, 10**11)), min_size=1, max_size=9))
def test_a_file_of_parquet_is_read_as_one_of_csv(
    tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[int, int]]
) -> None:
    folder = tmp_path_factory.mktemp("trace")
    frame = pd.DataFrame(rows, columns=["keep_us", "rate_bps"])
    frame.to_csv(folder / "t.csv", index=False)
    frame.to_parquet(folder / "t.parquet", index=False)
    assert link_traces.read(folder / "t.parquet")[0] == link_traces.read(folder / "t.csv")[0]


def refused(path: Path, why: str) -> None:
    with pytest.raises(TopologyError) as error:
        link_traces.read(path)
    assert str(error.value).startswith(f"{path}: ") and why in str(error.value)
    assert "\n" not in str(error.value)


BAD_TABLES: list[tuple[dict[str, Any], str]] = [
    ({"keep_us": [5], "speed": [5]}, "its columns are 'keep_us,speed': they must be keep_us"),
    ({"keep_us": [5], "rate_bps": [1.5]}, "rate_bps must have a whole number in each row"),
    ({"keep_us": ["5"], "rate_bps": [1]}, "keep_us must have a whole number in each row"),
    ({"keep_us": [5, 5], "rate_bps": [1, None]}, "rate_bps must have a whole number"),
    ({"keep_us": [5], "rate_bps": pa.array([2**64 - 1], pa.uint64())}, "18446744073709551615"),
    ({"keep_us": [5], "rate_bps": [-1]}, "step 0: rate_bps = -1"),
    ({"keep_us": [], "rate_bps": []}, "must have a whole number in each row"),
]


def test_a_bad_table_is_named_in_one_line(tmp_path: Path) -> None:
    path = tmp_path / "bad.parquet"
    for columns, why in BAD_TABLES:
        parquet.write_table(pa.table(columns), path)
        refused(path, why)
    path.write_text("keep_us,rate_bps\n5,1\n")
    refused(path, "is no Parquet that can be read")


BAD = [
    (b"", "is empty"),
    (b"keep_us,rate_bps\n", "0 steps"),
    (b"100,5\n", "line 1: '100,5': must be keep_us"),
    (b"keep_us\n5\n", "must be keep_us and any of"),
    (b"keep_us,rate_bps,rate_bps\n5,1,1\n", "must be keep_us and any of"),
    (b"keep_us,rate_bps\n5,0x10\n", "line 2: rate_bps = '0x10'"),
    (b"keep_us,rate_bps\n5,\n", "line 2: rate_bps = ''"),
    (b"keep_us,rate_bps\n5,1\n\n5,1\n", "line 3: has 0 columns"),
    (b"keep_us,speed\n5,5\n", "must be keep_us and any of rate_bps"),
    (b"keep_us,rate_bps\n5,-1\n", "line 2: rate_bps = '-1'"),
    (b"keep_us,rate_bps\n5,nan\n", "line 2: rate_bps = 'nan'"),
    (b"keep_us,rate_bps\n5.5,1\n", "line 2: keep_us = '5.5'"),
    (b"keep_us,rate_bps\n5\n", "line 2: has 1 column; the heading has 2"),
    (b"keep_us,rate_bps\n0,5\n", "step 0: keep_us = 0"),
    (b"keep_us,rate_bps\n5,999999999999\n", "rate_bps = 999999999999"),
    (b"keep_us,rate_bps\n5,0\n", "never carries anything"),
    (b"\xff\xfe\x00", "is no text"),
    (b"\xc8\xf5\n5\n", "is no text"),
]


def test_a_bad_file_is_named_in_one_line(tmp_path: Path) -> None:
    path = tmp_path / "bad.csv"
    for content, why in BAD:
        path.write_bytes(content)
        refused(path, why)
    refused(tmp_path / "none.csv", "cannot be read: No such file")
    with path.open("wb") as file:
        file.truncate(1 << 30)
    refused(path, "more than 256 MiB")


def imported(tmp_path: Path, form: str, text: str, column: str = "") -> Trace:
    path = tmp_path / "theirs"
    path.write_text(text)
    return link_traces.imported(form, path, column)


def columns(trace: Trace, *names: str) -> tuple[tuple[int, ...], ...]:
    return tuple(tuple(trace.columns[name].tolist()) for name in names)


def test_traces_of_others_become_ours(tmp_path: Path) -> None:
    full = FULL_FRAME_BYTES
    trace = imported(tmp_path, "mahimahi", "0\n1\n1\n5")
    assert columns(trace, "keep_us", "burst_bytes") == ((1000, 4000), (2 * full, 2 * full))
    trace = imported(tmp_path, "rates", "0 1.5\n2.5, 3\n3 0\n")
    assert columns(trace, "keep_us", "rate_bps") == ((2_500_000, 500_000, 500_000), (1_500_000, 3_000_000, 0))
    trace = imported(tmp_path, "theaterq", "KEEP,LATENCY,RATE,LOSS\n1000,2000000,5000000,0\n")
    assert columns(trace, "keep_us", "owd_us", "rate_bps") == ((1000,), (2000,), (5_000_000,))
    lens = "timestamp,rtt,uplink,downlink\n0.00,50,20,30\n0.01,-1,-1,-1\n0.02,60,21,39\n"
    trace = imported(tmp_path, "irtt", lens)
    assert columns(trace, "keep_us", "owd_us") == ((10_000,) * 3, (25_000, 25_000, 30_000))
    trace = imported(tmp_path, "irtt", lens, "uplink")
    assert columns(trace, "owd_us") == ((20_000, 20_000, 21_000),)


BAD_OF_OTHERS = [
    ("mahimahi", "0\n0\n", "it lasts 0 ms"),
    ("mahimahi", "5\n3\n", "line 2: 3 comes after 5"),
    ("mahimahi", "-3\n", "line 1 = '-3'"),
    ("rates", "0 1\n0 2\n", "line 2: its time must be later"),
    ("rates", "0 nan\n", "'nan' is no number"),
    ("rates", "0 -1\n", "-1 Mbit/s"),
    ("rates", "time_s,dl_mbps\n0,1\n", "line 1: 'time_s,dl_mbps': is a heading: leave it out"),
    (
        "irtt",
        "timestamp,rtt\n0,7\n1,nan\n",
        "line 3: 'nan' is no delay: that of a packet that was lost is -1",
    ),
    ("irtt", "time,rtt\n0,1\n", "must have the columns timestamp and rtt"),
    ("irtt", "timestamp,rtt\n0,-7\n", "clocks differ"),
    ("theaterq", "1 2\n", "line 1: has 2 columns: must have 5"),
]


def test_a_bad_file_of_others_is_named_in_one_line(tmp_path: Path) -> None:
    for form, text, why in BAD_OF_OTHERS:
        with pytest.raises(TopologyError, match="theirs: ") as error:
            imported(tmp_path, form, text)
        assert why in str(error.value)


def test_a_made_trace_is_that_of_its_seed_and_changes() -> None:
    for kind in link_traces.KINDS:
        trace = link_traces.make(kind, 5, 120)
        assert trace == link_traces.make(kind, 5, 120) != link_traces.make(kind, 6, 120)
        assert trace.rate_bps is not None and trace.owd_us is not None
        median = float(np.median(trace.rate_bps)) / 1e6
        assert link_traces.KINDS[kind].median_mbps / 3 < median < link_traces.KINDS[kind].median_mbps * 3
        assert max(trace.rate_bps) > 3 * min(trace.rate_bps)


def test_the_link_begins_within_the_trace_and_at_the_same_place_in_both_directions() -> None:
    trace = Trace.of((10 * MS, 30 * MS), rate_bps=(1, 2))
    assert trace.placed(0).offset_ns == 0
    assert trace.placed(2**63).offset_ns == 20 * MS * 1000
    assert trace.placed(2**64 - 1).offset_ns == trace.period_ns - 1
    assert Trace.of((5,), rate_bps=(1,), offset_ns=7).placed(2**63).offset_ns == 7


def test_the_steps_of_a_trace_have_the_constants_that_it_lacks() -> None:
    assert Trace.of((1, 2), rate_bps=(5, 6)).steps(9, 8).tolist() == [(1000, 5, 8, 0), (3000, 6, 8, 0)]
    assert Trace.of((1,), owd_us=(4,)).steps(9, 8).tolist() == [(1000, 9, 4000, 0)]
    assert Trace.of((1,), burst_bytes=(4,)).steps(9, 8).tolist() == [(1000, 0, 8, 4)]
    in_c = bytes(law.in_c([Step(1000, 5, 8), Step(2000, 6, 8)]))
    assert in_c == Trace.of((1, 2), rate_bps=(5, 6)).steps(9, 8).tobytes()
    with pytest.raises(TraceError, match="rate_bps has 1 value for 2 steps"):
        Trace.of((1, 2), rate_bps=(5,))


def symmetric(mbps: float, owd_ms: float, queue_ms: float = 100, trace: Trace | None = None) -> LinkSettings:
    own = DirectionSettings(mbps, owd_ms, queue_ms=queue_ms, trace=trace)
    return LinkSettings(own, own)


def test_the_least_delay_is_of_the_trace_or_of_what_comes_after_it() -> None:
    trace = Trace.of((5, 5), owd_us=(9000, 4000), repeat="end")
    assert [symmetric(8, owd_ms, trace=trace).rtt_ms for owd_ms in (10, 3)] == [8, 6]


def test_a_queue_in_time_never_holds_more_than_at_the_largest_rate() -> None:
    """The largest rate is that of the trace, or of what holds before and after it. A queue has ten full
    frames at least."""
    trace = Trace.of((5, 5), rate_bps=(80_000_000, 8), repeat="end")
    for mbps, queue_ms, most in ((8, 100, 1_000_000), (160, 100, 2_000_000), (8, 0.1, 10 * FULL_FRAME_BYTES)):
        assert symmetric(mbps, 10, queue_ms, trace).queue_limit("up").most_bytes == most
    assert symmetric(8, 10).queue_limit("up").bytes == 100_000, "where the rate is constant"
    with pytest.raises(TopologyError, match="queue_ms: the trace has bursts and no rate"):
        symmetric(8, 10, trace=Trace.of((5,), burst_bytes=(9,)))
