"""`fecbench explain` and `fecbench export`: what they print and write, and bad input in one line."""

import json
import math
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from fecbench import designs
from fecbench.results import reading
from fecbench.results.store.database import Database
from fecbench.results.store.records import TrialKey
from tests.support.campaigns import new_campaign, trial, variants, workload

SCREENING = Path(__file__).parent / "data" / "screening.toml"
OFF, XOR, RS = "FEC off", "XOR 4/5", "RS 4/5"


def test_explain_finds_the_planted_rule_for_each_variant_and_draws_the_figures(
    fecbench_here: Any, planted: Path, tmp_path: Path
) -> None:
    result = fecbench_here("explain", "--db", planted, "--json", "--output", tmp_path / "figures")
    document: list[dict[str, Any]] = json.loads(result.stdout)
    assert [(entry["variant"], entry["baseline"]) for entry in document] == [(XOR, OFF), (RS, OFF)]
    assert any(rule["text"].startswith("loss.p ≥ 3.") for rule in document[0]["rules"])
    assert document[1]["rules"] == []
    assert "no tree predicts networks that it has not seen" in document[1]["sentence"]
    assert next(iter(document[0]["importances"])) == "loss.p"
    assert {path.name for path in (tmp_path / "figures").iterdir()} >= {
        f"{name}-XOR-4-5{suffix}" for name in ("map", "effects") for suffix in (".png", ".svg", ".pdf")
    }


def test_explain_says_that_points_are_too_few(
    fecbench_here: Any, plant: Callable[..., Path], tmp_path: Path
) -> None:
    result = fecbench_here("explain", "--db", plant(tmp_path / "x.sqlite", points=5))
    assert result.returncode == 0
    assert "Too few networks for a rule: 5, and 30 are needed." in result.stdout
    assert "everywhere: ratio" in result.stdout
    assert "[no interval], 5 networks" in result.stdout


def test_explain_goes_on_after_a_variant_of_which_nothing_can_be_explained(
    fecbench_here: Any, plant: Callable[..., Path], tmp_path: Path
) -> None:
    database = plant(tmp_path / "x.sqlite", points=5, labels=(OFF, XOR, RS), unsupported=(XOR,))
    result = fecbench_here("explain", "--db", database)
    assert result.returncode == 0, result.stderr
    lines = result.stdout.splitlines()
    assert lines[0] == f"{XOR} against {OFF}: nothing to explain: no pair has a ratio: {XOR}: unsupported (5)"
    assert lines[1].startswith(f"client.dct_s of “{RS}” / “{OFF}”")
    first, second = json.loads(fecbench_here("explain", "--db", database, "--json").stdout)
    assert (first["variant"], first["everywhere"], first["sentence"]) == (
        XOR,
        None,
        f"nothing to explain: no pair has a ratio: {XOR}: unsupported (5)",
    )
    assert second["everywhere"]["points"] == 5
    lost = plant(tmp_path / "y.sqlite", points=5, labels=(OFF, XOR, RS), unsupported=(XOR, RS))
    refusal = fecbench_here("explain", "--db", lost).refusal()
    assert f"{XOR}: unsupported (5); {RS} against {OFF}: nothing to explain" in refusal


def test_explain_tells_the_effects_of_a_screening(fecbench_here: Any, tmp_path: Path) -> None:
    text = SCREENING.read_text()
    points = designs.parse(text, "screening").plan().points
    off, on = "no FEC", "FEC"
    with Database.open(str(tmp_path / "x.sqlite"), create=True) as database:
        info = database.create_campaign(
            new_campaign(
                design_text=text,
                points=points,
                repetitions=6,
                variants=variants(off, on, baseline=off),
                workloads=[workload("download-1000", size_bytes=1000)],
            )
        )
        records = []
        for point, label, repetition in product(range(len(points)), (off, on), range(6)):
            # From the least to the greatest loss rate the ratio halves; nothing else matters.
            place = (points[point]["loss.p"] - 0.005) / 0.045
            dct_s = 1.0 if label == off else 0.5**place
            key = TrialKey(label, "download-1000", point, repetition)
            records.append(trial(key, metrics={"client": {"dct_s": dct_s}}))
        database.record_all(info.id, records)
    result = fecbench_here("explain", "--db", tmp_path / "x.sqlite")
    assert (
        "download-1000: over its range, loss.p changes the ratio by a factor of 2.00, downwards"
        in result.stdout
    )
    (document,) = json.loads(fecbench_here("explain", "--db", tmp_path / "x.sqlite", "--json").stdout)
    assert document["screening"][0]["factor"] == "loss.p"
    assert document["screening"][0]["mean"] == pytest.approx(math.log(0.5))
    assert [row["matters"] for row in document["screening"]] == [True, False, False, False]


def test_show_and_explain_say_in_how_many_pairs_one_variant_alone_timed_out(
    fecbench_here: Any, plant: Callable[..., Path], tmp_path: Path
) -> None:
    database = plant(tmp_path / "x.sqlite", points=5, labels=(OFF, XOR, RS), timed_out=(XOR,))
    sentence = (
        f"Of 5 planned pairs of “{XOR}” and “{OFF}”, 5 have a ratio."
        f" “{XOR}” alone failed or timed out in 5 pairs, “{OFF}” alone in 0, both in 0: that counts as"
        " worse than any value; which of two is worse, nobody can tell."
    )
    assert sentence in fecbench_here("show", "--db", database).stdout.splitlines()
    document = json.loads(fecbench_here("explain", "--db", database, "--json").stdout)
    assert [entry["left_out"] for entry in document] == [sentence, ""]
    everywhere = document[0]["everywhere"]
    assert everywhere["text"] == "everywhere: ratio ∞ [no interval], 5 networks: undecided"
    assert everywhere["ratio"] == "Infinity"
    printed = fecbench_here("explain", "--db", database, "--baseline", RS, "--variant", OFF).stdout
    assert "planned pairs" not in printed


NOT_EXPLAINED: list[tuple[dict[str, Any], list[str], str]] = [
    ({"labels": (OFF,)}, [], "one variant only"),
    ({"labels": (XOR, RS)}, [], "names no baseline: choose with --baseline"),
    ({"state": "invalid"}, [], "no pair has a ratio: FEC off: invalid; XOR 4/5: invalid (5)"),
    ({}, ["--variant", "XOR 4/6"], "did you mean 'XOR 4/5'"),
    ({}, ["--variant", OFF], "is the baseline"),
    ({}, ["--metric", "client.dct"], "'client.dct'; did you mean 'client.dct_s'"),
    ({}, ["--metric", "client.packets_lost"], "median of client.packets_lost is 0 (5)"),
    ({}, ["--campaign", "plant"], "did you mean 'planted'"),
]


def test_explain_refuses_in_one_line(fecbench_here: Any, plant: Callable[..., Path], tmp_path: Path) -> None:
    for number, (database_of, options, message) in enumerate(NOT_EXPLAINED):
        database = plant(tmp_path / f"{number}.sqlite", points=5, **database_of)
        assert message in fecbench_here("explain", "--db", database, *options).refusal()


def test_export_writes_every_row_of_a_table(fecbench_here: Any, planted: Path, tmp_path: Path) -> None:
    for read, suffix in ((pd.read_csv, ".csv"), (pd.read_parquet, ".parquet")):
        for table, rows in {"trials": 180, "points": 60, "metrics": 360, "ratios": 120}.items():
            path = tmp_path / f"out{suffix}"
            result = fecbench_here("export", "--db", planted, "--output", path, "--table", table)
            assert result.returncode == 0, result.stderr
            assert f"{rows} rows" in result.stdout
            assert len(read(path)) == rows


def test_ratios_are_those_that_a_notebook_reads(fecbench_here: Any, planted: Path, tmp_path: Path) -> None:
    path = tmp_path / "ratios.parquet"
    fecbench_here("export", "--db", planted, "--output", path, "--table", "ratios")
    exported = pd.read_parquet(path)
    with reading.Results(str(planted)) as opened:
        (name,) = opened.campaigns()["campaign"]
        expected, points = opened[name].intervals(OFF, XOR), opened[name].points()
    assert set(exported["compared_with"]) == {OFF}
    exported = exported[exported["variant"] == XOR].reset_index(drop=True)
    same = ["workload", "point", "metric", "pairs", "ratio", "low", "high", "margin", "verdict", "discovery"]
    pd.testing.assert_frame_equal(exported[same], expected[same], check_dtype=False, check_categorical=False)
    assert exported["variant_value"].tolist() == expected["variant"].tolist()
    pd.testing.assert_frame_equal(exported[list(points)], points, check_dtype=False)


def test_export_writes_a_series(fecbench_here: Any, planted: Path, tmp_path: Path) -> None:
    path = tmp_path / "cwnd.csv"
    command = ["export", "--db", planted, "--output", path, "--table", "series", "--series", "cwnd"]
    assert "series" in fecbench_here(*command).stdout
    frame = pd.read_csv(path)
    assert len(frame) == 180 * 2
    assert frame[["t_s", "window_bytes"]].drop_duplicates().values.tolist() == [[0.0, 1], [0.5, 2]]
    assert frame["id"].nunique() == 180


REFUSED: list[tuple[list[str], str]] = [
    (["--output", "x.xlsx"], "must end with .csv or .parquet"),
    (["--output", "x.tex", "--table", "ratios"], "must end with .csv or .parquet"),
    (["--output", "x.xlsx", "--table", "summary"], "must end with .csv, .parquet, .tex or .md"),
    (["--output", "no/such/x.csv"], "its folder does not exist"),
    (["--output", "x.csv", "--table", "trails"], "'trails'"),
    (["--output", "x.csv", "--table", "series"], "--table series and --series NAME need each other"),
    (["--output", "x.csv", "--series", "cwnd"], "--table series and --series NAME need each other"),
    (["--output", "x.csv", "--table", "series", "--series", "cwn"], "did you mean 'cwnd'?"),
    (["--output", "x.csv", "--table", "points", "--metric", "client.dct_s"], "has no metrics: leave it out"),
    (["--output", "x.csv", "--table", "targets"], "broadcast live video over a link of known delay"),
    (
        ["--output", "x.csv", "--table", "ratios", "--metric", "client.dct_s", "--metric", "x"],
        "--metric x: ratios: of one metric at a time",
    ),
    (["--output", "x.csv", "--campaign", "plant"], "did you mean 'planted'"),
]


def test_export_refuses_in_one_line(fecbench_here: Any, planted: Path) -> None:
    for options, message in REFUSED:
        assert message in fecbench_here("export", "--db", planted, *options).refusal()
