"""Campaigns in virtual time: the same digest however they are run, and nothing needs rights."""

import json
import os
import random
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from itertools import count
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from fecbench.checkout import REPOSITORY
from fecbench.results.store.database import Database
from fecbench.results.store.digest import of_trial
from fecbench.runners.campaign import record, share
from fecbench.runners.engines import virtual
from fecbench.runners.sandbox import fence
from tests import ordinary
from tests.results.conftest import postgresql, postgresql_folder  # noqa: F401 - fixtures
from tests.runners.conftest import TwoImplementations, WriteDesign
from tests.runners.engines.conftest import HERE
from tests.support.campaigns import only_campaign
from tests.support.designs import variant

KILLS = 3
TRIALS = 3 * 2 * 2
FOLDER = ("--implementations", HERE)

Run = Callable[..., Any]


@pytest.fixture
def run(fecbench_here: Callable[..., Any], tmp_path: Path) -> Run:
    """Runs a design in virtual time, in this process. To check the simulators, it starts two more."""

    def run(
        design: Path, database: object = tmp_path / "x.sqlite", *options: object, checks: bool = False
    ) -> Any:
        begins = () if checks else ("--no-calibrate",)
        words = ("run", design, "--engine", "virtual", "--db", database, *FOLDER, "--json")
        return fecbench_here(*words, *begins, *options)

    return run


@pytest.fixture
def digest(fecbench_here: Callable[..., Any]) -> Callable[[object], str]:
    """A function that returns the line of `show --digest` for the campaign of a database."""

    def digest(database: object) -> str:
        output = fecbench_here("show", "--db", database, "--digest")
        assert (output.returncode, output.stderr) == (0, "")
        assert re.fullmatch(r"[0-9a-f]{64}\n", output.stdout)
        return str(output.stdout)

    return digest


def command(design: Path, database: object, *options: object) -> list[str]:
    """The same as a process of its own."""
    fecbench = str(Path(sys.executable).parent / "fecbench")
    words = ("run", design, "--engine", "virtual", "--db", database, *FOLDER, *options)
    return [fecbench, *map(str, words)]


def test_a_campaign_comes_to_the_same_with_other_jobs_in_another_order_and_in_pieces_but_for_its_seed(
    made_up: WriteDesign, run: Run, digest: Callable[[object], str], tmp_path: Path
) -> None:
    design = made_up("refuses", one_in=3)
    manners = {
        "one": [()],
        "two": [("--jobs", 2)],
        "pieces": [("--filter", f"point={point}", "--jobs", 2) for point in (2, 0)] + [("--resume",)],
    }
    digests = set()
    for name, starts in manners.items():
        database = tmp_path / f"{name}.sqlite"
        for options in starts:  # type: ignore[attr-defined]
            ran = run(design, database, *options)
            assert ran.returncode in (0, 1), ran.stderr
        digests.add(digest(database))
    assert len(digests) == 1
    design.write_text(design.read_text().replace("seed = 5", "seed = 6"))
    run(design, tmp_path / "other.sqlite")
    assert digest(tmp_path / "other.sqlite") not in digests


def test_variants_of_two_implementations_share_a_campaign(
    two_implementations: TwoImplementations,
    fecbench_here: Callable[..., Any],
    digest: Callable[[object], str],
    tmp_path: Path,
) -> None:
    """Each trial has one of them; a core has one trial at a time."""
    design, both = two_implementations()
    for jobs in (1, 2):
        words = ("run", design, "--engine", "virtual", "--db", tmp_path / f"{jobs}.sqlite", "--jobs", jobs)
        ran = fecbench_here(*words, "--implementations", both)
        assert ran.returncode == 0, ran.stderr
    assert digest(tmp_path / "1.sqlite") == digest(tmp_path / "2.sqlite")
    with Database.open(str(tmp_path / "1.sqlite")) as database:
        (campaign,) = database.campaigns()
    (check,) = campaign.provenance["calibration"]
    assert check["implementations"].keys() == {"made-up", "second"}


def test_an_implementation_that_is_given_up_harms_its_own_trials_and_resume_runs_those_that_were_left(
    two_implementations: TwoImplementations,
    fecbench_here: Callable[..., Any],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(virtual, "MOST_FAILURES", 3)
    design, both = two_implementations("dies", repetitions=3)
    address = str(tmp_path / "x.sqlite")
    words = ("run", design, "--engine", "virtual", "--db", address, "--implementations", both)
    counts = []
    for options in [(), ("--resume",)]:
        ran = fecbench_here(*words, "--jobs", 1, "--no-calibrate", *options)
        assert ran.returncode == 1
        last = ran.stderr.splitlines()[-1]
        assert re.search("simulator of second failed 3 times, .* its other trials are left undone", last)
        with only_campaign(address) as (database, campaign):
            states = database.states(campaign.id)
            assert database.claims(campaign.id) == {}
        counts.append(Counter((key.variant, state) for key, (state, _) in states.items()))
    assert counts == [
        {("good", "ok"): 3 * 3, ("other", "failed"): 3},
        {("good", "ok"): 3 * 3, ("other", "failed"): 6},
    ]


def kills(design: Path, database: Path, times: int, seed: int) -> None:
    """Run a campaign, and kill it at so many random moments; then let it end."""
    moments = random.Random(seed)
    kinds = (signal.SIGKILL, signal.SIGTERM, signal.SIGINT)
    for number in range(times):
        jobs = moments.choice((1, 2))
        harness = subprocess.Popen(
            command(design, database, "--jobs", jobs),
            cwd=REPOSITORY,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert harness.stderr
        output = ""
        while "trials to run" not in (line := harness.stderr.readline()):
            output += line
            assert line, f"it ended before it began: {output}"
        # Not an event that is awaited, but the moment of the kill: anywhere in the campaign.
        time.sleep(moments.uniform(0, 0.5))
        harness.send_signal(kinds[number % len(kinds)])
        harness.communicate(timeout=500)
        assert harness.returncode, "the campaign had ended before the kill"
    result = subprocess.run(command(design, database), cwd=REPOSITORY, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr


@pytest.mark.timeout(1200)
@pytest.mark.parametrize("times", [2, pytest.param(20, marks=pytest.mark.slow)])
def test_kills_at_random_moments_change_nothing(
    made_up: WriteDesign, run: Run, digest: Callable[[object], str], tmp_path: Path, times: int
) -> None:
    design = made_up("sleeps", repetitions=10 * times)
    assert run(design, tmp_path / "a.sqlite", "--jobs", 2).returncode == 0
    kills(design, tmp_path / "b.sqlite", times, seed=20261122)
    assert digest(tmp_path / "a.sqlite") == digest(tmp_path / "b.sqlite")


def test_an_interrupt_keeps_what_had_ended(
    made_up: WriteDesign, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing would be stored before the end without the interrupt."""
    monkeypatch.setattr(share, "BATCH_TRIALS", 10**6)
    monkeypatch.setattr(share, "BATCH_S", 10**6)
    real = virtual.VirtualEngine.run

    def interrupted(self: Any, tasks: Any) -> Any:
        for number, finished in enumerate(real(self, tasks)):
            yield finished
            if number == 7:
                os.kill(os.getpid(), signal.SIGINT)

    monkeypatch.setattr(virtual.VirtualEngine, "run", interrupted)
    assert run(made_up(), tmp_path / "x.sqlite").returncode == 128 + signal.SIGINT
    with only_campaign(tmp_path / "x.sqlite") as (database, campaign):
        assert len(database.states(campaign.id)) == 8
        assert database.claims(campaign.id) == {}


@pytest.fixture
def batches(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The number of trials in each batch that was stored."""
    sizes: list[int] = []
    record_all = Database.record_all

    def counted(self: Database, campaign_id: int, records: Any, start_id: int) -> Any:
        sizes.append(len(records))
        return record_all(self, campaign_id, records, start_id)

    monkeypatch.setattr(Database, "record_all", counted)
    return sizes


def test_trials_are_stored_many_at_a_time(
    made_up: WriteDesign, run: Run, batches: list[int], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(share, "BATCH_S", 10**6)
    monkeypatch.setattr(share, "BATCH_TRIALS", 8)
    assert run(made_up(), tmp_path / "x.sqlite").returncode == 0
    assert batches == [8, 4]


def test_a_trial_waits_no_longer_than_a_second_for_others_to_be_stored_with_it(
    made_up: WriteDesign, run: Run, batches: list[int], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The clock of this test ends a trial every quarter of a second."""
    quarters = count()
    clock = SimpleNamespace(monotonic=lambda: next(quarters) / 4, sleep=time.sleep)
    monkeypatch.setattr(share, "time", clock)
    assert run(made_up(), tmp_path / "x.sqlite").returncode == 0
    assert batches == [5, 5, 2]


def test_a_record_that_cannot_be_stored_spoils_no_other(
    made_up: WriteDesign, run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The error is that of a trial that has a result already."""
    once = []
    record_all = Database.record_all

    def lost(self: Database, campaign_id: int, records: Any, start_id: int) -> Any:
        if not once:
            once.append(self.record(campaign_id, records[3], start_id))
        return record_all(self, campaign_id, records, start_id)

    monkeypatch.setattr(Database, "record_all", lost)
    ran = run(made_up(), tmp_path / "x.sqlite")
    assert ran.returncode == 0
    assert ran.stderr.count("not kept: another fecbench has run it meanwhile") == 1
    assert json.loads(ran.stdout)["states"] == {"ok": TRIALS}


def test_an_invalid_trial_is_run_once_and_never_again(made_up: WriteDesign, run: Run, tmp_path: Path) -> None:
    """A simulator that lies once lies each time."""
    for _ in range(2):
        ran = run(made_up("lies"), tmp_path / "x.sqlite", checks=True)
        assert ran.returncode == 1
        assert json.loads(ran.stdout)["states"] == {"invalid": TRIALS // 2, "ok": TRIALS // 2}
    with only_campaign(tmp_path / "x.sqlite") as (database, campaign):
        assert {attempts for _, attempts in database.states(campaign.id).values()} == {1}


def test_failed_trials_are_run_again_on_request(
    made_up: WriteDesign, run: Run, fecbench_here: Callable[..., Any], tmp_path: Path
) -> None:
    path, again = tmp_path / "x.sqlite", ("--retry", "failed,timeout", "--retry", "unsupported")
    assert run(made_up("dies", one_in=2), path).returncode == 1
    run(made_up("dies", one_in=2), path, *again)
    output = json.loads(fecbench_here("show", "--db", path, "--json").stdout)["trials"]
    attempts = {trial["state"]: [attempt["state"] for attempt in trial["attempts"]] for trial in output}
    assert attempts == {"ok": ["ok"], "failed": ["failed", "failed"]}


# Refusals


def test_a_simulator_that_answers_nothing_or_one_trial_in_two_ways_is_refused_before_anything_runs(
    made_up: WriteDesign, run: Run, tmp_path: Path
) -> None:
    nothing = "the simulator of made-up ended with status 3: I have had enough (other, download-20000"
    for manner, output in (("remembers", "made-up: its simulator answered one trial in"), ("dies", nothing)):
        words = (made_up(manner), tmp_path / "x.sqlite", "--filter", "variant=other")
        assert output in run(*words, checks=True).refusal()
        with Database.open(str(tmp_path / "x.sqlite")) as database:
            assert database.campaigns() == []


def test_an_implementation_without_a_simulator_is_refused(
    write_design: WriteDesign, fecbench_here: Callable[..., Any], tmp_path: Path
) -> None:
    folder = tmp_path / "more" / "plain"
    folder.mkdir(parents=True)
    written = (HERE / "made-up" / "impl.toml").read_text().replace("made-up", "plain")
    (folder / "impl.toml").write_text(re.sub("^simulator.*\n", "", written, flags=re.MULTILINE))
    design = write_design(tmp_path, variants=[variant("off", "plain")])
    database = tmp_path / "x.sqlite"
    words = ("run", design, "--engine", "virtual", "--db", database)
    refusal = fecbench_here(*words, "--implementations", folder.parent).refusal()
    assert refusal == "fecbench: plain has no simulator: it runs with --engine local only\n"
    assert not database.exists()


def test_a_link_and_two_implementations_in_one_trial_are_refused(made_up: WriteDesign, run: Run) -> None:
    for link in ("wire", "auto"):
        refusal = run(made_up(), "x.sqlite", "--link", link).refusal()
        assert f"--link {link}: there is no emulated link with --engine virtual: leave it out" in refusal
    variants = [variant("other", "made-up") | {"server": "third"}, variant("third", "rquic")]
    refusal = run(made_up(variants=variants)).refusal()
    output = "variant 'other', workload download-20000: made-up ('other') and rquic ('third') take part"
    assert output in refusal and "use --engine local" in refusal


def test_engines_are_never_mixed(made_up: WriteDesign, run: Run, tmp_path: Path) -> None:
    """A campaign that says that it was run by the other engine."""
    design, path = made_up(), tmp_path / "x.sqlite"
    assert run(design, path, "--filter", "point=0").returncode == 0
    change(path, "engine", "local")
    assert "another engine: engine was 'local', is 'virtual'" in run(design, path).refusal()
    change(path, "engine", None)  # as an earlier fecbench has left it
    assert "another engine: engine was 'local', is 'virtual'" in run(design, path).refusal()


def change(path: Path, name: str, value: str | None) -> None:
    """Change a value in the provenance of the campaign; None removes it."""
    with sqlite3.connect(path) as connection:
        (text,) = connection.execute("SELECT provenance FROM campaigns").fetchone()
        provenance = json.loads(text)
        del provenance[name]
        if value is not None:
            provenance[name] = value
        connection.execute("UPDATE campaigns SET provenance = ?", (json.dumps(provenance),))


# What is kept, and shown


def test_the_database_says_virtual(
    made_up: WriteDesign, run: Run, fecbench_here: Callable[..., Any], tmp_path: Path
) -> None:
    path = tmp_path / "x.sqlite"
    run(made_up(), path, checks=True)
    with only_campaign(path) as (database, campaign):
        assert campaign.provenance["jobs"] == "auto"  # each core has a simulator
        (trial, *_) = database.trials(campaign.id)
        (start,) = database.starts(campaign.id)
    assert start.provenance["engine"] == campaign.provenance["link"] == "virtual"
    (check,) = campaign.provenance["calibration"]
    assert len(check["implementations"]["made-up"]) == 2
    assert trial.record.checks["digest"] == of_trial(trial.record)
    assert trial.record.links["internet"]["directions"]["up"]["late"] == 0
    assert not {"stalled_s", "late_max_ms", "stolen_s"} & trial.record.checks.keys()
    assert trial.record.checks["virtual_s"] > trial.record.metrics["client"]["dct_s"]
    simulator = HERE / "made-up" / "simulator.py"
    assert any(simulator.name in name for name in campaign.provenance["binaries"])
    for words in (("show",), ("show", trial.id)):
        assert "campaign little, virtual" in fecbench_here(*words, "--db", path).stdout.splitlines()[0]


def test_a_replay_comes_to_the_same_and_leaves_everything(
    made_up: WriteDesign, run: Run, fecbench_here: Callable[..., Any], tmp_path: Path
) -> None:
    path, folder = tmp_path / "x.sqlite", tmp_path / "replayed"
    run(made_up(), path)
    replayed = fecbench_here("replay", 3, "--db", path, "--output", folder, *FOLDER)
    assert replayed.returncode == 0, replayed.stderr
    with Database.open(str(path)) as database:
        trial = database.trial(None, 3)
    assert trial is not None
    assert f"ok, digest {trial.record.checks['digest']}, as recorded" in replayed.stdout
    assert {file.name for file in folder.iterdir()} >= {"client.pcapng", "server.pcapng", "replay.json"}
    assert (folder / "client" / "cwnd.series.csv").is_file()
    assert {file.stat().st_uid for file in folder.rglob("*")} == {os.geteuid()}
    assert not any(file.is_symlink() for file in folder.rglob("*"))


def test_a_replay_that_comes_to_something_else_says_so(
    made_up: WriteDesign, run: Run, fecbench_here: Callable[..., Any], tmp_path: Path
) -> None:
    path = tmp_path / "x.sqlite"
    run(made_up("remembers"), path)
    with only_campaign(path) as (database, campaign):
        last = [trial.id for trial in database.trials(campaign.id) if trial.record.key.variant == "other"][-1]
    replayed = fecbench_here("replay", last, "--db", path, "--output", tmp_path / "replayed", *FOLDER)
    assert replayed.returncode == 1
    assert ", as recorded; NOT as recorded: client.tasks_before " in replayed.stdout


def test_a_metric_that_is_new_moves_no_digest_of_the_wire(
    made_up: WriteDesign,
    run: Run,
    fecbench_here: Callable[..., Any],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lines = []
    measured, path = record._metrics, tmp_path / "x.sqlite"
    for name in ("today", "tomorrow"):
        run(made_up(), path, "--campaign", name)
        output = fecbench_here("show", "--db", path, "--digest", "--json", "--campaign", name)
        lines.append(json.loads(output.stdout))
        monkeypatch.setattr(record, "_metrics", lambda *of: measured(*of) | {"messages": {"novel": 1.0}})
    assert lines[0]["digest"] == lines[1]["digest"]
    assert lines[0]["metrics_digest"] != lines[1]["metrics_digest"]
    plain = fecbench_here("show", "--db", path, "--digest", "--campaign", "today").stdout
    assert plain == lines[0]["digest"] + "\n"
    assert "has 2 campaigns" in fecbench_here("show", "--db", path, "--digest").refusal()


# Without rights


# A container without privileges has a root who can become nobody else.
NAMESPACE = ("unshare", "--user", "--map-root-user", "--mount", "--pid", "--fork")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
@pytest.mark.parametrize("where", [(), NAMESPACE], ids=["here", "as root of a user namespace"])
def test_a_user_without_rights_runs_and_replays_a_campaign(
    where: tuple[str, ...],
    made_up: WriteDesign,
    run: Run,
    digest: Callable[[object], str],
    tmp_path: Path,
    of_nobody: Path,
) -> None:
    if where and subprocess.run([*ordinary.command(), *where, "true"], capture_output=True).returncode != 0:
        pytest.skip("the kernel lets an ordinary user make no user namespace here, as in a chroot")
    run(made_up("sleeps"), tmp_path / "x.sqlite")
    design = shutil.copy(made_up("sleeps"), of_nobody)
    user = [*ordinary.command(), "setpriv", "--no-new-privs"]
    environment = {**os.environ, "HOME": str(of_nobody), "TMPDIR": str(of_nobody)}

    def as_nobody(*words: str) -> str:
        """Return the output. Simulators are confined, and no line denies it."""
        result = subprocess.run(
            [*user, *where, *words], cwd=REPOSITORY, env=environment, capture_output=True, text=True
        )
        assert result.returncode == 0, result.stderr
        assert not fence.is_offered() or "not confined" not in result.stderr
        return result.stdout

    theirs = of_nobody / "x.sqlite"
    as_nobody(*command(design, theirs, "--jobs", 2))
    assert digest(theirs) == digest(tmp_path / "x.sqlite")
    if where:
        return
    fecbench = str(Path(sys.executable).parent / "fecbench")
    words = ("replay", 1, "--db", theirs, "--output", of_nobody / "replayed", *FOLDER)
    assert "as recorded" in as_nobody(fecbench, *map(str, words))


def test_a_simulator_that_records_nothing_answers_and_is_replayed_all_the_same(
    made_up: WriteDesign, fecbench_here: Callable[..., Any], tmp_path: Path
) -> None:
    folder = tmp_path / "others" / "made-up"
    shutil.copytree(HERE / "made-up", folder)
    program = folder / "simulator.py"
    text = program.read_text()
    assert text.count('if task["capture"]:') == 1
    program.write_text(text.replace('if task["capture"]:', "if False:"))
    where = ("--db", tmp_path / "x.sqlite", "--implementations", folder.parent)
    assert fecbench_here("run", made_up(), "--engine", "virtual", *where).returncode == 0
    replayed = fecbench_here("replay", 1, *where, "--output", tmp_path / "replayed")
    assert (replayed.returncode, replayed.stderr) == (0, "")
    assert "as recorded" in replayed.stdout
    assert list((tmp_path / "replayed").glob("*.pcapng")) == []


def test_invalid_trials_are_run_again_when_it_is_asked_for(
    made_up: WriteDesign, fecbench_here: Callable[..., Any], tmp_path: Path
) -> None:
    words = ("run", made_up("disturbs"), "--engine", "virtual", "--db", tmp_path / "x.sqlite", *FOLDER)
    fecbench_here(*words, "--no-calibrate")

    def attempts() -> Counter[tuple[str, int]]:
        output = json.loads(fecbench_here("show", "--db", tmp_path / "x.sqlite", "--json").stdout)
        return Counter((trial["state"], len(trial["attempts"])) for trial in output["trials"])

    assert attempts() == {("ok", 1): 6, ("invalid", 1): 6}
    fecbench_here(*words, "--no-calibrate", "--resume")
    assert attempts() == {("ok", 1): 6, ("invalid", 1): 6}
    fecbench_here(*words, "--no-calibrate", "--retry", "invalid")
    assert attempts() == {("ok", 1): 6, ("invalid", 2): 6}
