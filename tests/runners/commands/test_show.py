"""`fecbench show`: campaigns, trials, and everything of one trial, for a person and as JSON."""

import json
from io import StringIO
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest
from matplotlib.figure import Figure

from fecbench import results
from fecbench.results.analysis.trial_course import Course
from fecbench.results.store import rows, stored_series
from fecbench.results.store.database import Database
from fecbench.results.store.records import TrialKey, TrialRecord, VerdictLog
from tests.support.campaigns import new_campaign, variants

LABEL = "rQUIC [/4]"
CHECKS = {"stalled_s": 0.004, "trials_at_once": 6, "verdicts": {}}
KEY = TrialKey(LABEL, "download-1", 0, 0)
XOR = {"scheme": "xor", "code_rate": 0.8}
PAIR = {
    "client": {"implementation": "rquic", "options": XOR, "series": ["cwnd"]},
    "server": {"implementation": "noq-fec", "options": {"scheme": "rlc"}},
    "workload": {"name": "page", "graph": [{"size_bytes": n} for n in range(100)]},
}
TASK = {
    "topology": "single-path",
    "links": {"internet": {"settings": {"up": {"bandwidth_mbps": 7.25, "queue_bytes": None}}}},
    "pairs": [PAIR],
    "timeout_s": 12.5,
}
UP = {
    **{"frames_in": 31, "frames_out": 23, "queue_dropped": 8, "conserved": True},
    "lateness_us": {"p50": 11, "p99": 222, "max": 3333},
}
LINKS = {"internet": {"directions": {"up": UP}}}
PROVENANCE = {"kernel": "6.66", "revision": {"commit": "c0ffee"}}
CWND = pa.table({"t_s": [0.0, 0.1], "x_bytes": [1, 2]})


def record(key: TrialKey, state: str, **more: Any) -> TrialRecord:
    reason = "" if state == "ok" else "late \x1b[2Jby [bold]"
    return TrialRecord(key, state, reason, "2026-01-02T03:04:05+00:00", 1.5, **more)  # type: ignore[arg-type]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A database of two campaigns; the first has a trial that was invalid once, and a start."""
    path = tmp_path / "x.sqlite"
    with Database.open(str(path), create=True) as database:
        for name in ("first", "second"):
            campaign = database.create_campaign(
                new_campaign(name, repetitions=3, points=[{"owd_ms": 77}], variants=variants(LABEL))
            )
            start = database.start(campaign.id, "a-host", PROVENANCE)
            database.record(campaign.id, record(KEY, "invalid", task=TASK), start.id)
            database.record(
                campaign.id,
                record(
                    KEY,
                    "ok",
                    task=TASK,
                    seeds={"content": 2**64 - 1},
                    metrics={"client": {"dct_s": 1.25, "packets_sent": 40}, "server": {"packets_sent": 30}},
                    verdicts=[VerdictLog("internet", "up", 23, 2, bytes([0b100001, 0, 0]))],
                    links=LINKS,
                    exits={"client": 0, "server": None},
                    stderr={"client": "", "server": "first\x1b]0;mine\x07 line\n[second] line\n"},
                    overhead_s={"topology": 0.0125, "total": 0.5},
                    checks={**CHECKS, "late_max_ms": None},
                    series=[stored_series.of_endpoint("client", "cwnd", CWND)],
                ),
                start.id,
            )
            other = TrialKey(LABEL, "download-1", 0, 1)
            database.record(campaign.id, record(other, "failed", task={"timeout_s": 1}))
    return path


def test_everything_of_one_trial_is_shown_to_a_person(fecbench_here: Any, path: Path) -> None:
    result = fecbench_here("show", "2", "--db", path)
    assert (result.returncode, result.stderr) == (0, "")
    output = " ".join(result.stdout.split())
    for part in (
        "trial 2 of campaign first",
        f"variant {LABEL}",
        "point 0: owd_ms = 77",
        "state ok",
        "invalid 1 1 2026-01-02T03:04:05+00:00 late [2Jby [bold]",  # the attempt before
        "ran on a-host, Linux 6.66",
        "revision c0ffee",
        "links.internet.settings.up.bandwidth_mbps 7.25",
        "timeout_s 12.5",
        "implementation rquic noq-fec",
        "options.scheme xor rlc",
        "options.code_rate 0.8 -",
        "workload.graph (100 entries: see --json)",
        f"content {2**64 - 1}",
        "internet up 23 2 31 23 8 0 11/222/3333 conserved",
        "dct_s 1.25 -",
        "packets_sent 40 30",
        "stalled_s 0.004",
        "trials_at_once 6",
        "late_max_ms not known",
        "topology 12.5",
        "client cwnd 2 t_s, x_bytes",
        "client ended with 0, with nothing on standard error",
        "server had to be killed, with this on standard error first]0;mine line [second] line",
    ):
        assert part in output, part
    assert "queue_bytes" not in output  # it is not set
    assert not set(result.stdout) & set("\x1b\x07")


def test_one_trial_in_json_has_its_whole_task_all_attempts_and_its_start(
    fecbench_here: Any, path: Path
) -> None:
    document = json.loads(fecbench_here("show", "2", "--db", path, "--json").stdout)
    assert document["task"] == TASK
    attempts = [(run["id"], run["attempt"], run["state"]) for run in document["attempts"]]
    assert attempts == [(1, 1, "invalid"), (2, 2, "ok")]
    assert document["start"]["host"] == "a-host"
    assert document["start"]["provenance"]["kernel"] == "6.66"
    assert (document["stalled_s"], document["trials_at_once"]) == (0.004, 6)
    assert document["checks"] == {**CHECKS, "late_max_ms": None}
    assert document["verdicts"] == {"internet/up": {"packets": 23, "dropped": [0, 5]}}
    assert document["series"] == [
        {"endpoint": "client", "name": "cwnd", "columns": ["t_s", "x_bytes"], "rows": 2}
    ]
    assert document["stderr"]["server"].startswith("first\x1b]0;mine")  # as it was
    superseded = json.loads(fecbench_here("show", "1", "--db", path, "--json").stdout)
    assert (superseded["state"], superseded["attempt"], len(superseded["attempts"])) == ("invalid", 1, 2)


def test_the_document_of_a_database_has_every_trial_with_its_attempts_and_each_task_once(
    fecbench_here: Any, path: Path
) -> None:
    document = json.loads(fecbench_here("show", "--db", path, "--json").stdout)
    assert [campaign["name"] for campaign in document["campaigns"]] == ["first", "second"]
    assert [trial["id"] for trial in document["trials"]] == [2, 3, 5, 6]
    assert document["tasks"] == [TASK, {"timeout_s": 1}]
    assert [trial["task_index"] for trial in document["trials"]] == [0, 1, 0, 1]
    assert [start["id"] for start in document["starts"]] == [1, 2]
    assert [trial["start_id"] for trial in document["trials"]] == [1, None, 2, None]
    states = [[run["state"] for run in trial["attempts"]] for trial in document["trials"]]
    assert states == [["invalid", "ok"], ["failed"]] * 2
    retried = document["trials"][0]
    assert (retried["stalled_s"], retried["trials_at_once"]) == (0.004, 6)
    alone = json.loads(fecbench_here("show", "2", "--db", path, "--json").stdout)
    assert retried.keys() - {"task_index"} <= alone.keys()
    assert all(alone[key] == retried[key] for key in retried.keys() - {"task_index"})


def test_labels_and_reasons_are_shown_as_they_are_in_tables(fecbench_here: Any, path: Path) -> None:
    for options in ([], ["--trials"]):
        result = fecbench_here("show", "--db", path, *options)
        assert result.returncode == 0, result.stderr
        assert LABEL in result.stdout
        assert "late [2Jby [bold]" in result.stdout
        assert "\x1b" not in result.stdout
        assert "2 of 3 trials: 1 failed, 1 ok" in result.stdout


def test_no_verdicts_are_read_where_none_are_shown(
    fecbench_here: Any, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read_trials = rows.read_trials

    def only_doubtful(connection: Any, *conditions: Any, **more: Any) -> Any:
        trials = read_trials(connection, *conditions, **more)
        assert all(trial.record.state != "ok" for trial in trials), "read all trials"
        return trials

    monkeypatch.setattr(rows, "read_trials", only_doubtful)
    assert "2 of 3 trials: 1 failed, 1 ok" in fecbench_here("show", "--db", path).stdout


def test_a_trial_over_time_is_drawn_from_its_series(fecbench_here: Any, path: Path, tmp_path: Path) -> None:
    output = fecbench_here("show", "2", "--db", path).stdout
    for suffix, begins in (("png", b"\x89PNG"), ("pdf", b"%PDF")):
        figure = tmp_path / f"figure.{suffix}"
        figure.write_text("replaced")
        plotted = fecbench_here("show", "2", "--db", path, "--plot", figure)
        assert plotted.returncode == 0
        assert plotted.stderr.startswith("note: not recorded of this trial: packets, and when they were lost")
        assert plotted.stderr.endswith("fecbench replay 2 --plot draws it\n")
        assert plotted.stdout == output
        assert figure.read_bytes().startswith(begins)


def test_the_figure_has_the_series_of_that_trial_alone(
    fecbench_here: Any, path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawing: dict[str, Any] = {}

    def course_over_time(course: Course, series: dict[str, pd.DataFrame]) -> Figure:
        drawing[course.detail.split()[1]] = series
        return Figure()

    monkeypatch.setattr("fecbench.results.figures.course_over_time", course_over_time, raising=False)
    fecbench_here("show", "2", "--db", path, "--plot", tmp_path / "x.png")
    assert drawing.keys() == {"2"}
    frame = drawing["2"]["cwnd"]
    assert frame[["id", "variant", "endpoint"]].drop_duplicates().values.tolist() == [[2, LABEL, "client"]]
    assert frame[["t_s", "x_bytes"]].values.tolist() == [[0.0, 1], [0.1, 2]]


WRONG: list[tuple[list[str], str]] = [
    (["7"], "has no trial 7: see fecbench show --trials"),
    (["2", "--campaign", "second"], "campaign 'second' has no trial 2"),
    (["2", "--campaign", "secnd"], "has no campaign 'secnd'; did you mean 'second'?"),
    (["2", "--trials"], "--trials, --overhead and --metric are of all trials: leave out 2"),
    (["2", "--metric", "client.dct_s"], "are of all trials: leave out 2"),
    (["--plot", "x.png"], "--plot: draws one trial: fecbench show TRIAL --plot FILE.png"),
    (["2", "--plot", "x.doc"], "--plot x.doc: must end with .png, .svg or .pdf"),
    (["3", "--plot", "x.png"], "over time, and no losses. fecbench replay 3 --plot runs it again"),
    (["two"], "Invalid value for 'trial': must be a valid integer (see fecbench show --help)"),
]


def test_a_wrong_call_is_refused_in_one_line(fecbench_here: Any, path: Path) -> None:
    for arguments, message in WRONG:
        assert message in fecbench_here("show", *arguments, "--db", path).refusal()


def test_second_tries_are_counted_for_a_person_and_as_json(fecbench_here: Any, path: Path) -> None:
    result = fecbench_here("show", "--db", path, "--campaign", "first")
    assert f"Invalid attempts, of all: {LABEL} 1 of 3 (33.3 %, " in result.stdout
    assert f"Trials that were run again: {LABEL} 1." in result.stdout
    document = json.loads(fecbench_here("show", "--db", path, "--json").stdout)
    (first, _) = (campaign["attempts"] for campaign in document["campaigns"])
    counted = {"variant": LABEL, "attempts": 3, "ok": 1, "failed": 1, "invalid": 1, "superseded": 1}
    assert first[0].items() >= (counted | {"retried_groups": 1, "p_value": None}).items()


def test_first_attempts_alone_are_shown_in_the_table_of_ratios(fecbench_here: Any, path: Path) -> None:
    result = fecbench_here("show", "--db", path, "--campaign", "first", "--first-attempts")
    assert "first attempts alone: 1 of 2 groups are left out" in result.stdout
    for other in (["--trials"], ["--overhead"], ["--json"], ["2"]):
        refusal = fecbench_here("show", "--db", path, "--first-attempts", *other)
        assert refusal.returncode == 2
        assert "--first-attempts is of the table of ratios" in refusal.stderr


def test_the_first_hundred_trials_that_are_not_ok_are_listed_and_the_rest_is_counted(
    fecbench_here: Any, tmp_path: Path
) -> None:
    path = tmp_path / "x.sqlite"
    with Database.open(str(path), create=True) as database:
        campaign = database.create_campaign(
            new_campaign("many", repetitions=103, points=[{"owd_ms": 77}], variants=variants(LABEL))
        )
        keys = [TrialKey(LABEL, "download-1", 0, repetition) for repetition in range(103)]
        database.record_all(campaign.id, [record(key, "timeout", task=TASK) for key in keys])
    printed = fecbench_here("show", "--db", path).stdout
    assert printed.count("late [2Jby [bold]") == 100
    assert "3 more trials are not ok: fecbench show --trials has all" in printed
    assert fecbench_here("show", "--db", path, "--trials").stdout.count("late [2Jby [bold]") == 103


def test_tables_documents_and_python_say_the_same_of_the_bytes_sent(
    fecbench_here: Any, tmp_path: Path
) -> None:
    path = tmp_path / "sent.sqlite"
    with Database.open(str(path), create=True) as database:
        campaign = database.create_campaign(new_campaign(repetitions=6, variants=variants("off", "fec")))
        for label, sent in (("off", 1000), ("fec", 1100)):
            for repetition in range(6):
                metrics = {
                    "client": {"dct_s": 1.0, "bytes_sent": 0.0},
                    "server": {"bytes_sent": sent * (1 + repetition % 3 / 50 * (label == "fec"))},
                }
                key = TrialKey(label, "download-1", 0, repetition)
                trial = TrialRecord(key, "ok", "", "2026-01-02T03:04:05+00:00", 1.5, metrics=metrics)
                database.record(campaign.id, trial)
    for command in ("show", "watch"):
        assert "+12 % [+10, +14]" in fecbench_here(command, "--db", path).stdout
    (row,) = json.loads(fecbench_here("show", "--db", path, "--json").stdout)["campaigns"][0]["comparisons"]
    in_csv = pd.read_csv(StringIO(fecbench_here("show", "--db", path, "--format", "csv").stdout)).iloc[0]
    in_python = results.open(path)["planted"].summary().iloc[0]
    for name in ("more_bytes_low", "more_bytes_high"):
        assert in_csv[name] == pytest.approx(in_python[name])
    for answer in (row, in_csv, in_python):
        assert answer["more_bytes"] == pytest.approx(0.1219, abs=1e-4)
