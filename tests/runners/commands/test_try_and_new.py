"""`fecbench try` and `fecbench new`: a question in ranges, without a file."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fecbench import designs
from tests.runners.conftest import MADE_UP, Done

Run = Callable[..., Done]
ARMS = ("--implementation", "made-up", "--arms", "one_in=1,one_in=2")


@pytest.fixture
def folder(tmp_path: Path) -> tuple[str, str]:
    """A simulator in which the second arm takes 1.3 times as long."""
    written = tmp_path / "made-up"
    shutil.copytree(MADE_UP, written)
    program = written / "simulator.py"
    planted = program.read_text().replace(
        "+ jitter_s\n", '+ jitter_s\n    dct_s *= 1.3 if client["options"]["one_in"] == 2 else 1\n'
    )
    assert planted != program.read_text()
    program.write_text(planted)
    return "--implementations", f"made-up={written}"


def test_new_writes_a_design_that_plans_and_replaces_no_file(fecbench_here: Run, tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    ranges = ("--bandwidth", "0.8..20Mbit/s", "--rtt", "40..400ms", "--loss", "1%", "--burst", "2..4")
    written = fecbench_here("new", path, *ranges, "--size", "10kB,1MiB", "--cc", "cubic,bbr3")
    assert written.returncode == 0, written
    assert f"fecbench run {path} --engine virtual" in written.stdout
    design = designs.load(path)
    assert design.parameters == {
        "bandwidth_mbps",
        "rtt_ms",
        "loss.rate",
        "loss.burst",
        "loss.model",
        "queue_bdp",
    }
    assert [workload.label for workload in design.workloads] == ["download-10000", "download-1048576"]
    compared = {variant.label: variant.compared_with for variant in design.variants}
    assert compared == {
        "Cubic, no FEC": None,
        "Cubic, safe": "Cubic, no FEC",
        "BBRv3, no FEC": None,
        "BBRv3, safe": "BBRv3, no FEC",
    }
    assert fecbench_here("plan", path, "--json", "--no-measure").returncode == 0
    path.write_text("mine")
    again = fecbench_here("new", path)
    assert (again.returncode, again.stderr) == (
        2,
        f"fecbench: FILE {path}: is there already: give the name of a new file\n",
    )
    assert path.read_text() == "mine"


def test_try_answers_keeps_its_campaign_and_does_not_run_it_twice(
    fecbench_here: Run, folder: tuple[str, str], tmp_path: Path
) -> None:
    words = ("try", *ARMS, *folder, "--trials", 320, "--db", tmp_path / "x.sqlite", "--json")
    first = fecbench_here(*words)
    assert first.returncode == 0, first
    document: Any = json.loads(first.stdout)
    assert document["states"] == {"ok": 320} and document["planned"] == 320
    (answer,) = document["answers"]
    assert (answer["variant"], answer["baseline"]) == ("one_in=2", "one_in=1")
    assert answer["harms"] == answer["cases"] == 16
    design = designs.parse(document["design"], "kept.toml")
    assert design.name == document["campaign"]
    again = fecbench_here(*words)
    assert json.loads(again.stdout) == document
    assert "320 are there already" in again.stderr or "0 trials to run" in again.stderr, again
    other = json.loads(fecbench_here(*words, "--loss", "2%").stdout)
    assert other["campaign"] != document["campaign"]


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (("--bandwidth", "5kB"), "'5kB': must be a rate such as 20Mbit/s or 800kbit/s"),
        (("--bandwidth", "50..5Mbit/s"), "'50..5Mbit/s': the low end comes first"),
        (("--rtt", "0ms"), "rtt_ms = 0: must be above 0"),
        (("--loss", "0..5%"), "loss = 0: must be above 0 where it is a range"),
        (("--loss", "120%"), "loss = 1.2: must be 0 or more, and below 1"),
        (("--size", "1.5B"), "'1.5B': must be 1 to 8 whole sizes"),
        (("--burst", "many"), "'many': must be a number such as 2, or a range such as 1..4"),
        (("--burst", "0"), "burst = 0: must be 1 or more packets in a row"),
        (("--queue-bdp", "0..2"), "queue_bdp = 0: must be above 0"),
        (
            ("--trials", "1000000", "--bandwidth", "5", "--rtt", "5ms", "--loss", "1%"),
            "trials = 1000000: must be",
        ),
        (("--arms", "none"), "--arms 'none': must be two or more, such as none,safe"),
        (("--arms", "none,save"), "--arms: there is no variant 'save'; did you mean 'safe'?"),
        (("--arms", "none,scheme="), "--arms 'scheme=': 'scheme=': must be NAME=VALUE"),
        (("--arms", "none,none"), "variants: 'no FEC' is given twice"),
        (("--implementation", "rquic"), "--arms none: is of noq-fec; give options of rquic"),
        (("--implementation", "rqic"), "rqic"),
        (("--cc", "cubic,bbr"), "congestion_control"),
    ],
)
def test_what_no_network_or_arm_is_is_refused_in_one_line(
    fecbench_here: Run, tmp_path: Path, words: tuple[str, ...], problem: str
) -> None:
    result = fecbench_here("try", "--trials", 20, *words, "--db", tmp_path / "x.sqlite")
    assert result.returncode == 2, result
    assert problem in result.stderr and result.stderr.count("\n") == 1, result
    assert not (tmp_path / "x.sqlite").exists()
