"""Several harnesses share a campaign: each trial is run once, whoever dies, sleeps or is late."""

import dataclasses
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from fecbench.results.store.database import Database
from fecbench.results.store.records import Claimant, Group, TrialKey, TrialRecord
from fecbench.runners import scratch
from fecbench.runners.campaign import claims, share
from fecbench.runners.campaign.claims import DEAD_AFTER_S, Watch, present
from fecbench.runners.campaign.request import Request
from fecbench.runners.tasks.outcome import EndpointOutcome, Outcome
from tests.results.conftest import postgresql, postgresql_folder  # noqa: F401 - fixtures
from tests.runners.campaign.conftest import Pretence, Run, Told
from tests.support.campaigns import only_campaign
from tests.support.together import run_together
from tests.waiting import wait_until

of_each_kind = pytest.mark.parametrize("address", ["sqlite", "postgresql"], indirect=True)

TRIALS = 3 * 2 * 2


@pytest.fixture
def address(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The address of a new database."""
    kind = getattr(request, "param", "sqlite")
    return str(request.getfixturevalue("postgresql") if kind == "postgresql" else tmp_path / "y.sqlite")


@pytest.fixture
def looking(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shorten the time between two looks of a waiting harness."""
    monkeypatch.setattr(share, "LOOK_S", 0.02)


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shorten the silence after which a holder counts as dead to more than a busy machine needs to begin."""
    monkeypatch.setattr(claims, "DEAD_AFTER_S", 3.0)


def stored(address: str) -> dict[TrialKey, tuple[str, int]]:
    with only_campaign(address) as (database, campaign):
        assert database.claims(campaign.id) == {}, "a claim is left"
        return dict(database.states(campaign.id))


@of_each_kind
@pytest.mark.usefixtures("looking")
def test_those_that_begin_at_once_run_each_trial_once_and_all_end_well(
    run: Run, address: str, little: Request
) -> None:
    engines = [Pretence() for _ in range(4)]
    problems: list[Exception] = []
    barrier = threading.Barrier(len(engines))

    def take_part(engine: Pretence) -> None:
        barrier.wait()
        try:
            run(engine, address)
        except Exception as problem:
            problems.append(problem)

    run_together([lambda engine=engine: take_part(engine) for engine in engines])
    assert problems == []
    assert Counter(key for engine in engines for key in engine.ran) == Counter(little.keys)
    assert stored(address) == dict.fromkeys(little.keys, ("ok", 1))
    groups = [{key.group for key in engine.ran} for engine in engines]
    assert sum(map(len, groups)) == len({key.group for key in little.keys}), "each of one harness"


def claimed_by(run: Run, address: str, holder: dict[str, Any]) -> Callable[[], None]:
    """A campaign whose every group is claimed by another start, and what makes that one's beat go up."""
    run(database=address, keys=[])
    with only_campaign(address) as (database, campaign):
        other = database.start(campaign.id, "ada", {}, holder)
        for point in range(3):
            for repetition in range(2):
                database.claim(campaign.id, other.id, Group("download-20000", point, repetition))

    def beat() -> None:
        with Database.open(address) as own:
            own.beat(other.id)

    return beat


@pytest.fixture
def this_process() -> Iterator[dict[str, Any]]:
    """The record of the process that runs the tests, as a start stores it."""
    with present() as holder:
        yield holder


STAYS = """
import json, sys
from fecbench.runners.campaign import claims
with claims.present() as holder:
    print(json.dumps(holder), flush=True)
    sys.stdin.read()
"""


@contextmanager
def another(*within: str, **environment: str) -> Iterator[tuple["subprocess.Popen[str]", dict[str, Any]]]:
    """Start another process that could hold claims, by a command such as `unshare`; yield it and its
    holder."""
    command = [*within, sys.executable, "-c", STAYS]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen(
        command, env={**os.environ, **environment}, start_new_session=True, **pipes
    ) as process:
        assert process.stdin and process.stdout
        yield process, json.loads(process.stdout.readline())
        with suppress(BrokenPipeError):
            process.stdin.close()


def killed(process: "subprocess.Popen[str]") -> None:
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def a_dead_process() -> dict[str, Any]:
    """The holder of a harness on this machine that has been killed."""
    with another() as (process, holder):
        killed(process)
    return holder


def test_what_a_dead_process_of_this_machine_had_claimed_is_run_at_once(run: Run, address: str) -> None:
    claimed_by(run, address, a_dead_process())
    watcher = Told()
    run(database=address, watcher=watcher)
    assert not watcher.waited
    assert len(stored(address)) == TRIALS


@pytest.mark.parametrize("left", [0, 1])
def test_what_a_dead_process_had_claimed_and_finished_is_free_when_the_campaign_is_gone_on_with(
    run: Run, address: str, little: Request, left: int, this_process: dict[str, Any]
) -> None:
    run(database=address, keys=little.keys[: len(little.keys) - left])
    with only_campaign(address) as (database, campaign):
        dead, alive = (
            database.start(campaign.id, "ada", {}, holder) for holder in (a_dead_process(), this_process)
        )
        first, second, *_ = dict.fromkeys(key.group for key in little.keys)
        database.claim(campaign.id, dead.id, first)
        database.claim(campaign.id, alive.id, second)
    run(database=address)
    with Database.open(address) as database:
        assert [claimant.start_id for claimant in database.claims(campaign.id).values()] == [alive.id]


@pytest.mark.usefixtures("looking", "impatient")
def test_what_a_holder_on_another_machine_has_claimed_is_run_when_it_stands_still(
    run: Run, address: str, this_process: dict[str, Any]
) -> None:
    claimed_by(run, address, {**this_process, "boot": "another"})
    watcher = Told()
    run(database=address, watcher=watcher)
    assert watcher.waited
    assert len(stored(address)) == TRIALS


@pytest.mark.usefixtures("looking")
def test_the_trials_of_a_holder_that_goes_on_are_waited_for_and_not_run(
    run: Run, address: str, little: Request, this_process: dict[str, Any]
) -> None:
    beat = claimed_by(run, address, {**this_process, "boot": "another"})
    pause = threading.Event()

    def go_on() -> None:
        with only_campaign(address) as (database, campaign):
            other = database.starts(campaign.id)[-1]
            for number in range(TRIALS):
                pause.wait(0.02)
                beat()
                database.record(campaign.id, a_record(little.keys[number]), other.id)
            database.give_up_all(other.id)

    engine = Pretence()
    run_together([go_on, lambda: run(engine, address)])
    assert engine.ran == []
    assert len(stored(address)) == TRIALS


def test_a_holder_that_was_paused_for_long_drops_what_others_have_run_with_a_note(
    run: Run, address: str, little: Request
) -> None:
    """Another process takes all claims over and runs everything while the second trial of a group runs."""
    second = little.keys[1]

    def paused(key: TrialKey) -> str:
        if key == second:
            with only_campaign(address) as (database, campaign):
                (start,) = database.starts(campaign.id)
                database.give_up_all(start.id)
            run(Pretence(), address)
        return "ok"

    engine, watcher = Pretence(paused), Told()
    run(engine, address, watcher)
    assert engine.ran == list(little.keys[:2])
    assert watcher.dropped_trials == [second]
    assert stored(address) == dict.fromkeys(little.keys, ("ok", 1))


@of_each_kind
@pytest.mark.usefixtures("looking")
def test_an_invalid_trial_is_run_so_often_by_all_harnesses_together(run: Run, address: str) -> None:
    barrier = threading.Barrier(3)
    engines = [Pretence(lambda _: "invalid", at_begin=barrier.wait) for _ in range(3)]
    run_together([lambda engine=engine: run(engine, address) for engine in engines])
    assert set(stored(address).values()) == {("invalid", 1 + share.RETRIES)}
    run(Pretence(lambda _: "invalid"), address)
    assert set(stored(address).values()) == {("invalid", 2 * (1 + share.RETRIES))}


def test_whether_two_stacks_talk_is_known_at_once_from_what_they_said(
    run: Run, tmp_path: Path, little: Request
) -> None:
    other = dataclasses.replace(little, interop={"ends": [], "cells": []}, keys=little.keys[:2])
    for number, (outcome, attempts) in enumerate(
        (
            (Outcome(endpoints={"client": EndpointOutcome(exit_code=127)}), 1),
            (Outcome(endpoints={"client": EndpointOutcome(exit_code=1)}), 1),
            (Outcome(timed_out=True), 1 + share.RETRIES),
            (Outcome(failure="no namespace"), 1 + share.RETRIES),
        )
    ):
        address = str(tmp_path / f"{number}.sqlite")
        run(Pretence(lambda _: "invalid", outcome=outcome), address, base_request=other)
        assert set(stored(address).values()) == {("invalid", attempts)}, outcome


@pytest.mark.usefixtures("looking")
def test_an_invalid_trial_whose_harness_ended_is_run_again_by_another(
    run: Run, address: str, little: Request
) -> None:
    key = little.keys[0]
    attempts = 0

    def one_attempt_then_the_other_goes_on(_: TrialKey) -> str:
        nonlocal attempts
        attempts += 1
        if attempts == 2:
            other.start()
            began.wait()
            raise KeyboardInterrupt
        return "invalid"

    began = threading.Event()
    goes_on = Pretence(lambda ending: "invalid" if ending == key else "ok", at_begin=began.set)
    other = threading.Thread(target=lambda: run(goes_on, address))
    with pytest.raises(KeyboardInterrupt):
        run(Pretence(one_attempt_then_the_other_goes_on), address)
    other.join()
    assert stored(address)[key] == ("invalid", 2 + share.RETRIES)


def test_a_filter_runs_a_part_of_a_group_and_the_rest_is_run_later(
    run: Run, address: str, little: Request
) -> None:
    part = [key for key in little.keys if key.variant == "off"]
    run(database=address, keys=part)
    assert set(stored(address)) == set(part)
    engine = Pretence()
    run(engine, address)
    assert engine.ran == [key for key in little.keys if key not in part]


# Whether a holder lives


def claimant(holder: dict[str, Any] | None, beat: int = 0) -> Claimant:
    return Claimant(1, "ada", holder, beat)


def test_a_process_that_runs_is_not_dead_and_one_that_took_its_number_is_not_it(
    this_process: dict[str, Any],
) -> None:
    watch = Watch()
    assert not watch.is_dead(claimant(this_process))
    dead = a_dead_process() | {"process": os.getpid()}
    assert watch.is_dead(claimant(dead))
    assert not watch.is_dead(claimant(dead | {"boot": "another"}))
    of_an_older_fecbench = {"boot": this_process["boot"], "process": 1, "processes": 1, "since": 1}
    assert not watch.is_dead(claimant(of_an_older_fecbench))
    assert not watch.is_dead(claimant(None))


@pytest.mark.parametrize("is_cleaned", [False, True])
def test_a_process_that_was_killed_and_is_not_awaited_is_dead(is_cleaned: bool) -> None:
    watch = Watch()
    with another() as (process, holder):
        assert not watch.is_dead(claimant(holder))
        os.killpg(process.pid, signal.SIGKILL)
        wait_until(lambda: watch.is_dead(claimant(holder)), "its end")
        if is_cleaned:
            assert Path(holder["lock"]["path"]).parent in scratch.remove_abandoned()
            assert watch.is_dead(claimant(holder))


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root: makes namespaces")
@pytest.mark.parametrize("within", [("--mount-proc",), ()], ids=["with its own /proc", "with ours"])
def test_a_process_in_another_pid_namespace_is_alive_until_it_is_killed(within: tuple[str, ...]) -> None:
    with another("unshare", "--pid", "--fork", "--kill-child", *within) as (process, holder):
        assert holder["process"] < 10
        assert not Watch().is_dead(claimant(holder))
        killed(process)
        wait_until(lambda: Watch().is_dead(claimant(holder)), "its end")


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root: makes namespaces")
def test_of_a_process_with_another_folder_for_temporary_files_only_the_beat_tells() -> None:
    """The path of its temporary folder leads to something else here."""
    covered = 'mount -t tmpfs none "$TMPDIR" && exec "$@"'
    with tempfile.TemporaryDirectory() as folder:
        within = ("unshare", "--mount", "sh", "-c", covered, "sh")
        with another(*within, TMPDIR=folder) as (process, holder):
            assert not Watch().is_dead(claimant(holder))
            killed(process)
            assert not Watch().is_dead(claimant(holder))


def test_a_holder_is_dead_when_its_beat_has_stood_still_by_the_clock_of_who_watches(
    this_process: dict[str, Any],
) -> None:
    now = 1000.0
    watch = Watch(lambda: now)
    far = this_process | {"boot": "another"}
    assert not watch.is_dead(claimant(far))
    now += DEAD_AFTER_S - 1
    assert not watch.is_dead(claimant(far))
    assert not watch.is_dead(claimant(far, beat=1))
    now += DEAD_AFTER_S - 1
    assert not watch.is_dead(claimant(far, beat=1))
    now += 1
    assert watch.is_dead(claimant(far, beat=1))
    assert not watch.is_dead(dataclasses.replace(claimant(far, beat=1), start_id=2))


def a_record(key: TrialKey) -> TrialRecord:
    return TrialRecord(key, "ok", "", "2026-01-02T03:04:05+00:00", 1.0)
