"""`fecbench field design` and `compare`, and `advise --path`: what they write, say and refuse."""

import json
from pathlib import Path

import numpy as np
import pytest

from tests.runners.conftest import Fecbench
from tests.support.field_campaigns import plant

BLOCKS = 30


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("home") / "home.sqlite"
    generator = np.random.default_rng(5)
    plant(path, "home", generator.normal(0.1, 0.01, BLOCKS), queue_packets=50)
    plant(path, "home-emulated", generator.normal(0.1, 0.01, BLOCKS), engine="virtual")
    return path


def run(fecbench: Fecbench, *words: object) -> tuple[int, str, str]:
    process = fecbench(*words)
    return process.returncode, process.stdout, process.stderr


def test_the_design_of_a_path_is_planned(home: Path, tmp_path: Path, fecbench: Fecbench) -> None:
    output = tmp_path / "emulated.toml"
    status, text, _ = run(fecbench, "field", "design", "--db", home, "--campaign", "home", "--output", output)
    assert status == 0 and "30 blocks" in text
    status, text, _ = run(fecbench, "plan", "--no-measure", output)
    assert status == 0 and "60 trials" in text


def test_the_same_ratios_are_said_to_be_the_same(home: Path, fecbench: Fecbench) -> None:
    status, text, _ = run(fecbench, "field", "compare", "--db", home)
    assert status == 0 and "the same, within the margin of 2 %" in text
    status, text, _ = run(fecbench, "field", "compare", "--db", home, "--json")
    (row,) = json.loads(text)["comparisons"]
    assert (row["verdict"], row["emulation"], row["variant"]) == ("same", "home-emulated", "rlc")
    status, text, _ = run(fecbench, "show", "--db", home, "--campaign", "home")
    assert "over the path its ratio to off is" in text


def test_another_ratio_is_status_1(tmp_path: Path, fecbench: Fecbench) -> None:
    plant(tmp_path / "db.sqlite", "home", np.random.default_rng(1).normal(0.1, 0.01, BLOCKS))
    other = np.random.default_rng(2).normal(0.3, 0.01, BLOCKS)
    plant(tmp_path / "db.sqlite", "home-emulated", other, engine="virtual")
    status, text, _ = run(fecbench, "field", "compare", "--db", tmp_path / "db.sqlite")
    assert status == 1 and "not the same" in text


@pytest.mark.parametrize(
    ("spread", "repetitions", "sentence"),
    [(0.5, BLOCKS, "would tell whether it is the same"), (0.01, 3, "too few pairs to compare")],
)
def test_what_is_not_sure_is_status_3(
    tmp_path: Path, fecbench: Fecbench, spread: float, repetitions: int, sentence: str
) -> None:
    db, generator = tmp_path / "db.sqlite", np.random.default_rng(1)
    plant(db, "home", generator.normal(0.1, spread, BLOCKS))
    plant(db, "home-emulated", generator.normal(0.1, spread, repetitions), engine="virtual")
    status, text, _ = run(fecbench, "field", "compare", "--db", db)
    assert status == 3 and sentence in text


def test_a_workload_of_too_few_pairs_is_status_3_where_all_others_are_the_same(
    tmp_path: Path, fecbench: Fecbench
) -> None:
    db, logs = tmp_path / "db.sqlite", np.random.default_rng(1).normal(0.1, 0.01, BLOCKS)
    plant(db, "home", logs, of_uploads=5)
    plant(db, "home-emulated", logs, engine="virtual", of_uploads=7)
    status, text, _ = run(fecbench, "field", "compare", "--db", db)
    assert status == 3 and "too few pairs to compare, 5 of the path and 7 emulated" in " ".join(text.split())
    _, text, _ = run(fecbench, "field", "compare", "--db", db, "--json")
    document = json.loads(text)
    assert [row["verdict"] for row in document["comparisons"]] == ["same"]
    (missing,) = document["too_few_pairs"]
    assert (missing["field_pairs"], missing["emulated_pairs"]) == (5, 7)


def test_what_is_no_campaign_of_a_path_is_refused(home: Path, tmp_path: Path, fecbench: Fecbench) -> None:
    plant(tmp_path / "virtual.sqlite", "a", [0.0] * 3, engine="virtual")
    plant(tmp_path / "alone.sqlite", "home", [0.0] * 3)
    virtual, alone, output = tmp_path / "virtual.sqlite", tmp_path / "alone.sqlite", tmp_path / "e.toml"
    for words, why in (
        (("field", "compare", "--db", virtual), "must name one campaign of --engine field"),
        (("field", "compare", "--db", alone), "no campaign emulates the path of 'home'"),
        (("field", "design", "--db", virtual, "--output", output), "was not run with --engine field"),
        (("field", "design", "--db", alone, "--output", output), "no probe was answered"),
        (("field", "design", "--db", home, "--output", tmp_path / "e.txt"), "must end with .toml"),
        (("field", "design", "--db", home, "--output", output), "choose with --campaign"),
        (("advise", "--path", virtual, "--size", "50kB"), "must name one campaign of --engine field"),
        (("advise", "--path", tmp_path / "absent", "--size", "50kB"), "is no file"),
        (("advise", alone, "--path", home, "--size", "50kB"), "give one of them"),
        (("advise", "--campaign", "home", "--rtt", "50ms"), "is of --path FILE"),
        (("advise", "--path", home), "give --size"),
    ):
        status, _, text = run(fecbench, *words)
        assert status == 2 and why in text and text.count("\n") <= 2, (words, text)
    assert not output.exists()


def test_advice_is_for_the_path_that_was_observed(home: Path, fecbench: Fecbench) -> None:
    words = ("advise", "--path", home, "--size", "50kB", "--no-run", "--json")
    status, text, _ = run(fecbench, *words)
    path = json.loads(text)["path"]
    assert status in (0, 3)
    assert path["bandwidth_mbps"]["value"] == pytest.approx(20, rel=0.02)
    assert path["rtt_ms"]["value"] == pytest.approx(50, rel=0.02)
    assert 0.01 < path["loss"]["value"] < 0.03  # down: nothing is lost up
