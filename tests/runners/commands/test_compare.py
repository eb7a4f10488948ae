"""`fecbench compare` with a simulator that is made up, and builds of it that are slower by a known share."""

import json
import shlex
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from fecbench.runners.commands.compare import FILES
from tests.runners.conftest import MADE_UP, Done

DESIGN = """
name = "few"
title = "Few networks"
seed = 5
topology = "single-path"
repetitions = 12
statistic = "mean"
[plan]
method = "sobol"
points = 4
[factors]
owd_ms = { min = 10, max = 50 }
loss.p = { min = 0.01, max = 0.05 }
[constants]
bandwidth_mbps = 10
loss.model = "uniform"
[[workloads]]
name = "download"
size_bytes = [10_000, 50_000]
[[workloads]]
name = "upload"
size_bytes = 10_000
[[variants]]
label = "any"
implementation = "noq-fec"
"""
BY_CHANCE = "(2 if task['seed'] % 2 else 4.5)"
"""As often shorter as longer than three times as long, by the same factor."""
KEYS = {"verdict", "ratio", "interval", "helps", "harms", "equivalent", "worst"}
QUICK = ("--json", "--no-calibrate", "--jobs", "1")
Builds = Callable[[str], Path]
Compare = Callable[..., Any]
Run = Callable[..., Done]


@pytest.fixture
def build(tmp_path: Path) -> Builds:
    """A build whose transfers take so many times as long."""

    def build(times: str) -> Path:
        folder = tmp_path / f"build-{times.replace('*', '').replace(' ', '-').replace('/', '-')}"
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
        done = fecbench_here("compare", *arguments, design, "--db", tmp_path / "x.sqlite", *QUICK)
        assert done.returncode == status, done
        return json.loads(done.stdout)

    return compare


def test_a_slower_build_is_slower_by_its_share_has_its_worst_networks_and_is_not_run_again(
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
    check_files(tmp_path / "out", document)
    assert compare(build("1.0"), build("1.1"), status=1)["campaign"] == document["campaign"]
    assert compare(build("1.0"), build("1.2"), status=1)["campaign"] != document["campaign"]
    # Only the two commands of one network, since each takes a second.
    for command in document["worst"][0]["replay"]:
        words = shlex.split(command)
        words[-1] = str(tmp_path / words[-1])
        assert fecbench_here(*words[1:]).returncode == 0


def check_files(folder: Path, document: Any) -> None:
    """What a CI is given, beside the report."""
    assert {*FILES, "report.html"} <= {path.name for path in folder.iterdir()}
    assert json.loads((folder / "compare.json").read_text()) == document
    suite = ElementTree.parse(folder / "junit.xml").getroot()
    assert {case.get("name") for case in suite} == {"all networks", "download-10000", "download-50000"}
    assert (suite.get("tests"), suite.get("failures")) == ("3", "3")
    assert suite.findall("testcase/failure")
    summary = (folder / "summary.md").read_text()
    assert "**slower: new / old = 1.100" in summary
    assert document["worst"][0]["replay"][0] in summary


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
    assert document["says"].startswith("slower: download-10000 1.100 [1.100, 1.100]; new / old = 0.995")
    ratios = {label: of_workload["ratio"] for label, of_workload in document["workloads"].items()}
    assert ratios == pytest.approx({"download-10000": 1.1, "download-50000": 0.9})


def test_what_chance_decides_or_has_no_time_is_undecided_and_the_status_is_3(
    compare: Compare, build: Builds
) -> None:
    document = compare(build("3.0"), build(BY_CHANCE), "--minutes", "0.01", status=3)
    assert document["pairs"] <= 4 * 2 * 12
    document = compare(build("3.0"), build(BY_CHANCE), status=3)
    assert document["verdict"] == "undecided"
    assert document["pairs"] == 4 * 2 * 12
    assert document["ended"] == "all 12 repetitions of each network are there"


def test_failures_of_a_new_build_count_as_slow(compare: Compare, build: Builds) -> None:
    # A tenth of the time is less than the link takes: the harness calls such a trial failed.
    document = compare(build("1.0"), build("(1 if task['seed'] % 2 else 0.1)"), status=1)
    assert document["failed"]["new_alone"] > 0
    assert document["failed"]["old_alone"] == 0


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
    (tmp_path / "messages.toml").write_text(f'{DESIGN}[[workloads]]\nname = "messages"\n')
    places = {"old": build("1.0"), "new": build("1.1"), "other": other, "design": tmp_path / "few.toml"}
    places["messages"] = tmp_path / "messages.toml"
    for arguments, problem in BAD.items():
        words = [word.format(**places) for word in arguments.split()]
        assert problem in fecbench_here("compare", *words, "--db", tmp_path / "x.sqlite").refusal()
        assert not (tmp_path / "x.sqlite").exists()
