"""The workload `messages`: its traffic, its traces, and what endpoints are asked for."""

import gzip
import json
import statistics
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fecbench.designs import DesignError
from fecbench.runners.campaign.experiment import Experiment
from fecbench.runners.campaign.order import trial_keys
from fecbench.runners.refusal import Refusal
from fecbench.runners.tasks.task import ROLES, EndpointTask
from fecbench.runners.workloads import asked_series
from fecbench.runners.workloads.messages import real_time, traffic
from fecbench.runners.workloads.messages.traffic import Trace
from tests.support.designs import one_of, variant
from tests.support.experiments import experiment_of
from tests.support.refusals import refusal_of

# Where it is not the little design.
DESIGN = {
    "repetitions": 1,
    "timeout_s": 60,
    "plan": {"method": "grid"},
    "factors": {"owd_ms": one_of(10, 20)},
    "constants": {"bandwidth_mbps": 20},
    "variants": [variant("off", "rquic")],
}
Resolve = Callable[..., Experiment]


@pytest.fixture
def resolve(write_design: Any, tmp_path: Path) -> Resolve:
    """The design with this workload, and with this trace beside it."""

    def resolve(
        workload: str = "", trace: object = None, documents: dict[str, Any] | None = None
    ) -> Experiment:
        if trace is not None:
            (tmp_path / "traces").mkdir(exist_ok=True)
            (tmp_path / "traces" / "own.json").write_text(json.dumps(trace))
        messages = {"name": "messages", **tomllib.loads(workload)}
        return experiment_of(write_design(tmp_path, **DESIGN, workloads=[messages]), documents)

    return resolve


def workload_of(experiment: Experiment) -> dict[str, Any]:
    key = trial_keys(experiment.design, 1)[0]
    return experiment.task(key, "wire").pairs[0].workload


def a_trace(*messages: list[int]) -> dict[str, Any]:
    return {"title": "a trace", "made_by": "hand", "messages": list(messages)}


def test_without_a_word_the_traffic_is_that_of_the_thesis(resolve: Resolve) -> None:
    workload = workload_of(resolve())
    timetable = workload.pop("timetable")
    assert workload == {
        "name": "messages",
        "direction": "down",
        "delivery": "datagram",
        "deadline_ms": 100,
        "part_bytes": 1000,
    }
    assert len(timetable) == 30 * 25
    assert timetable[:4] == [[0, 8000], [33_333, 8000], [66_667, 8000], [100_000, 8000]]
    assert timetable[-1][0] == round(1e6 * 749 / 30)


def test_endpoints_are_asked_for_their_series_and_know_nothing_of_playout_delays(resolve: Resolve) -> None:
    experiment = resolve("playout_ms = [50, 20]\nduration_s = 1")
    task = experiment.task(trial_keys(experiment.design, 1)[0], "wire")
    assert task.pairs[0].playout_ms == [20, 50, 100]
    pair = task.pairs[0]
    assert [list(asked_series(pair.end(role), pair.workload)) for role in ROLES] == [["messages"]] * 2
    assert "playout_ms" not in task.pairs[0].workload


def test_a_list_of_playout_delays_makes_one_workload_and_any_other_list_makes_several(
    resolve: Resolve,
) -> None:
    workloads = resolve('playout_ms = [50, 100]\ndelivery = ["datagram", "reliable"]').design.workloads
    assert [workload.label for workload in workloads] == ["messages-datagram", "messages-reliable"]


@given(rate_hz=st.floats(0.5, 1000), duration_s=st.floats(0.01, 10))
def test_messages_are_due_before_the_duration_is_over_and_no_interval_is_left_out(
    rate_hz: float, duration_s: float
) -> None:
    due_us = [due for due, _ in traffic.regular(rate_hz, 1, duration_s)]
    assert due_us[0] == 0
    assert due_us == sorted(due_us)
    assert due_us[-1] <= 1e6 * duration_s + 1
    assert 1e6 * len(due_us) / rate_hz >= 1e6 * duration_s - 1


def test_what_arrives_whatever_is_lost_is_demanded_and_the_time_of_the_last_message(resolve: Resolve) -> None:
    for delivery, direction, up, down in (
        ("datagram", "down", 0, 0),
        ("deadline", "up", 0, 0),
        ("stream", "up", 6_000_000, 0),
        ("reliable", "down", 0, 6_000_000),
    ):
        experiment = resolve(f'delivery = "{delivery}"\ndirection = "{direction}"')
        demand = experiment.task(trial_keys(experiment.design, 1)[0], "wire").pairs[0].demand
        assert (demand.arriving_bytes("up"), demand.arriving_bytes("down")) == (up, down)
        assert max(demand.up_bytes, demand.down_bytes) == 6_000_000
        assert demand.pauses_s == pytest.approx(749 / 30, abs=1e-6)


WRONG = {
    "rate = 30": "has no parameter 'rate'; did you mean 'rate_hz'?",
    "rate_hz = 0": "rate_hz = 0 must be at least 0.001",
    'delivery = "carrier"': "delivery = 'carrier' must be one of datagram",
    'direction = "left"': "direction = 'left' must be one of down, up",
    "payload_bytes = 1401": "payload_bytes = 1401 must be at most 1400",
    "deadline_ms = 0": "deadline_ms = 0 must be at least 1",
    'playout_ms = ["soon"]': "workloads[0].playout_ms = 'soon': must be a time such as 80ms",
    "playout_ms = []": "must have at least one value",
    "playout_ms = [50, -1]": "must be a number, 0 or more",
    "playout_ms = [50, 50.0]": "playout_ms = [50, 50.0]: each must be another",
    "playout_ms = 1e9": "each must be at most 3.6e+06",
    "rate_hz = 10000": "has 250000 messages; there may be 100000",
    "packets = 60000": "has 45000000 parts in all; 500000 are the most",
    "packets = 65000\nduration_s = 0.2": "has messages of 65000000 bytes",
    'trace = "none"': "trace = 'none': there is no trace 'none' in",
    'trace = "own"\nrate_hz = 30': "says sizes and times itself: leave out rate_hz",
    "rate_hz = 1\nduration_s = 61": "after 60 s, and timeout_s = 60: it must be more",
    'trace = "own"\nduration_s = 0.001': "no message is due before duration_s = 0.001",
}


def test_a_wrong_value_is_refused_in_one_line(resolve: Resolve) -> None:
    def use(workload: str) -> None:
        workload_of(resolve(workload, a_trace([1000, 1])))

    for workload, message in WRONG.items():
        assert message in refusal_of(use, workload, by=(Refusal, DesignError))


def test_a_trace_is_sent_as_it_was_kept_without_its_file(resolve: Resolve, tmp_path: Path) -> None:
    messages = [[0, 500], [0, 2500], [40_000, 1]]
    experiment = resolve('trace = "own"', a_trace(*messages))
    assert workload_of(experiment)["timetable"] == messages
    documents = json.loads(json.dumps(experiment.documents))
    assert len(documents["traces"]["own"]["sha256"]) == 64
    (tmp_path / "traces" / "own.json").unlink()
    assert workload_of(resolve('trace = "own"', documents=documents))["timetable"] == messages


def test_a_duration_cuts_a_trace(resolve: Resolve) -> None:
    experiment = resolve('trace = "own"\nduration_s = 0.04', a_trace([0, 500], [39_999, 2], [40_000, 1]))
    assert workload_of(experiment)["timetable"] == [[0, 500], [39_999, 2]]


BAD_TRACES: list[tuple[object, str]] = [
    ("{", "is no JSON"),
    ([], "valid dictionary"),
    (a_trace(), "messages = []: "),
    (a_trace([5, 1], [4, 1]), "message 1: is due at 4 µs, and the one before at 5"),
    (a_trace([0, 0]), "message 0: 0 bytes must be from 1 to 16777216"),
    (a_trace([0, 2**40]), "must be from 1 to 16777216"),
    (a_trace([-1, 1]), "message 0: -1 µs must be from 0 to"),
    (a_trace([0, 1, 2]), "messages[0]"),
    (a_trace([0, 1.5]), "messages[0][1] = 1.5"),
    ({**a_trace([0, 1]), "rate": 1}, "rate: is no key here"),
    (a_trace(*[[0, 1]] * 100_001), "messages: "),
]


def test_a_bad_trace_is_refused_in_one_short_line(tmp_path: Path) -> None:
    path = tmp_path / "bad.json"
    for document, message in BAD_TRACES:
        path.write_text(document if isinstance(document, str) else json.dumps(document))
        line = refusal_of(Trace.load, path)
        assert str(path) in line and message in line and len(line) < 600


def sizes(trace: Trace) -> list[int]:
    return [size_bytes for _, size_bytes in trace.messages]


def test_a_chat_has_the_rate_that_was_asked_for_and_rare_large_frames() -> None:
    trace = real_time.chat(1, 240, 2.0, "a test")
    frames = sizes(trace)
    mean = statistics.fmean(frames)
    assert len(frames) == 7200
    assert 8 * mean * 30 == pytest.approx(2e6, rel=0.03)
    # As in syncodecs' chat of 2 Mbit/s at 1080p: deviation 0.17 of the mean, p99 1.45, largest 5 times it.
    assert 0.12 < statistics.pstdev(frames) / mean < 0.25
    assert 1.2 < sorted(frames)[int(0.99 * len(frames))] / mean < 2.0
    assert 3 < max(frames) / mean < 6
    assert trace.messages[30][0] == 1_000_000


def test_voice_and_game_keep_their_rate_and_their_sizes() -> None:
    for make, rate, (least, most) in (
        (real_time.voice, 50, real_time.VOICE_BYTES),
        (real_time.game, 60, real_time.GAME_BYTES),
    ):
        trace = make(3, 10, "a test")
        assert len(trace.messages) == 10 * rate
        assert least <= min(sizes(trace)) < max(sizes(trace)) <= most
        assert trace == make(3, 10, "a test")
        assert sizes(trace) != sizes(make(4, 10, "a test"))


def test_a_trace_that_a_command_made_is_made_again_by_what_stands_in_it(
    fecbench_here: Any, tmp_path: Path
) -> None:
    first, again = tmp_path / "first.json", tmp_path / "again.json"
    for kind in ("chat", "voice", "game"):
        result = fecbench_here("trace", kind, "--output", first, "--seed", 5, "--duration-s", 2)
        assert result.returncode == 0, result.stderr
        program, *arguments = Trace.load(first).made_by.split()
        assert program == "fecbench"
        fecbench_here(*arguments, "--output", again)
        assert first.read_text() == again.read_text(), kind


def test_a_list_of_sizes_and_one_of_syncodecs_become_traces(fecbench_here: Any, tmp_path: Path) -> None:
    listed, trace = tmp_path / "frames.txt", tmp_path / "made.json"
    listed.write_text("# a comment\n8000\n\n 41000 \n")
    result = fecbench_here("trace", "from-list", listed, "--output", trace, "--rate-hz", 25)
    assert result.returncode == 0, result.stderr
    assert Trace.load(trace).messages == [[0, 8000], [40_000, 41000]]
    listed.write_text("1 U 0. 1.500000 8000\n2 U 0. 1.533333 7000\n")
    fecbench_here("trace", "from-list", listed, "--output", trace)
    assert Trace.load(trace).messages == [[0, 8000], [33_333, 7000]]


LISTS = {
    "a heading with times": (
        "% Nframe | type | X | timestamp | size (Bytes)\n% more\n0 U 0. 0.1 8000\n1 U 0. 0.14 7000\n"
    ),
    "a heading without times": (
        "% Nframe | type | QP | PSNR | size (Bytes)\n0 I 30.1 38.3 8000\n1 P 32.4 38.4 7000\n"
    ),
    "comments behind": "0.1 8000 % the first\n0.14 7000\n",
    "sizes alone": "8000\n7000\n",
    "packed": "0.1 8000\n0.14 7000\n",
    "a mark of UTF-8": "\ufeff0.1 8000\n0.14 7000\n",
    "times in s": "% time (s) | size\n0.1 8000\n0.14 7000\n",
}


@pytest.mark.parametrize("form", LISTS)
def test_lists_of_frames_are_read_by_the_names_of_their_columns(
    fecbench_here: Any, tmp_path: Path, form: str
) -> None:
    """The columns are those of cisco/syncodecs: a PSNR is no time."""
    listed, trace = tmp_path / "frames.txt", tmp_path / "made.json"
    content = LISTS[form].encode()
    listed.write_bytes(gzip.compress(content) if form == "packed" else content)
    result = fecbench_here("trace", "from-list", listed, "--output", trace, "--rate-hz", 25)
    assert result.returncode == 0, result.stderr
    assert Trace.load(trace).messages == [[0, 8000], [40_000, 7000]]


def test_an_option_says_which_column_has_times(fecbench_here: Any, tmp_path: Path) -> None:
    listed, trace = tmp_path / "frames.txt", tmp_path / "made.json"
    listed.write_text("100.0 30.5 8000\n100.5 30.7 7000\n")
    for column, due_us in ((1, 500_000), (2, 200_000), (0, 100_000)):
        words = ("trace", "from-list", listed, "--output", trace, "--rate-hz", 10, "--time-column", column)
        assert fecbench_here(*words).returncode == 0
        assert Trace.load(trace).messages == [[0, 8000], [due_us, 7000]]


BAD_LISTS = {
    "": "messages = []: ",
    "eight\n": "line 1: 'eight': must be a size in bytes",
    "1\n-5\n": "line 2: '-5': must be a size in bytes",
    "soon 5\n": "line 1: 'soon': must be a time in s",
    "nan 5\n": "line 1: 'nan': must be a time in s",
    "2 5\n1 5\n": "line 2: '1': must be a time in s, from about 0 on and not falling; --time-column",
    "38.5 5\n38.7 5\n": "line 1: '38.5': must be a time in s, from about 0 on",
    "0 5\n5\n": "line 2: has 1 columns; the first line has 2",
    "% n | timestamp | size\n0 0.5 7\n1 7\n": "line 3: has 2 columns, none of them with its time",
    "% n | timestamp | size\n0 0.5 7\n1 0.4 7\n": "message 1: is due at",
    "0\n": "message 0: 0 bytes must be",
    "0 1000\n33 1001\n": "column 1 has whole numbers alone: times in s, or numbers of frames? --time-column",
    "% n | time(ms) | size\n0 0 7\n": "column 'time(ms)': times must be in s; --time-column says",
    "% n | Timestamp [us] | size\n0 0 7\n": "column 'timestamp [us]': times must be in s",
    "% size | QP\n8000 30\n": "column 'qp': the last must be a size in bytes",
    "% QP | size (kB)\n30 8\n": "column 'size (kb)': the last must be a size in bytes",
    "% QP | size [bits]\n30 8\n": "column 'size [bits]': the last must be a size in bytes",
    "8.25\n": "line 1: '8.25': must be a size in bytes, a whole number",
    "\x00\x1b[31m\n": "must be a size in bytes",
}


def test_a_bad_list_ends_the_command_with_one_line_and_status_2(fecbench_here: Any, tmp_path: Path) -> None:
    listed, trace = tmp_path / "frames.txt", tmp_path / "made.json"
    for content, message in BAD_LISTS.items():
        listed.write_text(content)
        assert message in fecbench_here("trace", "from-list", listed, "--output", trace).refusal()
        assert not trace.exists()


def test_nobody_is_asked_for_messages_in_another_workload() -> None:
    end = EndpointTask(implementation="x", options={}, series=["messages", "cwnd"])
    assert list(asked_series(end, {"name": "download", "size_bytes": 1})) == ["cwnd"]
    assert list(asked_series(end, {"name": "messages"})) == ["cwnd", "messages"]
