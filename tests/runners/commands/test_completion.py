"""A shell that completes a word is offered what there is, without waiting for libraries."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from fecbench import designs
from fecbench.checkout import REPOSITORY
from fecbench.results.store.database import Database
from fecbench.results.store.records import TrialKey, TrialRecord
from fecbench.runners.commands.console import completion
from tests.support.campaigns import new_campaign, variants

LABELS = ["rQUIC, FEC off", "rQUIC, XOR 4/5"]


@pytest.fixture
def db(tmp_path: Path) -> Path:
    path = tmp_path / "x.sqlite"
    with Database.open(str(path), create=True) as database:
        campaign = database.create_campaign(
            new_campaign("first", repetitions=3, points=[{"owd_ms": 77}], variants=variants(*LABELS))
        )
        start = database.start(campaign.id, "a-host", {})
        workload = campaign.workloads[0]["label"]
        for repetition in range(2):
            key = TrialKey(LABELS[0], workload, 0, repetition)
            metrics = {"client": {"dct_s": 1.0}, "server": {"packets_lost": 2.0}}
            record = TrialRecord(key, "ok", "", "2026-01-02T03:04:05+00:00", 1.5, metrics=metrics)
            database.record(campaign.id, record, start.id)
    return path


@pytest.fixture
def complete(fecbench_here: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A function that returns bash's offers for these words, the last of which is being typed."""

    def offered(*words: str) -> list[str]:
        typed = " ".join(["fecbench", *words])
        monkeypatch.setenv("_FECBENCH_COMPLETE", "complete_bash")
        monkeypatch.setenv("COMP_WORDS", typed)
        monkeypatch.setenv("COMP_CWORD", str(len(words)))
        return [line for line in fecbench_here().stdout.splitlines() if line]

    return offered


def test_the_catalogue_is_offered(complete: Any) -> None:
    assert complete("run", "") == sorted(designs.catalogue())
    assert complete("plan", "multipath-s") == ["multipath-smoke"]


def test_what_the_database_has_is_offered_so_that_bash_takes_it_as_one_word(complete: Any, db: Path) -> None:
    assert complete("explain", "--db", str(db), "--variant", "") == [f"'{label}'" for label in LABELS]
    assert complete("show", "--db", str(db), "--campaign", "f") == ["first"]
    assert complete("show", "--db", str(db), "--metric", "") == ["client.dct_s", "server.packets_lost"]
    assert complete("replay", "--db", str(db), "") == ["1", "2"]
    assert complete("show", "--db", str(db), "2") == ["2"]
    assert complete("run", "--db", str(db), "--filter", "variant", "=", "r") == [
        f"'{label}'" for label in LABELS
    ]


def test_a_trial_is_offered_with_its_label_where_the_shell_shows_it(
    fecbench_here: Any, db: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("_FECBENCH_COMPLETE", "complete_zsh")
    monkeypatch.setenv("_TYPER_COMPLETE_ARGS", f"fecbench show --db {db} ")
    assert "rQUIC, FEC off, download" in fecbench_here().stdout


def test_without_a_database_nothing_is_offered_and_nothing_fails(complete: Any, tmp_path: Path) -> None:
    (tmp_path / "none.sqlite").write_text("no database")
    for place in ("none.sqlite", "absent.sqlite"):
        assert complete("show", "--db", str(tmp_path / place), "") == []


PLACES = [
    *((command, "") for command in completion.OF_COMMANDS),
    *(("show", option, "") for option in ("--campaign", "--metric")),
    *(("explain", option, "") for option in ("--variant", "--baseline")),
    *(("run", "--filter", ""), ("export", "--series", ""), ("implementations", "--check", "")),
]


def test_the_loaded_command_offers_the_same(complete: Any, db: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Completion knows what a command's arguments and options declare, without loading it."""
    monkeypatch.setenv("FECBENCH_DB", str(db))
    for words in PLACES:
        at_once = complete(*words)
        with monkeypatch.context() as loaded:
            loaded.setattr(completion, "known", lambda *_: None)
            assert complete(*words) == at_once, words
        assert at_once or words[:2] == ("export", "--series")
    assert {word for words in PLACES for word in words if word.startswith("--")} == set(completion.OF_OPTIONS)


def test_values_are_offered_without_loading_what_computes(db: Path) -> None:
    script = """
import sys
from fecbench.runners.commands.command_line import main
try:
    main()
except SystemExit:
    print("loaded:", *sys.modules)
"""
    for words in ("run ", f"show --db {db} --metric "):
        line = f"fecbench {words}"
        typed = {"COMP_WORDS": line, "COMP_CWORD": str(len(line.split()))}
        environment = {"_FECBENCH_COMPLETE": "complete_bash", **typed}
        program = [sys.executable, "-c", script]
        result = subprocess.run(program, cwd=REPOSITORY, env=environment, capture_output=True, text=True)
        assert result.returncode == 0, result.stderr
        offered, _, loaded = result.stdout.rpartition("loaded:")
        assert offered.strip(), line
        assert not {"numpy", "scipy", "pandas", "sqlalchemy", "matplotlib"} & set(loaded.split())
