"""`fecbench compare` with a simulator that is made up, and builds of it that are slower by a known share."""

import html
import json
import math
import re
import shlex
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from fecbench.runners.campaign.limited_rounds import LimitedRounds
from fecbench.runners.commands.compare import FILES
from tests.runners.conftest import MADE_UP, Done
from tests.support.designs import Table, between, text_of, variant, workload

SIZES = workload(size_bytes=[10_000, 50_000]), workload("upload", size_bytes=10_000)


def design_of(*workloads: Table, **factors: Table) -> str:
    return text_of(
        "few",
        seed=5,
        repetitions=12,
        statistic="mean",
        plan={"method": "sobol", "points": 4},
        factors={**factors, "owd_ms": between(10, 50), "loss.p": between(0.01, 0.05)},
        constants={"bandwidth_mbps": 10, "loss.model": "uniform"},
        workloads=workloads,
        variants=[variant("any")],
    )


DESIGN = design_of(*SIZES)
BY_CHANCE, OTHERWISE = "(2 if task['seed'] % 2 else 4.5)", "(4.5 if task['seed'] % 2 else 2)"
"""Either is as often longer than the other as shorter, by the same factor."""
KEYS = {
    *("verdict", "ratio", "interval", "helps", "harms", "equivalent", "worst", "workloads"),
    *("failed", "slower_networks", "tail_ratio", "mean_ratio", "attempts"),
}
QUICK = ("--json", "--no-calibrate", "--jobs", "1")
Builds = Callable[[str], Path]
Compare = Callable[..., Any]
Run = Callable[..., Done]


@pytest.fixture
def build(tmp_path: Path) -> Builds:
    """A build whose transfers take so many times as long."""

    def build(times: str) -> Path:
        folder = tmp_path / f"build-{re.sub(r'[^a-z0-9.]+', '-', times)}"
        if not folder.exists():
            shutil.copytree(MADE_UP, folder)
            program = folder / "simulator.py"
            text = program.read_text()
            written = text.replace("+ jitter_s\n", f"+ jitter_s\n    dct_s *= {times}\n")
            assert written != text
            program.write_text(written)
        return folder

    return build


@pytest.fixture
def compare(fecbench_here: Run, tmp_path: Path) -> Compare:
    design = tmp_path / "few.toml"
    design.write_text(DESIGN)

    def compare(*arguments: object, status: int) -> Any:
        result = fecbench_here("compare", *arguments, design, "--db", tmp_path / "x.sqlite", *QUICK)
        assert result.returncode == status, result
        return json.loads(result.stdout)

    return compare


@pytest.mark.usefixtures("unrendered")
def test_a_slower_build_has_its_share_its_worst_networks_and_its_report_and_is_not_run_again(
    compare: Compare, build: Builds, fecbench_here: Run, tmp_path: Path
) -> None:
    document = compare(build("1.0"), build("1.1"), "--output", tmp_path / "out", status=1)
    assert document.keys() >= KEYS
    assert document["verdict"] == "slower"
    assert document["ratio"] == pytest.approx(1.1)
    assert document["interval"] == pytest.approx([1.1, 1.1])
    assert len({one["point"] for one in document["worst"]}) == 3
    for one in document["worst"]:
        assert one["ratio"] == pytest.approx(1.1)
    assert (document["slower_networks"], document["tail_ratio"]) == (4, pytest.approx(1.1))
    check_files(tmp_path / "out", document)
    check_page((tmp_path / "out" / "report.html").read_text(), document)
    done = fecbench_here("report", "--db", tmp_path / "x.sqlite", "--output", tmp_path / "again", "--json")
    assert json.loads(done.stdout)["gate"]["says"] == document["says"]
    table = tmp_path / "ratios.csv"
    fecbench_here("export", "--table", "ratios", "--db", tmp_path / "x.sqlite", "--output", table)
    assert len(table.read_text().splitlines()) == 1 + 4 * 2
    assert compare(build("1.0"), build("1.1"), status=1)["campaign"] == document["campaign"]
    assert compare(build("1.0"), build("1.2"), status=1)["campaign"] != document["campaign"]
    # Only the two commands of one network, since each takes a second.
    for command in document["worst"][0]["replay"]:
        words = shlex.split(command)
        words[-1] = str(tmp_path / words[-1])
        assert fecbench_here(*words[1:]).returncode == 0


def check_files(folder: Path, document: Any) -> None:
    """Check the files for a CI beside the report."""
    assert {*FILES, "report.html"} <= {path.name for path in folder.iterdir()}
    assert json.loads((folder / "compare.json").read_text()) == document
    suite = ElementTree.parse(folder / "junit.xml").getroot()
    slower = {"all networks", "download-10000", "download-50000", "95th percentiles", "single networks"}
    failing = {"failures in both builds", "failures in the new build alone"}
    assert {case.get("name") for case in suite} == slower | failing
    assert (suite.get("tests"), suite.get("failures")) == ("7", "5")
    assert suite.findall("testcase/failure")
    summary = (folder / "summary.md").read_text()
    assert "**slower: new / old = 1.100" in summary
    assert document["worst"][0]["replay"][0] in summary


def check_page(page: str, document: Any) -> None:
    """The first screen of the report: the question, and the verdict."""
    first = page[page.index("<header>") : page.index('<aside class="trust"')]
    words = html.unescape(re.sub(r"\s+", " ", re.sub("<[^>]*>", " ", first)).replace("\u00a0", " "))
    assert re.search(r"made-up: is \S+ \(new\) slower than \S+ \(old\)\?", words)
    assert document["says"] in words
    assert "helps in 0 of 8 cases by more than" in words
    assert "In which networks does FEC help?" not in words
    assert "No variant could be compared" not in page
    below = page[page.index("New beside old") :]
    assert f"trials {document['worst'][0]['old_trial']} and {document['worst'][0]['new_trial']}" in below


def test_a_faster_build_is_faster_and_the_status_is_0(compare: Compare, build: Builds) -> None:
    document = compare(build("1.1"), build("1.0"), status=0)
    assert (document["verdict"], document["worst"]) == ("faster", [])


def test_what_is_within_the_margin_makes_no_difference_that_matters(compare: Compare, build: Builds) -> None:
    document = compare(build("1.0"), build("1.0"), status=0)
    assert document["verdict"] == "no difference that matters"
    assert (document["ratio"], document["interval"]) == (1, [1, 1])
    assert document["pairs"] == 4 * 2 * 6  # of the first look
    assert compare(build("1.0"), build("1.01"), status=0)["verdict"] == "no difference that matters"
    assert compare(build("1.0"), build("1.015"), "--margin", "0.01", status=1)["verdict"] == "slower"


def test_one_slower_workload_is_found_beside_a_faster_one(compare: Compare, build: Builds) -> None:
    document = compare(build("1.0"), build("(1.1 if size == 10_000 else 0.9)"), status=1)
    assert document["says"].startswith(
        "slower: download-10000 1.100 [1.100, 1.100]; surely slower in 4 networks; new / old = 0.995"
    )
    ratios = {label: of_workload["ratio"] for label, of_workload in document["workloads"].items()}
    assert ratios == pytest.approx({"download-10000": 1.1, "download-50000": 0.9})


def test_what_chance_decides_or_has_no_time_is_undecided_and_the_status_is_3(
    compare: Compare, build: Builds
) -> None:
    document = compare(build(OTHERWISE), build(BY_CHANCE), "--minutes", "0.01", status=3)
    assert document["pairs"] <= 4 * 2 * 12
    document = compare(build(OTHERWISE), build(BY_CHANCE), status=3)
    assert document["verdict"] == "undecided"
    assert document["pairs"] == 4 * 2 * 12
    sentence = "all 12 repetitions of each network are there; 1 earlier start has trials here"
    assert document["ended"].startswith(sentence)


FAILS = "(1 if task['seed'] % 2 else 0.1)"
"""A tenth of the time is less than the link takes: the harness calls such a trial failed."""


@pytest.mark.usefixtures("unmade")
def test_a_failure_of_the_new_build_alone_is_a_finding_that_can_be_replayed(
    compare: Compare, build: Builds, tmp_path: Path
) -> None:
    document = compare(build("1.0"), build(FAILS), "--output", tmp_path / "out", status=1)
    count = document["failed"]["new_alone"]
    assert (document["verdict"], document["failed"]["old_alone"]) == ("fails", 0)
    assert document["says"].startswith(f"fails: fails in {count} trials in which the old one does not; ")
    assert {pair["kind"] for pair in document["failing"]} == {"new_alone"}
    summary = (tmp_path / "out" / "summary.md").read_text()
    assert f"{count} in the new one alone" in summary.split("| new / old")[0]
    assert document["failing"][0]["replay"][1] in summary
    suite = ElementTree.parse(tmp_path / "out" / "junit.xml").getroot()
    failures = [case.get("name") for case in suite if case.find("failure") is not None]
    assert "failures in the new build alone" in failures
    # The other way round, it is mended.
    document = compare(build(FAILS), build("1.0"), status=0)
    assert (document["failed"]["new_alone"], document["failed"]["old_alone"]) == (0, count)


@pytest.mark.usefixtures("unrendered")
def test_two_builds_that_always_fail_are_undecided(compare: Compare, build: Builds, tmp_path: Path) -> None:
    document = compare(build("0.1"), build("0.1 * 1.0"), "--output", tmp_path / "out", status=3)
    assert document["verdict"] == "undecided"
    assert document["failed"] == {"both": 48, "new_alone": 0, "old_alone": 0, "run": 48}
    assert "no pair is left to compare: of 48, 48 failed in both builds" in document["says"]
    suite = ElementTree.parse(tmp_path / "out" / "junit.xml").getroot()
    assert int(suite.get("failures", "0")) > 0
    assert "no pair is left" in (tmp_path / "out" / "summary.md").read_text()


def test_where_many_pairs_fail_in_both_nothing_is_said_of_times(compare: Compare, build: Builds) -> None:
    document = compare(build(FAILS), build(f"1.0 * {FAILS}"), status=3)
    assert document["failed"]["both"] > 0
    assert document["pairs"] > 0
    assert "of the pairs are in no ratio because they failed" in document["says"]


def end_after(looks: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the time of all rounds be over after so many looks at it."""
    answers = iter([True] * looks)

    def goes_on(rounds: LimitedRounds) -> bool:
        if next(answers, False):
            return True
        rounds._ends_at = -math.inf
        return False

    monkeypatch.setattr(LimitedRounds, "goes_on", goes_on)


def test_no_group_begins_when_its_time_is_over_and_none_stays_claimed(
    compare: Compare, build: Builds, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    end_after(30, monkeypatch)
    document = compare(build(OTHERWISE), build(BY_CHANCE), status=3)
    assert 0 < document["pairs"] < 4 * 2 * 6
    with closing(sqlite3.connect(tmp_path / "x.sqlite")) as database:
        assert database.execute("SELECT count(*) FROM claims").fetchone() == (0,)


def test_equal_builds_are_undecided_while_a_network_has_no_pair(
    compare: Compare, build: Builds, monkeypatch: pytest.MonkeyPatch
) -> None:
    end_after(5, monkeypatch)
    document = compare(build("1.0"), build("1.0 * 1"), status=3)
    assert "networks and workloads have no pair yet" in document["says"]
    assert document["ended"] == "the time is over before each network has 6 repetitions"


BAD = {
    "nowhere {new}": "OLD nowhere: must be a folder with an impl.toml",
    "{old} nowhere@v1": "NEW nowhere@v1: nowhere: there is no such folder",
    "{old} {other}": "must be two builds of one implementation",
    "{old} {new} nothing": "nothing: cannot be read: no such file, nor a design",
    "{old} {new} realtime-voice --option x": "--option x: must be NAME=VALUE",
    "{old} {new} {design} --option speed=1": "no option 'speed'",
    "{old} {new} {design} --option one_in=0": "one_in = 0 must be at least 1",
    "{old} {new} {messages}": "which is no time: choose a design of downloads",
    "{old} {new} video-live": "made-up has none of its workloads",
    "{old} {new} {design} --output {design}": "is a file",
}


def test_bad_input_is_one_line(fecbench_here: Run, build: Builds, tmp_path: Path) -> None:
    other = tmp_path / "other"
    shutil.copytree(MADE_UP, other)
    declared = other / "impl.toml"
    declared.write_text(declared.read_text().replace('name = "made-up"', 'name = "other"'))
    (tmp_path / "few.toml").write_text(DESIGN)
    (tmp_path / "messages.toml").write_text(design_of(*SIZES, workload("messages")))
    places = {"old": build("1.0"), "new": build("1.1"), "other": other, "design": tmp_path / "few.toml"}
    places["messages"] = tmp_path / "messages.toml"
    for arguments, problem in BAD.items():
        words = [word.format(**places) for word in arguments.split()]
        assert problem in fecbench_here("compare", *words, "--db", tmp_path / "x.sqlite").refusal()
        assert not (tmp_path / "x.sqlite").exists()


def test_a_hunt_finds_what_lies_between_the_networks_of_the_design(
    compare: Compare, build: Builds, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No network of the design has a size above 50 kB, but the searched space has some."""
    space = tmp_path / "space.toml"
    sizes = {"workload.size_bytes": between(1_000, 100_000, scale="log", integer=True)}
    space.write_text(design_of(workload(), workload("upload"), **sizes))
    monkeypatch.setattr("fecbench.runners.hunt.hunt_question.SPACE", space)
    # The fewest trials find it.
    monkeypatch.setattr("fecbench.runners.commands.console.hunting.SHARE_OF_TIME", 0)
    slower = build("(1.3 if size > 60_000 else 1)")
    assert "hunt" not in compare(build("1.0"), slower, status=0)
    document = compare(build("1.0"), slower, "--hunt", "--minutes", 2, status=1)
    assert document["verdict"] != "slower"
    assert document["hunt"]["found"]
    for finding in document["hunt"]["found"]:
        assert finding["network"]["workload.size_bytes"] > 60_000
