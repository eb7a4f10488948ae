"""`fecbench watch` shows what lands, and ends with the campaign."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fecbench.quantities import counted
from fecbench.results.store.database import Database
from fecbench.results.store.records import TrialKey
from fecbench.runners.commands import watch as command
from fecbench.runners.commands.watch import watch
from tests.support.campaigns import new_campaign, trial, variants

OFF, XOR = "FEC off", "XOR 4/5"
KEYS = [TrialKey(label, "download-1", 0, n) for n in range(2) for label in (OFF, XOR)]


class Clock:
    """A clock that moves when somebody sleeps, and what happens meanwhile."""

    def __init__(self, happens: Callable[[], None]) -> None:
        self.now_s, self.happens = 100.0, happens

    def monotonic(self) -> float:
        return self.now_s

    def sleep(self, seconds: float) -> None:
        self.now_s += seconds
        self.happens()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A database of one campaign that has not begun."""
    path = tmp_path / "x.sqlite"
    with Database.open(str(path), create=True) as database:
        database.create_campaign(
            new_campaign(
                "first", repetitions=2, points=[{"owd_ms": 7}], variants=variants(OFF, XOR, baseline=OFF)
            )
        )
    return path


def landing(path: Path, keys: list[TrialKey]) -> Callable[[], None]:
    """Records the next of these trials each time."""

    def land() -> None:
        if not keys:
            return
        key = keys.pop(0)
        with Database.open(str(path)) as database:
            dct_s = 1.0 if key.variant == OFF else 0.5
            database.record(1, trial(key, metrics={"client": {"dct_s": dct_s}}))

    return land


def test_each_trial_that_lands_is_told_with_rate_and_time_left_until_the_campaign_ends(
    path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(command, "time", Clock(landing(path, list(KEYS))))
    assert watch(db=str(path), campaign="", every=2.0) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "0 of 4 trials: none run"
    assert lines[1] == "1 of 4 trials: 1 ok; 30.0 a minute; left: 6 s"
    assert lines[4] == "4 of 4 trials: 4 ok"
    (row,) = (line.split() for line in lines if line.strip().startswith(XOR))
    assert "0.50" in row


def test_a_campaign_that_nobody_runs_any_more_is_left(
    path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(command, "time", Clock(landing(path, KEYS[:1])))
    assert watch(db=str(path), campaign="first", every=10.0) == 1
    assert "nobody runs it: no sign of life for 30 s; 3 trials are left" in capsys.readouterr().out


def test_a_beat_of_a_harness_is_a_sign_of_life(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Database.open(str(path)) as database:
        start = database.start(1, "host", {})
    beats, keys = [1] * 6, list(KEYS)

    def slowly() -> None:
        if beats:  # a trial that takes longer than the watch would wait
            beats.pop()
            with Database.open(str(path)) as database:
                database.beat(start.id)
        else:
            landing(path, keys)()

    monkeypatch.setattr(command, "time", Clock(slowly))
    assert watch(db=str(path), campaign="", every=10.0) == 0


@pytest.mark.parametrize(
    ("filters", "wanted", "states", "status"),
    [
        (["repetition=0", f"variant={XOR}", f"variant={OFF}"], KEYS[:2], ["ok", "failed"], 1),
        (["repetition=0", f"variant={XOR}"], KEYS[1:2], ["ok"], 0),
        (["workload=download-1"], KEYS, ["ok"] * 4, 0),
    ],
)
def test_a_run_of_some_trials_is_watched_to_its_own_end(
    path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    filters: list[str],
    wanted: list[TrialKey],
    states: list[str],
    status: int,
) -> None:
    """Trials of another start do not count, and are not awaited."""
    with Database.open(str(path)) as database:
        database.start(1, "host", {})
        database.start(1, "host", {"filters": filters})
        if len(wanted) < 4:
            database.record(1, trial(KEYS[3], "failed"))
    waiting = list(zip(wanted, states, strict=True))

    def land() -> None:
        key, state = waiting.pop(0)
        with Database.open(str(path)) as database:
            database.record(1, trial(key, state))

    monkeypatch.setattr(command, "time", Clock(land))
    assert watch(db=str(path), campaign="", every=2.0) == status
    printed = capsys.readouterr().out
    assert f"{len(wanted)} of {counted(len(wanted), 'trial')}: " in printed
    assert "nobody runs it" not in printed


def test_json_tells_how_it_stands_and_ends(path: Path, fecbench_here: Any) -> None:
    landing(path, KEYS[:1])()
    result = fecbench_here("watch", "--db", path, "--json")
    standing = json.loads(result.stdout)
    assert (standing["done"], standing["planned"], standing["ended"]) == (1, 4, False)


def test_what_is_no_database_gets_one_line(tmp_path: Path, fecbench_here: Any) -> None:
    other = tmp_path / "notes.txt"
    other.write_text("no database")
    assert "is not an SQLite database" in fecbench_here("watch", "--db", other).refusal()
    assert "no such database" in fecbench_here("watch", "--db", tmp_path / "absent").refusal()


def test_each_part_of_a_hunt_is_shown_in_turn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    hunt = "hunt-space-0123abcd"
    with Database.open(str(tmp_path / "hunt.sqlite"), create=True) as database:
        for part in ("00-start-download", "01-search-download"):
            info = database.create_campaign(
                new_campaign(
                    f"{hunt}-{part}", points=[{"owd_ms": 7}], variants=variants(OFF, XOR, baseline=OFF)
                )
            )
            for label in (OFF, XOR):
                key = TrialKey(label, "download-1", 0, 0)
                database.record(info.id, trial(key, metrics={"client": {"dct_s": 1.0}}))
    clock = Clock(lambda: None)
    monkeypatch.setattr(command, "time", clock)
    assert watch(str(tmp_path / "hunt.sqlite"), f"{hunt}-00-start-download", 1) == 0
    lines = capsys.readouterr().out.splitlines()
    parts = [line for line in lines if line.startswith("part ")]
    assert "no further part within 15 s" in lines[-1]
    assert parts == [f"part {hunt}-00-start-download", f"part {hunt}-01-search-download"]
    assert clock.now_s == 100.0 + command.NEXT_PART_S
