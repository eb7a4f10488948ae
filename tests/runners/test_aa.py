"""`fecbench aa`: a variant is run against itself, two campaigns are compared, and bad input is one line."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import designs
from results.database import CampaignInfo, Database, TrialKey, TrialRecord
from results.report import report
from runners.aa import against_itself_text
from runners.implementations import REPOSITORY, all_of_them
from runners.provenance import DROPPER, WIRE

FECBENCH = [str(Path(sys.executable).parent / "fecbench")]
BUILT = [DROPPER, WIRE, *(program for each in all_of_them().values() for program in each.programs())]
needs_trials = pytest.mark.skipif(
    os.geteuid() != 0 or not all(path.exists() for path in BUILT), reason="needs root and make build"
)

DESIGN = """
name = "little"
title = "A little campaign"
seed = 5
topology = "single-path"
repetitions = 3
[plan]
method = "wsp"
points = 2
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
label = "xor, 4/5"
implementation = "rquic"
[variants.options]
scheme = "xor"
code_rate = 0.8
"""


@pytest.fixture
def design(tmp_path: Path) -> Path:
    path = tmp_path / "little.toml"
    path.write_text(DESIGN)
    return path


def fecbench(*arguments: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*FECBENCH, *map(str, arguments)], cwd=REPOSITORY, capture_output=True, text=True)


def filled(database: Database, name: str, text: str, factor: float) -> CampaignInfo:
    """A campaign of two variants over 20 repetitions, all times multiplied by `factor`."""
    campaign = database.create_campaign(
        name=name,
        design_text=text,
        seed=1,
        provenance={},
        points=[{"owd_ms": 5}],
        variants=[
            {"label": label, "implementation": "rquic", "options": {}, "baseline": label == "A"}
            for label in ("A", "B")
        ],
        workloads=[{"label": "download-1", "name": "download", "parameters": {"size_bytes": 1}}],
        repetitions=20,
        statistic="median",
        title="x",
    )
    for repetition in range(20):
        for label in ("A", "B"):
            time_s = (1 + repetition) * factor * (1 + 0.001 * ((repetition + (label == "B")) % 2))
            key = TrialKey(label, "download-1", 0, repetition)
            metrics = {"client": {"dct_s": time_s}}
            database.record(
                campaign.id, TrialRecord(key, "ok", "", "2026-01-01T00:00:00Z", 1.0, metrics=metrics)
            )
    return campaign


def test_the_design_against_itself_differs_in_its_variants_alone(design: Path, tmp_path: Path) -> None:
    given = designs.load(design)
    path = tmp_path / "aa.toml"
    path.write_text(against_itself_text(given, "xor, 4/5"))
    made = designs.load(path)
    assert [variant.label for variant in made.variants] == ["xor, 4/5 (A)", "xor, 4/5 (B)"]
    assert [variant.options for variant in made.variants] == [given.variants[1].options] * 2
    for name in set(type(given).model_fields) - {"variants"}:
        assert getattr(made, name) == getattr(given, name)
    assert made.plan().points == given.plan().points


@needs_trials
def test_a_variant_against_itself_is_a_campaign_that_can_be_resumed(design: Path, tmp_path: Path) -> None:
    arguments = [design, "--variant", "xor, 4/5", "--db", tmp_path / "x.sqlite", "--json", "--no-calibrate"]
    ran = fecbench("aa", *arguments)
    found = json.loads(ran.stdout)
    assert ran.returncode == (1 if found["differ"] else 0)
    assert 2 <= found["pairs"] <= 6
    assert found["compared"] == "campaign aa-little-xor-4-5"
    again = fecbench("aa", *arguments, "--resume")
    assert json.loads(again.stdout) == found
    assert "0 trials to run" in again.stderr
    shown = fecbench("show", "--db", tmp_path / "x.sqlite", "--json")
    keys = [trial["key"] for trial in json.loads(shown.stdout)["trials"]]
    assert {key["variant"] for key in keys} == {"xor, 4/5 (A)", "xor, 4/5 (B)"}
    assert len(keys) == 12


def test_campaigns_of_a_design_are_compared_trial_by_trial(tmp_path: Path) -> None:
    with Database.open(str(tmp_path / "x.sqlite"), create=True) as database:
        for name, factor in (("one", 1.0), ("same", 1.0), ("slower", 1.03)):
            filled(database, name, "text", factor)
    compare = ["aa", "--db", tmp_path / "x.sqlite", "--json", "--between", "one", "--and"]
    same = fecbench(*compare, "same")
    assert same.returncode == 0
    assert json.loads(same.stdout)["median"] == 1
    slower = fecbench(*compare, "slower")
    assert slower.returncode == 1
    assert json.loads(slower.stdout)["median"] == pytest.approx(1.03)
    assert json.loads(slower.stdout)["pairs"] == 40


def test_the_report_quotes_the_comparison_with_itself_of_the_same_database(tmp_path: Path) -> None:
    with Database.open(str(tmp_path / "x.sqlite"), create=True) as database:
        campaign = filled(database, "one", "text", 1.0)
        without = report(database, campaign, tmp_path / "without").html.read_text()
        filled(database, "aa-one-A", "other", 1.0)
        quoted = report(database, campaign, tmp_path / "with").html.read_text()
    assert "20 pairs; median ratio" in quoted
    assert "pairs; median ratio" not in without


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["DESIGN"], "needs DESIGN and --variant, or --between and --and"),
        (["--between", "one"], "needs DESIGN and --variant, or --between and --and"),
        (["DESIGN", "--variant", "of"], "no such variant; did you mean 'off'?"),
        (["--between", "one", "--and", "tow"], "no campaign 'tow'"),
        (["--between", "one", "--and", "other"], "ran different designs"),
        (["--between", "one", "--and", "empty"], "0 pairs are ok; a comparison needs at least 2"),
    ],
)
def test_bad_input_is_one_line_and_status_2(
    design: Path, tmp_path: Path, arguments: list[str], said: str
) -> None:
    path = str(tmp_path / "x.sqlite")
    with Database.open(path, create=True) as database:
        filled(database, "one", "text", 1.0)
        filled(database, "other", "another text", 1.0)
        one = database.campaign("one")
        assert one
        database.create_campaign(
            name="empty",
            design_text="text",
            seed=1,
            provenance={},
            points=one.points,
            variants=one.variants,
            workloads=one.workloads,
            repetitions=20,
            statistic="median",
            title="x",
        )
    given = [str(design) if argument == "DESIGN" else argument for argument in arguments]
    refused = fecbench("aa", *given, "--db", path)
    assert refused.returncode == 2
    assert refused.stderr.count("\n") == 1
    assert said in refused.stderr


def test_a_wrong_variant_is_refused_before_a_database_is_made(tmp_path: Path) -> None:
    database = tmp_path / "none.sqlite"
    refused = fecbench("aa", "designs/catalog/smoke.toml", "--variant", "nope", "--db", database)
    assert refused.returncode == 2
    assert refused.stderr.count("\n") == 1
    assert not database.exists()
