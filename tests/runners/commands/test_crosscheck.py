"""`fecbench crosscheck`: a sample is emulated and compared, and who reads the database knows what it is."""

import json
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fecbench import results
from fecbench.results.store.database import Database
from fecbench.runners.commands.crosscheck import parse_share
from tests.support.refusals import refusal_of

SAMPLE = "little-crosscheck"


def test_a_share_is_a_number_or_a_percentage_and_any_other_is_refused() -> None:
    for text, share in (("0.02", 0.02), ("2%", 0.02), ("1", 1.0), ("100%", 1.0)):
        assert parse_share(text) == share
    for text in ("0", "-0.1", "1.01", "101%", "2 % of all", "", "%", "nan", "inf"):
        line = refusal_of(parse_share, text)
        assert line.startswith("--share ")
        assert line.endswith(": must be above 0 and at most 1, such as 0.02 or 2%")


@pytest.mark.usefixtures("can_run_trials")
def test_bad_input_is_one_line(
    fecbench_here: Callable[..., Any], little_design: Path, tmp_path: Path
) -> None:
    path = tmp_path / "x.sqlite"
    words = ("crosscheck", little_design, "--db", path)
    assert "no such database" in fecbench_here(*words).refusal()
    Database.open(str(path), create=True).close()
    message = fecbench_here(*words).refusal()
    assert message.endswith(f"make it: fecbench run {little_design} --engine virtual --db {path}\n")
    assert "--share 2:" in fecbench_here(*words, "--share", "2").refusal()


@pytest.fixture(scope="module")
def checked(
    fecbench: Any,
    write_design: Callable[..., Path],
    tmp_path_factory: pytest.TempPathFactory,
    can_run_trials: None,  # noqa: ARG001
    patiently: Callable[..., Any],
    has_invalid_trials: Callable[[Path], bool],
) -> tuple[Path, Path, Any]:
    """The little design in virtual time, all of it emulated, too: the design, the database, what was told."""
    folder = tmp_path_factory.mktemp("checked")
    design, path = write_design(folder), folder / "x.sqlite"
    ran = fecbench("run", design, "--engine", "virtual", "--db", path)
    assert ran.returncode == 0, ran.stderr

    def check(_: int) -> Any:
        words = ("crosscheck", design, "--share", "1", "--db", path, "--no-calibrate", "--json")
        return fecbench(*words)

    return design, path, patiently(check, lambda _: has_invalid_trials(path))


def test_a_sample_is_compared_by_arm_workload_and_metric(checked: tuple[Path, Path, Any]) -> None:
    _, _, result = checked
    document = json.loads(result.stdout)
    assert result.returncode == (1 if document["verdict"] == "differs" else 0)
    assert (document["campaign"], document["sample"], document["share"]) == ("little", SAMPLE, 1.0)
    assert (document["planned"], document["pairs"]) == (12, 12)
    assert (document["left_out"], document["other_losses"], document["other_states"]) == ({}, [], [])
    compared = [(arm["variant"], arm["metric"], arm["baseline"]) for arm in document["arms"]]
    metrics = ("client.dct_s", "client.handshake_s", "server.bytes_sent", "server.packets_sent")
    alone = [(variant, metric, None) for variant in ("off", "xor, 4/5") for metric in metrics]
    assert compared == [*alone[:5], ("xor, 4/5", "client.dct_s", "off"), *alone[5:]]
    assert document["headline"] in result.stdout
    assert sum(of_stratum["pairs"] for of_stratum in document["strata"].values()) == 12
    (mean,) = document["pooled"]  # of one workload: that over all of them would be the same
    assert (mean["variant"], mean["baseline"], mean["workload"], mean["n"]) == (
        *("xor, 4/5", "off"),
        *(document["arms"][0]["workload"], 6),
    )
    assert mean["verdict"] in ("cannot tell", "differs")  # for a hundred are needed to agree
    assert mean["tolerance"] == [pytest.approx(-1 / 101), pytest.approx(0.01)]
    for arm in document["arms"]:
        assert arm["n"] == 6
        assert list(arm["quantiles"]) == ["0.05", "0.5", "0.95"]
        low, high = arm["interval"]
        assert low <= arm["quantiles"]["0.5"] <= high
        assert arm["verdict"] in ("agrees", "differs", "cannot tell")
        assert arm["reason"]
        assert set(arm["strata"]["all"]) == {"n", "median", "mean", "far", "either"}
        assert sum(of["n"] for name, of in arm["strata"].items() if name != "all") in (0, 6)


def test_what_is_there_is_not_emulated_again(fecbench: Any, checked: tuple[Path, Path, Any]) -> None:
    design, path, result = checked
    again = fecbench("crosscheck", design, "--share", "1", "--db", path, "--json")
    assert "0 trials to run" in again.stderr
    assert (again.returncode, again.stdout) == (result.returncode, result.stdout)


def test_readers_mean_the_campaign_and_not_its_sample(
    fecbench_here: Callable[..., Any], checked: tuple[Path, Path, Any], tmp_path: Path
) -> None:
    _, path, result = checked
    headline = json.loads(result.stdout)["headline"]
    output = fecbench_here("show", "--db", path).stdout
    assert output.startswith("campaign little, virtual:")
    assert f"cross-checked with 12 emulated trials. {headline}" in output
    assert SAMPLE not in output
    (of_all,) = json.loads(fecbench_here("show", "--db", path, "--json").stdout)["campaigns"]
    assert (of_all["name"], of_all["engine"], of_all["checks"]) == ("little", "virtual", None)
    named = fecbench_here("show", "--campaign", SAMPLE, "--db", path).stdout
    assert named.startswith(f"campaign {SAMPLE}, emulated:")
    exported = tmp_path / "x.csv"
    fecbench_here("export", "--db", path, "--output", exported)
    assert exported.read_text().count(",virtual,") == 12
    with sqlite3.connect(path) as connection:
        ((number,),) = connection.execute("SELECT max(id) FROM trials")
    assert (
        f"trial {number} of campaign {SAMPLE}, emulated" in fecbench_here("show", number, "--db", path).stdout
    )
    with results.open(str(path)) as database:
        table = database.campaigns().set_index("campaign")[["engine", "checks"]]
    assert list(table["engine"]) == ["virtual", "emulated"]
    assert list(table["checks"].dropna().items()) == [(SAMPLE, "little")]


@pytest.mark.usefixtures("unmade")
def test_the_report_has_the_verdict_and_the_table(
    fecbench_here: Callable[..., Any], checked: tuple[Path, Path, Any], tmp_path: Path
) -> None:
    _, path, result = checked
    document = json.loads(result.stdout)
    assert fecbench_here("report", "--db", path, "--output", tmp_path / "report").returncode == 0
    page = (tmp_path / "report" / "report.html").read_text()
    assert f"cross-checked with 12 emulated trials. {document['headline']}" in page
    assert f"{100 * document['arms'][0]['quantiles']['0.5']:+.2f} %" in page
    assert document["arms"][0]["reason"] in page
    assert "--engine virtual" in page and "--link virtual" not in page
    assert "run in virtual time" in page and "there was no emulated link" in page
    assert "fecbench crosscheck little.toml --share 1 --db little.sqlite" in page
    assert "(virtual; ratio.png" in page


def test_a_campaign_that_nobody_checked_says_so(
    fecbench_here: Callable[..., Any], little_design: Path, tmp_path: Path
) -> None:
    path = tmp_path / "x.sqlite"
    ran = fecbench_here("run", little_design, "--engine", "virtual", "--db", path, "--filter", "point=0")
    if "make build" in ran.stderr:
        pytest.skip("needs the simulator of rquic: make build")
    assert ran.returncode == 0, ran.stderr
    assert "not cross-checked" in fecbench_here("show", "--db", path).stdout
