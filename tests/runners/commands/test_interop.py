"""`fecbench interop` with stacks that are always there, over an emulated link with losses."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.results.pages import page_of
from tests.support.campaigns import only_campaign

ENDS = ("noq-fec", "rquic", "udp")


@pytest.fixture(scope="module")
def ran(fecbench: Any, tmp_path_factory: pytest.TempPathFactory, can_run_trials: None) -> tuple[Path, Any]:  # noqa: ARG001
    path = tmp_path_factory.mktemp("interop") / "x.sqlite"
    return path, fecbench("interop", *ENDS, "--db", path, "--no-calibrate", "--json")


def test_each_client_works_with_each_server_or_it_is_said_why_not(ran: tuple[Path, Any]) -> None:
    _, result = ran
    document = json.loads(result.stdout)
    assert document["ends"] == list(ENDS)
    assert document["matrix"] == {
        "noq-fec": {"noq-fec": "ok", "rquic": "ok", "udp": "unsupported"},
        "rquic": {"noq-fec": "ok", "rquic": "ok", "udp": "unsupported"},
        "udp": dict.fromkeys(("noq-fec", "rquic", "udp"), "unsupported"),
    }
    assert document["reasons"]["rquic"] == {"udp": "udp has no workload download"}
    assert result.returncode == 0


def test_both_ends_are_those_of_the_pair_and_packets_were_lost(ran: tuple[Path, Any]) -> None:
    with only_campaign(ran[0]) as (database, campaign):
        records = [trial.record for trial in database.trials(campaign.id)]
    met = {
        tuple(record.task["pairs"][0][role]["implementation"] for role in ("client", "server"))
        for record in records
    }
    assert met == {(client, server) for client in ("noq-fec", "rquic") for server in ("noq-fec", "rquic")}
    assert all(sum(verdicts["dropped"] for verdicts in record.dropper.values()) > 0 for record in records)


def test_the_report_shows_the_matrix(ran: tuple[Path, Any]) -> None:
    with only_campaign(ran[0]) as (database, campaign):
        page = page_of(database, campaign)
    assert "Which clients work with which servers" in page
    assert page.count("<td>✓</td>") == 4
    assert page.count("<td>?</td>") == 5
    assert "? client rquic, server udp: udp has no workload download" in page


@pytest.mark.usefixtures("can_run_trials")
def test_ends_that_meet_themselves_alone_are_in_the_matrix(fecbench: Any, tmp_path: Path) -> None:
    result = fecbench("interop", "noq-fec", "tcp", "--db", tmp_path / "x.sqlite", "--no-calibrate", "--json")
    assert json.loads(result.stdout)["matrix"] == {
        "noq-fec": {"noq-fec": "ok", "tcp": "unsupported"},
        "tcp": {"noq-fec": "unsupported", "tcp": "ok"},
    }
    assert result.returncode == 0


@pytest.mark.usefixtures("can_run_trials")
def test_bad_ends_are_one_line(fecbench_here: Callable[..., Any], tmp_path: Path) -> None:
    db = ("--db", tmp_path / "x.sqlite")
    assert "there is no implementation 'noq'" in fecbench_here("interop", "noq", *db).refusal()
    assert "udp has no workload download" in fecbench_here("interop", "udp", *db).refusal()
    assert not (tmp_path / "x.sqlite").exists()
