"""Whole campaigns by the command, with real endpoints: results and resumption."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from runners.implementations import REPOSITORY, all_of_them
from runners.provenance import DROPPER, WIRE

FECBENCH = [str(Path(sys.executable).parent / "fecbench")]
BUILT = [DROPPER, WIRE, *(program for each in all_of_them().values() for program in each.programs())]

pytestmark = [
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root: makes namespaces"),
    pytest.mark.skipif(not all(path.exists() for path in BUILT), reason="needs make build"),
]

DESIGN = """
name = "little"
title = "A little campaign"
seed = 5
topology = "single-path"
repetitions = 2
timeout_s = 30
[plan]
method = "wsp"
points = 3
[factors]
bandwidth_mbps = { min = 5, max = 20 }
loss.p = { min = 0.05, max = 0.1 }
[constants]
owd_ms = 5
loss.model = "uniform"
[[workloads]]
name = "download"
size_bytes = 20_000
[[variants]]
label = "off"
implementation = "rquic"
options = { scheme = "none" }
baseline = true
[[variants]]
label = "xor"
implementation = "rquic"
options = { scheme = "xor", code_rate = 0.8 }
"""
TRIALS = 3 * 2 * 2


@pytest.fixture
def design(tmp_path: Path) -> Path:
    path = tmp_path / "little.toml"
    path.write_text(DESIGN)
    return path


def fecbench(*arguments: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*FECBENCH, *map(str, arguments)], cwd=REPOSITORY, capture_output=True, text=True, timeout=200
    )


def trials_of(database: Path) -> list[dict[str, Any]]:
    shown = fecbench("show", "--db", database, "--json")
    assert shown.returncode == 0, shown.stderr
    trials: list[dict[str, Any]] = json.loads(shown.stdout)["trials"]
    return sorted(trials, key=lambda trial: json.dumps(trial["key"]))


def assert_complete(database: Path) -> list[dict[str, Any]]:
    trials = trials_of(database)
    keys = {json.dumps(trial["key"]) for trial in trials}
    assert len(trials) == len(keys) == TRIALS
    assert {trial["state"] for trial in trials} == {"ok"}
    return trials


def test_the_same_design_meets_the_same_losses_again(design: Path, tmp_path: Path) -> None:
    runs = []
    for name in ("one.sqlite", "two.sqlite"):
        ran = fecbench("run", "--no-calibrate", design, "--db", tmp_path / name, "--json")
        assert ran.returncode == 0, ran.stderr
        assert json.loads(ran.stdout)["states"] == {"ok": TRIALS}
        runs.append(assert_complete(tmp_path / name))
    dropped = 0
    for one, other in zip(*runs, strict=True):
        assert one["key"] == other["key"]
        assert one["seeds"] == other["seeds"]
        for name, log in one["verdicts"].items():
            common = min(log["packets"], other["verdicts"][name]["packets"])
            both = [[n for n in each["verdicts"][name]["dropped"] if n < common] for each in (one, other)]
            assert both[0] == both[1]
            dropped += len(both[0])
    assert dropped > 10, "the losses are real"


def test_variants_of_a_point_and_repetition_meet_the_same_losses(design: Path, tmp_path: Path) -> None:
    fecbench("run", "--no-calibrate", design, "--db", tmp_path / "x.sqlite", "--filter", "repetition=0")
    groups: dict[int, list[dict[str, Any]]] = {}
    for trial in trials_of(tmp_path / "x.sqlite"):
        groups.setdefault(trial["key"]["point"], []).append(trial)
    assert len(groups) == 3
    for one, other in groups.values():
        assert one["seeds"] == other["seeds"]
    assert len({group[0]["seeds"]["internet/down"] for group in groups.values()}) == 3


def test_fec_recovers_packets_and_its_baseline_sends_no_repair(design: Path, tmp_path: Path) -> None:
    fecbench("run", "--no-calibrate", design, "--db", tmp_path / "x.sqlite")
    counts = {"off": [0, 0], "xor": [0, 0]}
    for trial in assert_complete(tmp_path / "x.sqlite"):
        count = counts[trial["key"]["variant"]]
        count[0] += trial["metrics"]["server"]["repair_sent"]
        count[1] += trial["metrics"]["client"]["packets_recovered"]
    assert counts["off"] == [0, 0]
    assert counts["xor"][0] > 0
    assert counts["xor"][1] > 0


def test_a_complete_campaign_is_not_run_again(design: Path, tmp_path: Path) -> None:
    database = tmp_path / "x.sqlite"
    assert fecbench("run", "--no-calibrate", design, "--db", database, "--filter", "point=0").returncode == 0
    refused = fecbench("run", "--no-calibrate", design, "--db", database)
    assert refused.returncode == 2
    assert "--resume" in refused.stderr
    assert fecbench("run", "--no-calibrate", design, "--db", database, "--resume").returncode == 0
    before = database.read_bytes()
    again = fecbench("run", "--no-calibrate", design, "--db", database)
    assert again.returncode == 0
    assert "0 trials to run" in again.stderr
    assert database.read_bytes() == before
    assert_complete(database)


def test_a_campaign_of_that_name_with_another_design_is_refused(design: Path, tmp_path: Path) -> None:
    database = tmp_path / "x.sqlite"
    assert fecbench("run", "--no-calibrate", design, "--db", database, "--filter", "point=0").returncode == 0
    before = database.read_bytes()
    design.write_text(DESIGN.replace("seed = 5", "seed = 6"))
    refused = fecbench("run", "--no-calibrate", design, "--db", database, "--resume")
    assert refused.returncode == 2
    assert refused.stderr.count("\n") == 1
    assert "another design" in refused.stderr
    assert database.read_bytes() == before


def test_two_trials_at_once_do_not_meet(design: Path, tmp_path: Path) -> None:
    ran = fecbench("run", "--no-calibrate", design, "--db", tmp_path / "x.sqlite", "--jobs", "2")
    assert ran.returncode == 0, ran.stderr
    assert_complete(tmp_path / "x.sqlite")


def test_replay_meets_the_same_losses_and_records_everything(design: Path, tmp_path: Path) -> None:
    database = tmp_path / "x.sqlite"
    assert fecbench("run", "--no-calibrate", design, "--db", database, "--filter", "point=1").returncode == 0
    trial = trials_of(database)[0]
    before = database.read_bytes()
    artefacts = tmp_path / "artefacts"
    replayed = fecbench("replay", trial["id"], "--db", database, "--output", artefacts, "--json")
    assert replayed.returncode == 0, replayed.stderr
    document = json.loads(replayed.stdout)
    assert document["same"]
    assert document["recorded"]["key"] == document["replayed"]["key"] == trial["key"]
    assert database.read_bytes() == before
    for host in ("client", "server"):
        assert (artefacts / f"{host}.pcap").stat().st_size > 1000
        assert list((artefacts / host).glob("*.sqlog")) or list((artefacts / host).glob("*.qlog"))
    assert (artefacts / "client" / "keys.log").read_text().strip()
