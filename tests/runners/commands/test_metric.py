"""`--metric`: every command that compares takes another metric, if trials have it."""

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from fecbench.results.metrics import ALL
from fecbench.results.store.database import Database
from fecbench.results.store.records import TrialKey, Workload
from tests.support.campaigns import new_campaign, trial, variants

OFF, FEC = "FEC off", "FEC on"
WORKLOADS = ("download-1", "download-2")


def fill(database: Database, name: str, compared: tuple[str, str]) -> None:
    """FEC halves the time and sends three times the bytes; it stalls for 1, 2 or 3 ms, and else for 2."""
    campaign = database.create_campaign(
        new_campaign(
            name,
            repetitions=4,
            points=[{"owd_ms": 10}, {"owd_ms": 20}, {"owd_ms": 30}],
            variants=variants(OFF, FEC),
            workloads=[
                Workload(label=label, name="download", parameters={}, metric=metric)
                for label, metric in zip(WORKLOADS, compared, strict=True)
            ],
        )
    )
    records = []
    for point in range(3):
        for repetition in range(4):
            for workload in WORKLOADS:
                for label, dct_s, sent, stalled_s in (
                    (OFF, 2.0, 100, 0.002),
                    (FEC, 1.0, 300, 0.001 * (point + 1)),
                ):
                    noise = 1 + 0.001 * repetition
                    record = trial(
                        TrialKey(label, workload, point, repetition),
                        metrics={"client": {"dct_s": dct_s * noise, "bytes_sent": sent * noise}},
                        checks={"stalled_s": stalled_s, "trials_at_once": 1},
                    )
                    records.append(record)
    database.record_all(campaign.id, records)


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("metric") / "x.sqlite"
    with Database.open(str(path), create=True) as database:
        fill(database, "aa-times", ("client.dct_s", "client.dct_s"))
        fill(database, "mixed", ("client.dct_s", "client.bytes_sent"))
    return path


def rows_of(printed: str, label: str) -> list[list[str]]:
    return [line.split(label)[1].split() for line in printed.splitlines() if label in line]


RATIOS = {"": "0.50", "client.dct_s": "0.50", "client.bytes_sent": "3.00", "stalled_s": "1.00"}


def test_show_compares_it(fecbench_here: Any, path: Path) -> None:
    for metric, ratio in RATIOS.items():
        options = ["--metric", metric] if metric else []
        printed = fecbench_here("show", "--db", path, "--campaign", "aa-times", *options).stdout
        rows = rows_of(printed, f" {FEC} ")
        assert len(rows) == 2
        assert all(ratio in row for row in rows), printed


def test_show_judges_by_the_margin_that_is_given(fecbench_here: Any, path: Path) -> None:
    command = ["show", "--db", path, "--campaign", "aa-times", "--json"]
    for options, margin in ([], 0.02), (["--margin", "0.5"], 0.5), (["--margin", "5%"], 0.05):
        (campaign,) = json.loads(fecbench_here(*command, *options).stdout)["campaigns"]
        assert [row["margin"] for row in campaign["comparisons"]] == [margin, margin]


REFUSED = {
    "--margin -0.1": "'-0.1': must be a share from 0 to 0.99, such as 2% or 0.02",
    "--margin 2": "'2': must be a share from 0 to 0.99",
    "--margin 5ms": "'5ms': must be a share such as 3% or 0.03",
    "--margin 0.1 --trials": "are of the table of ratios",
    "--statistic p95": "needs 20 repetitions or more; campaign 'aa-times' has 4",
    "--statistic mode": "'median', 'mean', 'p95'",
}


def test_a_margin_or_a_statistic_that_cannot_be_is_refused(fecbench_here: Any, path: Path) -> None:
    for options, message in REFUSED.items():
        words = ("show", "--db", path, "--campaign", "aa-times", *options.split())
        assert message in fecbench_here(*words).refusal()


def test_show_lists_its_values(fecbench_here: Any, path: Path) -> None:
    command = ["show", "--db", path, "--campaign", "aa-times", "--trials", "--metric"]
    for metric, values in (("client.bytes_sent", {"100", "300.9"}), ("stalled_s", {"0.002", "0.003"})):
        printed = fecbench_here(*command, metric).stdout
        assert metric in printed
        assert values <= set(printed.split())


def test_without_it_each_workload_has_its_own(fecbench_here: Any, path: Path) -> None:
    printed = fecbench_here("show", "--db", path, "--campaign", "mixed").stdout
    ratios = [row for row in rows_of(printed, f" {FEC} ") if "0.50" in row or "3.00" in row]
    assert [("0.50" in row, "3.00" in row) for row in ratios] == [(True, False), (False, True)]


def test_explain_compares_it(fecbench_here: Any, path: Path) -> None:
    command = ["explain", "--db", path, "--campaign", "aa-times", "--json"]
    (default,) = json.loads(fecbench_here(*command).stdout)
    (choice,) = json.loads(fecbench_here(*command, "--metric", "client.bytes_sent").stdout)
    assert (default["metric"], default["everywhere"]["ratio"]) == ("client.dct_s", pytest.approx(0.5))
    assert (choice["metric"], choice["everywhere"]["ratio"]) == ("client.bytes_sent", pytest.approx(3))


def test_explain_wants_one_metric_for_workloads_that_compare_several(fecbench_here: Any, path: Path) -> None:
    command = ["explain", "--db", path, "--campaign", "mixed"]
    line = fecbench_here(*command).refusal()
    assert "its workloads compare client.dct_s, client.bytes_sent: choose with --metric one for all" in line
    assert fecbench_here(*command, "--metric", "client.dct_s").returncode == 0


def test_aa_compares_it(fecbench_here: Any, path: Path) -> None:
    command = ["aa", "between", "aa-times", "mixed", "--db", path, "--json"]
    times = json.loads(fecbench_here(*command, "--metric", "client.dct_s").stdout)
    mixed = json.loads(fecbench_here(*command, "--metric", "stalled_s").stdout)
    assert times["pairs"] == mixed["pairs"] == 48
    assert times["median"] == mixed["median"] == 1


def test_export_writes_it_alone(fecbench_here: Any, path: Path, tmp_path: Path) -> None:
    command = ["export", "--db", path, "--campaign", "aa-times", "--output", tmp_path / "x.csv"]
    for table, column in (("trials", "client.bytes_sent"), ("metrics", "value")):
        fecbench_here(*command, "--table", table, "--metric", "client.bytes_sent")
        frame = pd.read_csv(tmp_path / "x.csv")
        assert len(frame) == 48
        assert "client.dct_s" not in frame
        assert {round(value) for value in frame[column]} == {100, 300, 301}


NONE: list[list[str]] = [
    ["show"],
    ["show", "--trials"],
    ["explain"],
    ["report", "--output", "never-made"],
    ["export", "--output", "never-made.csv"],
    ["aa", "between", "aa-times", "mixed"],
]


def test_one_that_no_trial_has_is_refused_with_the_nearest(
    fecbench_here: Any, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for command in NONE:
        monkeypatch.chdir(path.parent)
        campaign = [] if command[0] == "aa" else ["--campaign", "aa-times"]
        line = fecbench_here(*command, "--db", path, *campaign, "--metric", "stalled").refusal()
        assert "'stalled'" in line
        assert "did you mean 'stalled_s'?" in line
        assert [file.name for file in path.parent.iterdir()] == ["x.sqlite"]


def test_every_metric_of_the_registry_is_listed_by_who_measures_it(fecbench_here: Any) -> None:
    listed = json.loads(fecbench_here("list", "metrics", "--json").stdout)["metrics"]
    names = [metric["name"] for metric in listed]
    assert len(names) == len(set(names))
    for metric in ALL:
        ends = (metric.by or "").split(" and ")
        expected = {f"{end}.{metric.name}" for end in ends if end in ("client", "server")} or {metric.name}
        for entry in [entry for entry in listed if entry["name"] in expected]:
            expected.discard(entry["name"])
            assert all(entry[key] == getattr(metric, key) for key in ("unit", "meaning", "better"))
            assert entry["by"] in ("client", "server", "harness", "link")
        assert not expected
    table = fecbench_here("list", "metrics").stdout.split()
    assert set(names) <= set(table)
