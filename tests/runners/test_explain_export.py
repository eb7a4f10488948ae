"""`fecbench explain` and `fecbench export`: what they print and write, and bad input in one line."""

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from results.database import Database, TrialKey, TrialRecord, Variant, Workload

OFF, XOR, RS = "FEC off", "XOR 4/5", "RS 4/5"


def campaign(path: Path, *, points: int, labels: tuple[str, ...] = (OFF, XOR), state: str = "ok") -> Path:
    """One campaign; XOR helps where the loss is above 3.5 %, and nothing else differs."""
    random = np.random.default_rng(1)
    drawn = [
        {"loss.p": random.uniform(0.01, 0.08), "owd_ms": random.uniform(100, 400)} for _ in range(points)
    ]
    variants = [
        Variant(label=label, implementation="rquic", options={}, baseline=label == OFF) for label in labels
    ]
    workload = Workload(label="download-1000", name="download", parameters={"size_bytes": 1000})
    with Database.open(str(path), create=True) as database:
        info = database.create_campaign(
            "planted", "", 1, {}, drawn, variants, [workload], 1, "median", "Planted"
        )
        for point, factors in enumerate(drawn):
            for label in labels:
                helped = label == XOR and factors["loss.p"] > 0.035
                dct_s = math.exp(random.normal(0, 0.05)) * (0.7 if helped else 1)
                record = TrialRecord(
                    key=TrialKey(label, "download-1000", point, 0),
                    state=state,  # type: ignore[arg-type]
                    reason="",
                    started_at="2026-01-02T03:04:05+00:00",
                    duration_s=1.0,
                    metrics={"client": {"dct_s": dct_s, "packets_lost": 0.0}},
                )
                database.record(info.id, record)
    return path


@pytest.fixture(scope="module")
def planted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return campaign(tmp_path_factory.mktemp("planted") / "p.sqlite", points=60, labels=(OFF, XOR, RS))


def test_explain_prints_the_planted_rule_and_draws_the_figures(
    fecbench_here: Any, planted: Path, tmp_path: Path
) -> None:
    done = fecbench_here("explain", "--db", planted, "--variant", XOR, "--output", tmp_path / "figures")
    assert done.returncode == 0, done.stderr
    rule = next(line for line in done.stdout.splitlines() if line.startswith("loss.p ≥ 3."))
    assert ": ratio 0.7" in rule
    assert {path.name for path in (tmp_path / "figures").iterdir()} == {
        f"{name}-XOR-4-5{suffix}" for name in ("map", "effects") for suffix in (".png", ".svg")
    }


def test_explain_compares_every_variant_with_the_baseline_in_json(fecbench_here: Any, planted: Path) -> None:
    done = fecbench_here("explain", "--db", planted, "--json")
    found: list[dict[str, Any]] = json.loads(done.stdout)
    assert [(each["variant"], each["baseline"]) for each in found] == [(XOR, OFF), (RS, OFF)]
    assert len(found[0]["rules"]) >= 2
    assert found[1]["rules"] == []
    assert "no factor is seen" in found[1]["sentence"]
    assert next(iter(found[0]["importances"])) == "loss.p"


def test_explain_says_that_points_are_too_few(fecbench_here: Any, tmp_path: Path) -> None:
    done = fecbench_here("explain", "--db", campaign(tmp_path / "x.sqlite", points=5))
    assert done.returncode == 0
    assert "Too few points for a rule: 5, and 30 are needed." in done.stdout
    assert "everywhere: ratio" in done.stdout
    assert "[no interval], 5 points" in done.stdout


@pytest.mark.parametrize(
    ("made", "options", "said"),
    [
        ({"points": 5, "labels": (OFF,)}, [], "one variant only"),
        ({"points": 5, "labels": (XOR, RS)}, [], "names no baseline: choose with --baseline"),
        ({"points": 5, "state": "failed"}, [], "no repetition is ok for both variants"),
        ({"points": 5}, ["--variant", "XOR 4/6"], "did you mean 'XOR 4/5'"),
        ({"points": 5}, ["--variant", OFF], "is the baseline"),
        ({"points": 5}, ["--metric", "client.dct"], "no trial measured 'client.dct'"),
        ({"points": 5}, ["--metric", "client.packets_lost"], "the metric is 0"),
        ({"points": 5}, ["--campaign", "plant"], "did you mean 'planted'"),
    ],
)
def test_explain_refuses_in_one_line(
    fecbench_here: Any, tmp_path: Path, made: dict[str, Any], options: list[str], said: str
) -> None:
    made_of = campaign(tmp_path / "x.sqlite", **made)
    assert said in fecbench_here("explain", "--db", made_of, *options).refusal()


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
@pytest.mark.parametrize(("table", "rows"), [("trials", 180), ("points", 60), ("metrics", 360)])
def test_export_writes_every_row_of_a_table(
    fecbench_here: Any, planted: Path, tmp_path: Path, suffix: str, table: str, rows: int
) -> None:
    path = tmp_path / f"out{suffix}"
    done = fecbench_here("export", "--db", planted, "--output", path, "--table", table)
    assert done.returncode == 0, done.stderr
    assert f"{rows} rows" in done.stdout
    assert len(pd.read_csv(path) if suffix == ".csv" else pd.read_parquet(path)) == rows


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--output", "x.xlsx"], "must end with .csv or .parquet"),
        (["--output", "no/such/x.csv"], "its folder does not exist"),
        (["--output", "x.csv", "--table", "trails"], "'trails'"),
        (["--output", "x.csv", "--campaign", "plant"], "did you mean 'planted'"),
    ],
)
def test_export_refuses_in_one_line(fecbench_here: Any, planted: Path, options: list[str], said: str) -> None:
    assert said in fecbench_here("export", "--db", planted, *options).refusal()
