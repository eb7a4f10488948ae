"""The engine of virtual time, with a simulator that answers in whatever manner it is told to."""

import json
import os
import subprocess
import sys
from dataclasses import replace
from itertools import cycle
from pathlib import Path
from typing import Any

import pytest

from fecbench.checkout import REPOSITORY
from fecbench.dropper.draws import pack
from fecbench.dropper.model import Pattern, verdicts
from fecbench.results.store.records import TrialKey
from fecbench.runners.engines import virtual
from fecbench.runners.engines.engine import EngineError
from fecbench.runners.engines.programs import engine_for
from fecbench.runners.engines.virtual import VirtualEngine
from fecbench.runners.sandbox import kernel, rights
from fecbench.runners.tasks.task import ROLES, Task
from fecbench.runners.trial import cgroup, competition, simulation
from fecbench.runners.trial.assignment import assignment
from fecbench.runners.trial.judge import Judgement, judge
from fecbench.runners.trial.simulation import AnswerError, Place
from tests.runners.conftest import TwoImplementations
from tests.runners.engines.conftest import Play, Tasks, WriteDesign, experiment_of, tasks_of  # type: ignore[attr-defined]
from tests.support.designs import between, workload
from tests.support.processes import is_running, with_mark
from tests.waiting import wait_until

OTHER = "other"


@pytest.fixture
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    """A simulator that says nothing for a moment hangs."""
    monkeypatch.setattr(virtual, "LIMIT_S", 2.0)


@pytest.fixture
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """A simulator is given up after three failures, each of which starts another."""
    monkeypatch.setattr(virtual, "MOST_FAILURES", 3)


def misbehaving(made_up: WriteDesign, manner: str) -> Tasks:
    """Return a good task, one that is answered in this manner, and more good ones."""
    tasks = tasks_of(experiment_of(made_up(manner)))
    good = [task for task in tasks if task[0].variant != OTHER]
    return [good[0], bad_one(made_up, manner), *good[1:]]


def bad_one(made_up: WriteDesign, manner: str) -> tuple[TrialKey, Task]:
    """A task that is answered in this manner; its variant is called so."""
    key, task = next(task for task in tasks_of(experiment_of(made_up(manner))) if task[0].variant == OTHER)
    return replace(key, variant=manner), task


NONSENSE = {
    "dies": "ended with status 3: I have had enough",
    "is_killed": "ended with SIGKILL: it said nothing",
    "closes": "ended with SIGKILL",
    "garbage": "answered b'well, well', which is no answer",
    "other_number": " and was asked for task ",
    "no_links": "answered without both directions of link internet",
    "no_server": "answered with the endpoints client, of client, server",
    "nan": "endpoints.client.metrics.dct_s",
    "infinite": "endpoints.client.metrics.dct_s",
    "text": "endpoints.client.metrics.dct_s = '0.5'",
    "short_bitmap": "answered with 0 bytes of verdicts for",
    "no_base64": "internet/down: answered with a bitmap that is no base64",
    "short_arrivals": "internet/down: answered with 8 bytes of arrivals for",
    "outlasts": "answered with a client of ",
    "boasts": "wrote a line of more than ",
    "chatters": "answered b'well, well",
    "asks": "and nothing is to be read in task ",
}


def judged(made_up: WriteDesign, play: Play, *manners: str) -> dict[str, Judgement]:
    """Return the judge's results of tasks that are answered in these manners. Those before and after each are
    ok."""
    usual = [task for task in tasks_of(experiment_of(made_up())) if task[0].variant != OTHER]
    good = cycle(usual)
    tasks = [next(good)]
    for number, manner in enumerate(manners):
        key, task = next(good)
        tasks += [bad_one(made_up, manner), (replace(key, repetition=100 + number), task)]
    results = {item.key: judge(item.task, item.outcome) for item in play(tasks)}
    assert results.keys() == {key for key, _ in tasks}
    assert {judgement.state for key, judgement in results.items() if key.variant not in manners} == {"ok"}
    return {key.variant: judgement for key, judgement in results.items() if key.variant in manners}


def test_a_simulator_that_dies_or_answers_nonsense_costs_its_trial_and_no_other(
    made_up: WriteDesign, play: Play
) -> None:
    results = judged(made_up, play, *NONSENSE)
    for manner, message in NONSENSE.items():
        assert results[manner].state == "failed", manner
        assert message in results[manner].reason
        assert results[manner].reason.startswith("the simulator of made-up ")


@pytest.mark.usefixtures("hasty")
def test_a_simulator_that_hangs_is_killed_and_the_others_go_on(made_up: WriteDesign, play: Play) -> None:
    bad = judged(made_up, play, "hangs")["hangs"]
    assert bad.state == "failed"
    assert bad.reason == "the simulator of made-up did not answer within 2 s: let me think"


OF_THE_TRIAL = {
    "refuses": ("failed", "the simulator: I cannot play this"),
    "disturbs": ("invalid", "the simulator collected garbage within the trial"),
    "lies": ("invalid", "internet/down: 1 of 20 verdicts differ from the oracle's, first at packet 0"),
    "leaks": ("invalid", "internet/up: the link did not conserve its packets"),
    "shouts": ("ok", ""),
}


def test_a_simulator_goes_on_after_what_it_cannot_play_has_disturbed_or_lies_about(
    made_up: WriteDesign, play: Play
) -> None:
    results = judged(made_up, play, *OF_THE_TRIAL)
    for manner, (state, message) in OF_THE_TRIAL.items():
        assert (results[manner].state, message in results[manner].reason) == (state, True), results[manner]


def test_a_second_answer_to_one_task_is_no_answer_to_the_next(made_up: WriteDesign, play: Play) -> None:
    tasks = misbehaving(made_up, "twice")
    states = [judge(item.task, item.outcome).state for item in play(tasks)]
    assert sorted(states) == ["failed"] + ["ok"] * (len(tasks) - 1)


def test_an_answer_that_nobody_asked_for_ends_the_simulator_and_costs_no_trial(made_up: WriteDesign) -> None:
    """The simulator answers once more after its last task. Its next answer is not believed, so another one
    continues."""
    experiment = experiment_of(made_up("twice"))
    tasks = tasks_of(experiment)
    last = next(task for task in tasks if task[0].variant == OTHER)
    with engine_for("virtual", experiment.implementations, 1) as engine:
        (finished,) = engine.run([last])
        assert judge(finished.task, finished.outcome).state == "ok"
        (seat,) = engine._seats
        while seat.simulators:
            engine._selector.select()
            assert list(engine._heard(seat, "made-up", 0)) == []
        good = [task for task in tasks if task[0].variant != OTHER]
        assert {judge(item.task, item.outcome).state for item in engine.run(good)} == {"ok"}


@pytest.mark.usefixtures("soon")
def test_one_that_fails_again_and_again_is_given_up_and_the_engine_ends_in_a_line(
    made_up: WriteDesign,
) -> None:
    experiment = experiment_of(made_up("dies", repetitions=2))
    tasks = [task for task in tasks_of(experiment) if task[0].variant == OTHER]
    failed = []
    with (
        engine_for("virtual", experiment.implementations, 2) as engine,
        pytest.raises(EngineError, match="made-up failed 3 times, one after another: it ended with"),
    ):
        for item in engine.run(tasks):
            failed.append(item.key)
    assert virtual.MOST_FAILURES <= len(failed) <= virtual.MOST_FAILURES + 1


@pytest.mark.usefixtures("soon")
def test_one_that_is_given_up_harms_no_trial_of_others(two_implementations: TwoImplementations) -> None:
    jobs = 2
    design, folder = two_implementations("dies", repetitions=2)
    experiment = experiment_of(design, folder)
    tasks = tasks_of(experiment)
    states: dict[TrialKey, str] = {}
    with (
        engine_for("virtual", experiment.implementations, jobs) as engine,
        pytest.raises(EngineError, match=r"of second failed 3 times.* its other trials are left undone"),
    ):
        for item in engine.run(tasks):
            states[item.key] = judge(item.task, item.outcome).state
    others = {key for key, _ in tasks if key.variant != OTHER}
    assert {key for key, state in states.items() if state == "ok"} == others
    failed = [key for key, state in states.items() if state == "failed"]
    assert virtual.MOST_FAILURES <= len(failed) <= virtual.MOST_FAILURES + jobs - 1
    assert len(failed) < len(tasks) - len(others)


@pytest.mark.usefixtures("soon")
def test_failures_that_answers_interrupt_go_on_to_the_end(made_up: WriteDesign, play: Play) -> None:
    tasks = tasks_of(experiment_of(made_up("dies", repetitions=2)))
    assert sum(key.variant == OTHER for key, _ in tasks) > virtual.MOST_FAILURES
    assert len(play(tasks)) == len(tasks)


def test_a_simulator_is_started_once_for_each_trial_at_a_time_and_ends_with_the_engine(
    made_up: WriteDesign,
) -> None:
    experiment = experiment_of(made_up("sleeps"))
    start_s = set()
    with engine_for("virtual", experiment.implementations, 2) as engine:
        for _ in engine.run(tasks_of(experiment)):
            start_s |= {
                simulator._process.pid for seat in engine._seats for simulator in seat.simulators.values()
            }
    assert len(start_s) == 2
    assert not any(Path(f"/proc/{process}").exists() for process in start_s)


def test_tasks_are_made_when_they_are_needed(made_up: WriteDesign) -> None:
    experiment = experiment_of(made_up(repetitions=50))
    taken = 0

    def tasks() -> Any:
        nonlocal taken
        for task in tasks_of(experiment):
            taken += 1
            yield task

    with engine_for("virtual", experiment.implementations, 1) as engine:
        finished = engine.run(tasks())
        next(finished)
        assert taken < 50
        finished.close()  # type: ignore[attr-defined]


def test_a_simulator_dies_with_its_harness(made_up: WriteDesign) -> None:
    """The harness is killed while the simulator hangs."""
    path = made_up("hangs")
    program = (
        "import sys, pathlib; from tests.runners.engines.conftest import *\n"
        f"e = experiment_of(pathlib.Path({str(path)!r}))\n"
        "with engine_for('virtual', e.implementations) as engine:\n"
        "    tasks = [t for t in tasks_of(e) if t[0].variant == 'other']\n"
        "    run = engine.run(tasks); engine._hand_out(iter(tasks))\n"
        "    print(engine._seats[0].simulator._process.pid, flush=True)\n"
        "    next(run)\n"
    )
    harness = subprocess.Popen(
        [sys.executable, "-c", program], cwd=REPOSITORY, stdout=subprocess.PIPE, text=True
    )
    assert harness.stdout
    simulator = int(harness.stdout.readline())
    harness.kill()
    harness.wait()
    wait_until(lambda: not is_running(simulator), "its end")


# What a simulator may do


def test_a_simulator_has_no_rights(made_up: WriteDesign, tmp_path: Path) -> None:
    """The simulator of root has another user, any other the same user. Its rights and memory are limited."""
    secret = tmp_path / "secret"
    secret.write_text("mine")
    secret.chmod(0o600)
    folder = tmp_path / "implementations" / "made-up"
    folder.mkdir(parents=True)
    module = folder / "seen.py"
    module.write_text(
        "import json, os, resource, sys\n"
        "status = dict(l.split(':', 1) for l in open('/proc/self/status'))\n"
        "def can(do):\n"
        "    try: do()\n"
        "    except OSError: return False\n"
        "    return True\n"
        "for line in sys.stdin:\n"
        "    task = json.loads(line)\n"
        "    print(json.dumps({'number': task['number'], 'error': json.dumps({\n"
        "        'cgroups': open('/proc/self/cgroup').read(),\n"
        "        'user': os.geteuid(), 'nnp': int(status['NoNewPrivs']), 'cap': int(status['CapEff'], 16),\n"
        "        'core': resource.getrlimit(resource.RLIMIT_CORE)[1],\n"
        "        'data': resource.getrlimit(resource.RLIMIT_DATA)[1],\n"
        f"        'reads': can(lambda: open({str(secret)!r})),\n"
        f"        'writes': can(lambda: open({str(folder / 'mark')!r}, 'w')),\n"
        "    })}), flush=True)\n"
    )
    experiment = experiment_of(made_up())
    with VirtualEngine(2, {"made-up": ["/usr/bin/python3", str(module)]}, {"made-up": folder}) as engine:
        finished = list(engine.run(tasks_of(experiment)[:2]))
        name = engine._folder.name
    message, other = (json.loads(item.outcome.no_answer.partition(": ")[2]) for item in finished)
    assert (message["nnp"], message["core"]) == (1, 0)
    if kernel.may_administer():
        assert min(message["user"], other["user"]) >= rights.FIRST_USER
        assert message["user"] != other["user"]
        assert bool(cgroup.usable()) == (f"/{name}." in message["cgroups"])
        assert message["cap"] == 0
        assert 0 < message["data"] <= 4 << 30
        assert not message["reads"]
        assert not message["writes"]
    else:
        assert message["user"] == os.geteuid()


needs_root = pytest.mark.skipif(not kernel.may_administer(), reason="needs a user to give away")


@needs_root
def test_what_a_simulator_has_started_ends_with_it(made_up: WriteDesign) -> None:
    """This includes programs in sessions of their own."""
    tasks = misbehaving(made_up, "leaves")
    experiment = experiment_of(made_up("leaves"))
    with engine_for("virtual", experiment.implementations, 1) as engine:
        assert len(list(engine.run(tasks[:2]))) == 2
        mark = engine._folder.name.encode()
        # It is there before the kernel shows its words.
        wait_until(lambda: any(b"sleep" in command for command in commands_with(mark)), "sleep")
    wait_until(lambda: not commands_with(mark), "its end")
    assert not [path for place in cgroup.usable() for path in place.folder.glob(f"{mark.decode()}.*")]


def commands_with(mark: bytes) -> list[bytes]:
    """The command lines of running processes that have this word in them, but for that of the launcher."""
    results = with_mark(mark).values()
    return [command for command in results if b"fecbench.runners.engines.launcher" not in command]


@needs_root
def test_a_simulator_cannot_have_a_file_of_others_by_a_link(
    made_up: WriteDesign, play: Play, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """This one waits for its log folders, and replaces each by a link as soon as it can."""
    ours = tmp_path / "ours"
    ours.touch()
    chown = os.chown

    def chown_later(path: Any, *owner: int, **how: Any) -> None:
        path = Path(path)
        if path.parent.stat().st_uid >= rights.FIRST_USER:
            path.rename(path.with_name("aside"))
            path.symlink_to(ours)
        chown(path, *owner, **how)

    monkeypatch.setattr(os, "chown", chown_later)
    play(tasks_of(experiment_of(leaving_series(made_up)))[:1])
    assert ours.stat().st_uid == os.getuid()


def test_a_series_that_is_not_there_or_that_a_link_leads_to_fails_the_trial(
    made_up: WriteDesign, play: Play
) -> None:
    for manner in ("forgets", "links"):
        tasks = tasks_of(experiment_of(leaving_series(made_up, manner)))
        (finished,) = play([next(task for task in tasks if task[0].variant == OTHER)])
        judgement = judge(finished.task, finished.outcome)
        assert judgement.state == "failed"
        assert "client left no series cwnd: cwnd.series.csv: No such file" in judgement.reason


def leaving_series(made_up: WriteDesign, *manner: str) -> Path:
    """A design whose variants leave a series."""
    series = {"series": ["cwnd"]}
    return made_up(*manner, good=series, other=series)


# Tasks


def test_the_same_task_has_the_same_line(made_up: WriteDesign, tmp_path: Path) -> None:
    place = Place(tmp_path, tmp_path / "none")
    one, other = (tasks_of(experiment_of(made_up())) for _ in range(2))
    assert [simulation.line_of(task, 1, place) for _, task in one] == [
        simulation.line_of(task, 1, place) for _, task in other
    ]


def test_each_trial_has_the_assignments_of_an_emulated_one_with_its_own_seed_and_files(
    made_up: WriteDesign, tmp_path: Path
) -> None:
    tasks = [task for _, task in tasks_of(experiment_of(made_up()))]
    assert len({task.content_seed for task in tasks}) > 1
    for number, task in enumerate(tasks):
        place = Place(tmp_path / str(number), tmp_path / "logs" / str(number))
        document = json.loads(simulation.line_of(task, number, place))
        (pair,) = task.pairs
        assert document["pairs"] == [
            {
                role: assignment(
                    role,
                    pair.end(role),
                    workload=pair.workload,
                    content_seed=task.content_seed,
                    server_address="10.0.2.2",
                    local_addresses=[],
                    certificates=place.certificates,
                    log_folder=place.log_folder(0, role),
                    deadline_s=task.timeout_s,
                )
                for role in ROLES
            }
        ]


def test_variants_of_a_repetition_share_the_seed_of_endpoints_and_repetitions_do_not(
    made_up: WriteDesign,
) -> None:
    seeds: dict[Any, set[int]] = {}
    for key, task in tasks_of(experiment_of(made_up())):
        seeds.setdefault((key.point, key.repetition), set()).add(simulation.seed_of_endpoints(task))
    assert all(len(of_group) == 1 for of_group in seeds.values())
    assert len(set.union(*seeds.values())) == len(seeds)


def lines_of(text: str) -> dict[str, str]:
    return dict(line.split(" ", 1) for line in text.splitlines())


def test_a_task_says_what_the_contract_says(made_up: WriteDesign, tmp_path: Path) -> None:
    _, task = tasks_of(experiment_of(made_up()))[0]
    document = json.loads(simulation.line_of(task, 7, Place(tmp_path, tmp_path / "none")))
    settings = task.links["internet"].settings
    assert document["number"] == 7
    (pair,) = document["pairs"]
    assert pair["client"]["address"] == pair["server"]["address"] == "10.0.2.2"
    assert pair["client"]["content_seed"] == task.content_seed
    assert "private_key" not in pair["client"]
    assert document["version"] == 2
    assert lines_of(document["links"]["internet"]["up"]) == {
        "delay_ns": "5000000",
        "rate_bps": str(settings.up.rate_bps),
        "queue_bytes": str(settings.queue_limit("up").bytes),
        "model": "uniform",
        "p": repr(task.links["internet"].losses["up"]["p"]),
        "seed": str(task.seeds["internet/up"]),
    }
    assert document["timeout_s"] == pair["client"]["deadline_s"] == 30
    assert document["filling"] is None
    assert document["capture"] is None
    assert not Path(pair["client"]["log_folder"]).exists()


def test_a_task_of_several_paths_has_a_link_for_each_address_of_the_client_and_says_outages(
    made_up: WriteDesign, tmp_path: Path
) -> None:
    constants = {"loss.model": "uniform", "owd_ms": 5, "path2.up.owd_ms": 7, "path2.down.outage_s": [0.5, 2]}
    design = made_up(topology="multipath", constants=constants)
    _, task = tasks_of(experiment_of(design))[0]
    end = task.pairs[0].client.model_copy(update={"local_addresses": True})
    task = task.model_copy(update={"pairs": [task.pairs[0].model_copy(update={"client": end})]})
    document = json.loads(simulation.line_of(task, 1, Place(tmp_path, tmp_path)))
    client = document["pairs"][0]["client"]
    assert (client["address"], client["local_addresses"]) == ("10.0.100.2", ["10.0.1.2", "10.0.2.2"])
    assert list(document["links"]) == ["path1", "path2"]
    path1, path2 = document["links"].values()
    assert [lines_of(path["up"])["delay_ns"] for path in (path1, path2)] == ["5000000", "7000000"]
    assert lines_of(path2["down"])["outage_ns"] == "500000000 2000000000"
    assert not any("outage_ns" in direction for direction in (*path1.values(), path2["up"]))


def test_a_task_of_two_transfers_has_two_pairs_and_says_when_the_link_is_full(
    made_up: WriteDesign, tmp_path: Path
) -> None:
    competing = workload("competing", background=OTHER, size_bytes=1000)
    design = made_up(topology="dumbbell", workloads=[competing])
    _, task = tasks_of(experiment_of(design))[0]
    document = json.loads(simulation.line_of(task, 1, Place(tmp_path, tmp_path)))
    settings = task.links["internet"].settings
    assert document["filling"] == {
        "full_share": competition.FULL_SHARE,
        "window_s": competition.window_s(settings),
        "interval_s": competition.INTERVAL_S,
    }
    ends = [end for pair in document["pairs"] for end in pair.values()]
    assert [end["address"] for end in ends] == ["10.0.2.2", "10.0.2.2", "10.0.4.2", "10.0.4.2"]
    assert len({end["log_folder"] for end in ends}) == 4


def test_a_pattern_is_told_as_it_is_judged(made_up: WriteDesign, play: Play) -> None:
    """The made-up simulator reads the list; the judge asks the oracle."""
    for repeat, dropped in ((True, ()), (True, (0, 3, 8, 9)), (False, (0, 3, 8, 9))):
        drop = ",".join(map(str, dropped))
        losses = {"model": "pattern", "drop": drop, "length": 11, "repeat": repeat}
        factors = {"bandwidth_mbps": between(5, 20)}
        design = made_up(factors=factors, constants={"owd_ms": 5, "loss": losses})
        for item in play(tasks_of(experiment_of(design))[:2]):
            judgement = judge(item.task, item.outcome)
            assert judgement.state == "ok", judgement.reason
            recorded = item.outcome.droppers["internet"]["down"]
            model = Pattern(dropped, 11, repeat)
            assert recorded.bitmap == pack(verdicts(model, 0, recorded.packets))


def test_series_are_collected(made_up: WriteDesign, play: Play) -> None:
    (finished,) = play(tasks_of(experiment_of(leaving_series(made_up)))[:1])
    tables = judge(finished.task, finished.outcome).series
    assert {endpoint for endpoint, _ in tables} == {"client", "server"}
    assert finished.folder is not None
    assert not finished.folder.exists()  # it was judged


def test_an_answer_to_another_task_is_refused(made_up: WriteDesign) -> None:
    _, task = tasks_of(experiment_of(made_up()))[0]
    with pytest.raises(AnswerError, match="answered task 3, and was asked for task 4"):
        simulation.outcome_of(b'{"number": 3, "error": "what?"}', task, 4)
