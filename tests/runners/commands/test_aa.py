"""`fecbench aa`: a variant is run against itself, two campaigns are compared, and bad input is one line."""

import json
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from fecbench.results.analysis.equality import took_s
from fecbench.results.store.database import Database
from fecbench.results.store.records import CampaignInfo, Kind, State, TrialKey, TrialRecord
from fecbench.runners.commands import aa
from fecbench.runners.refusal import Refusal
from tests.results.pages import page_of
from tests.support.campaigns import new_campaign, trial, variants


def filled(
    database: Database, name: str, text: str, factor: float, kind: Kind = "comparison", repetitions: int = 20
) -> CampaignInfo:
    """A campaign of two variants over 20 repetitions, all times multiplied by `factor`."""
    campaign = database.create_campaign(
        new_campaign(
            name,
            design_text=text,
            points=[{"owd_ms": 5}, {"owd_ms": 6}],
            variants=variants("A", "B"),
            repetitions=20,
            kind=kind,
        )
    )
    records = []
    for repetition in range(repetitions):
        for label in ("A", "B"):
            time_s = (1 + repetition) * factor * (1 + 0.001 * ((repetition + (label == "B")) % 2))
            key = TrialKey(label, "download-1", 0, repetition)
            records.append(trial(key, metrics={"client": {"dct_s": time_s}}))
    database.record_all(campaign.id, records)
    return campaign


FEW = {"repetitions": 1, "plan": {"method": "wsp", "points": 2}}
"""The parts by which the little design has the fewest trials that are compared."""


@pytest.mark.usefixtures("can_run_trials")
def test_a_variant_against_itself_is_a_campaign_that_can_be_resumed(
    fecbench: Any, write_design: Callable[..., Path], tmp_path: Path
) -> None:
    design, database = write_design(tmp_path, **FEW), tmp_path / "x.sqlite"
    arguments = ["aa", "itself", design, "--variant", "xor, 4/5", "--jobs", "auto", "--json"]
    ran = fecbench.until_valid(database, *arguments)
    document = json.loads(ran.stdout)
    assert ran.returncode == (1 if document["differ"] else 0)
    with Database.open(str(database)) as opened:
        assert [campaign.provenance["jobs"] for campaign in opened.campaigns()] == ["auto"]
    assert document["pairs"] == 2
    assert document["compared"] == "campaign aa-little-xor-4-5"
    again = fecbench(*arguments, "--db", database, "--no-calibrate", "--resume")
    assert json.loads(again.stdout) == document
    assert "0 trials to run" in again.stderr
    wrong = fecbench(*arguments, "--db", database, "--no-calibrate", "--resume", "--metric", "client.dct")
    text = wrong.stderr.splitlines()
    assert (wrong.returncode, text[0][:34]) == (2, "note: --metric client.dct: compare")
    assert "no trial measured 'client.dct'; did you mean 'client.dct_s'?" in text[-1]
    keys = [trial["key"] for trial in fecbench.trials(database)]
    assert {key["variant"] for key in keys} == {"xor, 4/5 (A)", "xor, 4/5 (B)"}
    assert len(keys) == 4


@pytest.mark.usefixtures("can_run_trials")
def test_one_command_runs_a_design_with_two_numbers_of_jobs_and_tells_which_was_faster(
    fecbench: Any, write_design: Callable[..., Path], tmp_path: Path
) -> None:
    design, path = write_design(tmp_path, **FEW), tmp_path / "x.sqlite"
    jobs = ["--against-jobs", "1", "--jobs", "3"]
    ran = fecbench.until_valid(path, "aa", "jobs", design, *jobs, "--json")
    document = json.loads(ran.stdout)
    assert ran.returncode == (1 if document["differ"] else 0)
    assert document["compared"] == "little-jobs-3 against little-jobs-1"
    assert document["pairs"] == 4
    with Database.open(str(path)) as database:
        campaigns = database.campaigns()
        at_once = [
            max(trial.record.checks["trials_at_once"] for trial in database.trials(campaign.id))
            for campaign in campaigns
        ]
    assert [campaign.provenance["jobs"] for campaign in campaigns] == [1, 3]
    # Of those that were invalid and run again, fewer may have been left.
    assert at_once[0] == 1 <= at_once[1] <= 3
    assert campaigns[0].design_text == campaigns[1].design_text == design.read_text()
    assert all(seconds > 0 for seconds in document["took_s"])
    text = fecbench("aa", "between", "little-jobs-1", "little-jobs-3", "--db", path).stdout
    assert f"{document['took_s'][0] / document['took_s'][1]:.2f} times as fast" in text


def test_a_campaign_took_the_time_in_which_any_of_its_trials_ran(tmp_path: Path) -> None:
    def run(repetition: int, begun_s: float, duration_s: float, state: State = "ok") -> None:
        began_at = datetime.fromtimestamp(begun_s, UTC).isoformat()
        key = TrialKey("A", "download-1", 1, repetition)
        database.record(campaign.id, TrialRecord(key, state, "", began_at, duration_s))

    with Database.open(str(tmp_path / "x.sqlite"), create=True) as database:
        campaign = filled(database, "one", "text", 1.0)
        before = took_s(database, campaign)
        run(0, 100, 10)
        assert took_s(database, campaign) == before + 10
        run(1, 104, 2)  # beside the first, and within it
        assert took_s(database, campaign) == before + 10
        run(2, 108, 5, "invalid")  # half beside the first
        assert took_s(database, campaign) == before + 13
        run(2, 500, 5)  # again, after a pause
        assert took_s(database, campaign) == before + 18


def test_campaigns_of_a_design_are_compared_trial_by_trial(fecbench_here: Any, tmp_path: Path) -> None:
    with Database.open(str(tmp_path / "x.sqlite"), create=True) as database:
        for name, factor in (("one", 1.0), ("same", 1.0), ("slower", 1.03)):
            filled(database, name, "text", factor)
    database = ("--db", tmp_path / "x.sqlite", "--json")
    for other, status, median in (("same", 0, 1), ("slower", 1, pytest.approx(1.03))):
        result = fecbench_here("aa", "between", "one", other, *database)
        document = json.loads(result.stdout)
        assert (result.returncode, document["median"], document["pairs"]) == (status, median, 40)
        assert fecbench_here("aa", "--between", "one", "--and", other, *database) == result


def test_the_form_without_subcommands_does_what_the_subcommands_do(
    fecbench_here: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, requested = tmp_path / "x.sqlite", []
    Database.open(str(path), create=True).close()

    def request(design: Any, _: object, **manner: Any) -> None:
        requested.append((design.text, manner))
        raise Refusal("enough")

    monkeypatch.setattr("fecbench.runners.campaign.request.request", request)
    rest = ["smoke", "--db", path, "--jobs", "7"]
    for form in (["aa"], ["aa", "itself"], ["aa", "--resume", "--no-calibrate", "itself"]):
        fecbench_here(*form, *rest, "--variant", "rQUIC, FEC off")
    for form in (["aa"], ["aa", "jobs"]):
        fecbench_here(*form, *rest, "--against-jobs", "auto")
    itself, jobs = requested[:3], requested[3:]
    assert itself[0] == itself[1]
    assert itself[2][1] == itself[0][1] | {"resume": True, "calibrate": False}
    assert jobs[0] == jobs[1]
    assert {manner["name"] for _, manner in itself} == {"aa-smoke-rQUIC-FEC-off"}
    assert {manner["name"] for _, manner in jobs} == {"smoke-jobs-auto"}


def test_the_report_quotes_the_comparison_with_itself_of_the_same_database(tmp_path: Path) -> None:
    with Database.open(str(tmp_path / "x.sqlite"), create=True) as database:
        campaign = filled(database, "one", 'name = "one"', 1.0)
        filled(database, "aa-by-its-name-alone", "other", 1.0)
        without = page_of(database, campaign)
        filled(database, "yardstick", "other", 1.0, "against-itself")
        quoted = page_of(database, campaign)
    assert "20 pairs; median ratio" in quoted
    assert "pairs; median ratio" not in without


BAD: list[tuple[list[str], str]] = [
    (["DESIGN"], "needs DESIGN with --variant or --against-jobs"),
    (["--between", "one"], "needs DESIGN with --variant or --against-jobs"),
    (["DESIGN", "--variant", "off", "--against-jobs", "1"], "needs DESIGN with --variant or --against"),
    (["DESIGN", "--against-jobs", "1"], "--against-jobs 1: must be another number than --jobs has"),
    (["DESIGN", "--against-jobs", "all"], "--against-jobs all: must be auto or a whole number from 1 on"),
    (["DESIGN", "--variant", "off", "--jobs", "0"], "--jobs 0: must be auto or a whole number from 1 on"),
    (["DESIGN", "--variant", "of"], "no such variant; did you mean 'off'?"),
    (["--between", "one", "--and", "tow"], "no campaign 'tow'"),
    (["--between", "one", "--and", "other"], "ran different designs"),
    (["--between", "one", "--and", "empty"], "0 pairs are ok; a comparison needs at least 2"),
    (["between", "one", "tow"], "no campaign 'tow'"),
    (["between", "one", "other"], "ran different designs"),
    (["between", "one"], "Missing argument 'second'"),
    (["itself", "DESIGN"], "Missing option '--variant'"),
    (["itself", "DESIGN", "--variant", "of"], "no such variant; did you mean 'off'?"),
    (["jobs", "DESIGN", "--against-jobs", "1"], "--against-jobs 1: must be another number than --jobs"),
]


def test_bad_input_is_one_line_and_status_2(fecbench_here: Any, little_design: Path, tmp_path: Path) -> None:
    path = str(tmp_path / "x.sqlite")
    with Database.open(path, create=True) as database:
        filled(database, "one", "text", 1.0)
        filled(database, "other", "another text", 1.0)
        filled(database, "empty", "text", 1.0, repetitions=0)
    for arguments, message in BAD:
        words = [str(little_design) if argument == "DESIGN" else argument for argument in arguments]
        assert message in fecbench_here("aa", *words, "--db", path).refusal()


def test_a_wrong_variant_is_refused_before_a_database_is_made(fecbench_here: Any, tmp_path: Path) -> None:
    words = ("aa", "itself", "smoke", "--variant", "nope", "--db", tmp_path / "none.sqlite")
    assert "has no such variant" in fecbench_here(*words).refusal()
    assert not (tmp_path / "none.sqlite").exists()


def test_only_the_first_of_two_numbers_of_jobs_is_resumed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    questions = []

    def run_here(resume: bool, _: Database) -> Any:
        questions.append(resume)
        return SimpleNamespace(name="x")

    monkeypatch.setattr("fecbench.runners.commands.console.running.run_here", run_here)
    monkeypatch.setattr(aa, "_compared", lambda *_: None)
    Database.open(str(tmp_path / "x.sqlite"), create=True).close()
    manner: Any = SimpleNamespace(jobs="2", resume=True, request=lambda *_, resume: resume)
    design: Any = SimpleNamespace(name="x")
    aa.compare_jobs(str(tmp_path / "x.sqlite"), design, "1", manner)
    assert questions == [True, False]
