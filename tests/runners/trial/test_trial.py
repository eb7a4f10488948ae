"""Trials with endpoints and parts that fail: each ends in the right state, in time, and leaves nothing."""

import os
import signal
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from fecbench.dropper import command as dropper_command
from fecbench.dropper import model as dropper_model
from fecbench.dropper.command import COMMAND as DROPPER
from fecbench.dropper.command import DropperError
from fecbench.results.store.records import TrialKey
from fecbench.runners.engines import trial_worker
from fecbench.runners.engines.engine import Finished
from fecbench.runners.engines.namespaces import NamespaceEngine
from fecbench.runners.tasks.task import Task
from fecbench.runners.trial import transfer, trial
from fecbench.runners.trial.judge import Judgement, judge
from fecbench.runners.trial.site import Commands
from fecbench.runners.trial.transfer import has_timed_out
from fecbench.topologies import counters
from fecbench.topologies.link import LinkSettings
from tests.support import needs, processes, tasks
from tests.support.processes import descendants
from tests.support.scripts import HEAD, SERVE, scripted
from tests.support.trials import Trials
from tests.waiting import wait_until

pytestmark = needs.TRIALS

KEY = TrialKey("variant", "download-1000", 0, 0)
READY = 'print(\'{"event": "ready"}\', flush=True)\n'

# A server that answers each datagram with ten, and a client that wants forty of them: real packets.
SERVER = f"""{SERVE}
while True:
    data, peer = socket_.recvfrom(2000)
    for _ in range(10):
        socket_.sendto(data, peer)
"""
CLIENT = f"""{HEAD}
got = 0
socket_.settimeout(0.2)
while got < 40:
    socket_.sendto(b"x" * 1000, server)
    try:
        while got < 40:
            socket_.recv(2000)
            got += 1
    except TimeoutError:
        pass
done()
"""
# Begins when it is sent SIGUSR1.
WAIT = """
import signal, time
told = []
signal.signal(signal.SIGUSR1, lambda *_: told.append("go on"))
while not told:
    time.sleep(0.01)
"""
# Sends until then, so that some packets are in the delay line at any time.
SEND_AND_WAIT = f'{HEAD}{WAIT}    socket_.sendto(b"x", server)\n'
TASK = tasks.task(tasks.link(LinkSettings.symmetric(10, 5), {"model": "uniform", "p": 0.2}))


def changed(**changes: object) -> Task:
    return TASK.model_copy(update=changes)


def commands(client: str = CLIENT, server: str = SERVER) -> Commands:
    return scripted(client, server)


def engine() -> NamespaceEngine:
    return NamespaceEngine(1, commands())


Run = Callable[..., tuple[Finished, Judgement]]


@pytest.fixture
def run(trials: Trials) -> Run:
    def run(task: Task = TASK, **programs: str) -> tuple[Finished, Judgement]:
        return trials.run(task, commands(**programs))

    return run


def test_a_trial_drops_what_the_oracle_says_and_tells_its_phases_and_captures_both_hosts() -> None:
    with engine() as running:
        (finished,) = running.run([(KEY, trial_task := changed(capture=True))])
        judgement, down = judge(trial_task, finished.outcome), finished.outcome.droppers["internet"]["down"]
        assert (judgement.state, judgement.reason) == ("ok", "")
        predicted = dropper_model.verdicts(dropper_model.Uniform(0.2), 2, down.packets)
        assert down.packets >= 40
        assert down.counters.dropped == predicted.sum() > 0
        phases = finished.outcome.phases_s
        assert {"topology", "droppers", "server_start", "client", "endpoints_end", "results"} <= set(phases)
        assert sum(phases.values()) <= finished.duration_s
        assert finished.folder is not None
        for host in ("client", "server"):
            output = subprocess.run(
                ["tcpdump", "-n", "-r", finished.folder / f"{host}.pcap"], capture_output=True, text=True
            )
            assert ".4433: UDP, length 1000" in output.stdout
        running.judged(finished, valid=True)
        assert not finished.folder.exists()


@pytest.mark.parametrize("ahead", [False, True])
def test_endpoints_run_ahead_of_ordinary_programs_if_asked_for(ahead: bool) -> None:
    tell = "import os, sys; print(os.sched_getscheduler(0) == os.SCHED_RR, file=sys.stderr)\n"
    with NamespaceEngine(1, commands(tell + CLIENT, tell + SERVER), ahead=ahead) as engine:
        (finished,) = engine.run([(KEY, TASK)])
    errors = {name: endpoint.stderr for name, endpoint in finished.outcome.endpoints.items()}
    assert errors == dict.fromkeys(["client", "server"], f"{ahead}\n")


@pytest.mark.parametrize("logged", [2, 4])
def test_log_that_is_not_as_long_as_the_count_is_an_error(
    logged: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = SimpleNamespace(packets=logged, counters=SimpleNamespace(seen=3))
    monkeypatch.setattr(dropper_command, "log", lambda _: log)
    with pytest.raises(DropperError, match=f"x0: 3 packets seen, {logged} in the log"):
        trial._read_dropper(SimpleNamespace(interface="x0"))  # type: ignore[arg-type]


def test_a_client_that_hangs_is_a_timeout_and_its_children_are_gone(run: Run) -> None:
    mark = f"child-{os.getpid()}"
    hangs = (
        "import subprocess, sys, time\n"
        f"program = 'import time; time.sleep(600) # {mark}'\n"
        "subprocess.Popen([sys.executable, '-c', program], start_new_session=True)\n"
        "time.sleep(600)\n"
    )
    _, judgement = run(changed(timeout_s=1), client=hangs)
    assert judgement.state == "timeout"
    assert processes.with_mark(mark) == {}


@pytest.mark.parametrize(
    ("exit_code", "late_s", "timed_out"),
    [(None, -1.0, True), (None, 0.01, True), (1, 0.01, True), (1, -0.01, False), (0, 0.01, False)],
)
def test_a_client_that_gives_up_at_its_deadline_is_late_and_has_not_failed(
    exit_code: int | None, late_s: float, timed_out: bool
) -> None:
    assert has_timed_out(exit_code, late_s) == timed_out


@pytest.mark.parametrize(
    ("endpoints", "state", "said"),
    [
        ({"client": "import sys; sys.exit('no route')"}, "failed", "client ended with 1: no route"),
        ({"client": "import sys; sys.exit(127)"}, "unsupported", "unsupported"),
        ({"server": "import os; os.abort()"}, "failed", "server ended with -6"),
        ({"server": READY, "client": "import sys; sys.exit('lost')"}, "failed", "client ended with 1: lost"),
    ],
)
def test_an_endpoint_that_fails_gives_its_state_and_reason(
    run: Run, endpoints: dict[str, str], state: str, said: str
) -> None:
    _, judgement = run(**endpoints)
    assert judgement.state == state
    assert said in judgement.reason


def test_a_server_that_never_gets_ready_is_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transfer, "READY_LIMIT_S", 0.5)
    silent = commands(server="import time; time.sleep(600)")
    with NamespaceEngine(1, silent) as running:
        judgement = judge(
            TASK, trial_worker.outcome_in(trial_worker.answer(running._order(TASK).model_dump_json()))
        )
    assert judgement.state == "failed"
    assert judgement.reason.startswith("server was not ready in time")


def waits(process: int) -> bool:
    """Whether it is a client that handles SIGUSR1 by now."""
    proc = Path(f"/proc/{process}")
    try:
        caught = int((proc / "status").read_text().split("SigCgt:")[1].split()[0], 16)
        return WAIT in (proc / "cmdline").read_text() and bool(caught >> (signal.SIGUSR1 - 1) & 1)
    except OSError:  # it has just ended
        return False


Disturbed = Callable[[Task, str, Callable[[list[int]], None]], Judgement]


@pytest.fixture
def disturbed(trials: Trials) -> Disturbed:
    """A trial to which `disturb`, which gets its processes, does something while the client waits."""

    def disturbed(task: Task, client: str, disturb: Callable[[list[int]], None]) -> Judgement:
        def meddle() -> None:
            wait_until(waiting, "the client waits")
            assert trials.worker
            disturb(descendants(trials.worker))
            os.kill(waiting()[0], signal.SIGUSR1)

        def waiting() -> list[int]:
            return [one for one in descendants(trials.worker) if waits(one)] if trials.worker else []

        meddler = threading.Thread(target=meddle, daemon=True)
        meddler.start()
        _, judgement = trials.run(task, commands(client=client))
        meddler.join()
        return judgement

    return disturbed


def signal_the_wire(processes: list[int], *numbers: signal.Signals) -> None:
    for process in processes:
        if Path(f"/proc/{process}/cmdline").read_text().split("\0")[0].endswith("/wire"):
            for number in numbers:
                os.kill(process, number)
                time.sleep(0.4)


def test_a_wire_that_is_killed_makes_the_trial_invalid(disturbed: Disturbed) -> None:
    judgement = disturbed(TASK, WAIT, lambda all_: signal_the_wire(all_, signal.SIGKILL))
    assert judgement.state == "invalid"
    assert judgement.reason


def test_a_wire_that_is_stopped_for_a_while_makes_the_trial_invalid(disturbed: Disturbed) -> None:
    slow = tasks.link(LinkSettings.symmetric(10, 200), {"model": "uniform", "p": 0.2}, late_bound_us=50_000)
    judgement = disturbed(
        changed(links={"internet": slow}),
        SEND_AND_WAIT + CLIENT,
        lambda all_: signal_the_wire(all_, signal.SIGSTOP, signal.SIGCONT),
    )
    assert judgement.state == "invalid"
    assert "packets left the emulator later than its bound" in judgement.reason


def test_a_dropper_that_is_detached_makes_the_trial_invalid(disturbed: Disturbed) -> None:
    def detach(processes: list[int]) -> None:
        for process in processes:
            where = ["--netns", str(process), "--dev", "r1-r2", "--ingress"]
            subprocess.run([DROPPER, "detach", *where], stderr=subprocess.DEVNULL)

    judgement = disturbed(TASK, WAIT + CLIENT, detach)
    assert judgement.state == "invalid"
    assert "r1-r2" in judgement.reason


# A server that answers with 300 kB over TCP, and its client.
TCP_SERVER = """
import json, signal, socket, sys
task = json.load(open(sys.argv[1]))
def finish(*_):
    print(json.dumps({"event": "done", "metrics": {}}), flush=True)
    sys.exit(0)
signal.signal(signal.SIGINT, finish)
listening = socket.create_server((task["address"], task["port"] + 1))
print(json.dumps({"event": "ready"}), flush=True)
while True:
    connection, _ = listening.accept()
    connection.sendall(bytes(300_000))
    connection.close()
"""
TCP_CLIENT = """
import json, socket, sys, time
task = json.load(open(sys.argv[1]))
begun = time.monotonic()
with socket.create_connection((task["address"], task["port"] + 1)) as connection:
    while connection.recv(10_000):
        pass
print(json.dumps({"event": "done", "metrics": {"dct_s": time.monotonic() - begun}}), flush=True)
"""


def test_a_transfer_over_another_port_meets_no_loss_and_is_a_failure(run: Run) -> None:
    finished, judgement = run(client=TCP_CLIENT, server=TCP_SERVER)
    assert finished.outcome.droppers["internet"]["down"].counters.seen == 0
    assert judgement.state == "failed"
    assert "went past the loss model" in judgement.reason


# Of ten packets at a time, some come while it does not read, and its buffer holds few.
SLOW_READER = (
    CLIENT.replace("40", "8")
    .replace(
        "socket_.settimeout(0.2)",
        "socket_.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2000)\nsocket_.settimeout(0.2)",
    )
    .replace("    try:", "    time.sleep(0.3)\n    try:")
)


def test_packets_that_a_socket_has_no_room_for_are_told_with_their_place(run: Run) -> None:
    finished, _ = run(client=SLOW_READER)
    unhindered = finished.outcome.model_copy(update={"stalled_s": None})
    judgement = judge(TASK, unhindered)
    assert judgement.checks.lost_elsewhere["client"]["UDP receive buffer"] > 0
    assert judgement.state == "failed"
    assert "packets were lost at client, outside of link and dropper: UDP receive buffer" in judgement.reason


def test_a_trial_in_which_a_full_backlog_dropped_frames_is_invalid_and_says_where(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The kernel's counters are made up: how long its backlogs are is a setting of the whole machine."""
    read, readings = counters._interfaces, Counter[int]()

    def read_three_drops_more_each_time(process: int) -> dict[str, dict[str, int]]:
        interfaces = read(process)
        if "r1-client" in interfaces:
            interfaces["r1-client"]["receive drop"] += 3 * readings[process]
        readings[process] += 1
        return interfaces

    softnet = iter(["00000010 00000004 00000000\n", "00000020 00000007 00000000\n"])
    monkeypatch.setattr(counters, "_interfaces", read_three_drops_more_each_time)
    monkeypatch.setattr(counters, "SOFTNET", SimpleNamespace(read_text=lambda **_: next(softnet)))
    with engine() as running:
        order = running._order(TASK).model_dump_json()
        judgement = judge(
            TASK, trial_worker.outcome_in(trial_worker.answer(order))
        )  # by a worker that has these counters
    assert judgement.state == "invalid"
    errors = "3 packets were lost at r1, outside of link and dropper: r1-client: receive drops"
    assert judgement.reason == errors
    assert judgement.checks.lost_elsewhere == {"r1": {"r1-client: receive drops": 3}}
    assert judgement.checks.backlog_drops == 3


def test_nothing_is_lost_elsewhere_in_a_trial_with_losses(run: Run) -> None:
    """Packets that dropper and queue drop are counted there, and nowhere else."""
    narrow = tasks.link(LinkSettings.symmetric(1, 5, queue_packets=3), {"model": "uniform", "p": 0.2})
    finished, judgement = run(changed(links={"internet": narrow}))
    assert finished.outcome.links["internet"].directions["down"].queue_dropped > 0
    assert finished.outcome.droppers["internet"]["down"].counters.dropped > 0
    assert finished.outcome.discarded == {}
    assert judgement.state == "ok", judgement.reason


FORK = "import os, time\nif os.fork() == 0: os.setsid(); "
DONE = 'print(\'{"event": "done", "metrics": {"dct_s": 0.001}}\', flush=True)\n'


@pytest.mark.parametrize(
    ("endpoints", "state", "said"),
    [
        ({"client": "import sys\nwhile True: sys.stderr.write('e' * 9999)"}, "timeout", "in time"),
        ({"client": DONE + FORK + "time.sleep(600)"}, "ok", ""),
        ({"client": DONE + FORK + "os.execlp('yes', 'yes')\nos.wait()"}, "failed", "client wrote"),
        ({"client": "import os, time; os.close(1); os.close(2); time.sleep(600)"}, "timeout", "in time"),
        ({"server": READY + "import sys; sys.exit(0)", "client": DONE}, "failed", "without a done message"),
        ({"server": READY + "while True: print('x')", "client": DONE}, "failed", "server wrote"),
        ({"server": SERVER.replace("sys.exit(0)", "pass"), "client": DONE}, "failed", "ended with -15"),
    ],
)
def test_an_endpoint_that_floods_forks_or_dies_is_bounded_and_told(
    run: Run, endpoints: dict[str, str], state: str, said: str
) -> None:
    trial_task = changed(timeout_s=1 if state == "timeout" else 20)
    finished, _ = run(trial_task, **endpoints)
    unhindered = finished.outcome.model_copy(update={"stalled_s": None})  # a flood may well starve others
    judgement = judge(trial_task, unhindered)
    assert judgement.state == state, judgement.reason
    assert said in judgement.reason
    assert len(finished.outcome.model_dump_json()) < 100_000


def test_a_worker_that_is_killed_makes_the_trial_invalid_and_the_next_one_runs() -> None:
    with engine() as running:

        def tasks() -> Iterator[tuple[TrialKey, Task]]:
            yield KEY, TASK
            running.busy[0].process.kill()
            yield TrialKey("other", "download-1000", 0, 0), TASK

        first, second = running.run(tasks())
    assert judge(TASK, first.outcome).state == "invalid"
    assert "worker" in first.outcome.failure
    assert judge(TASK, second.outcome).state == "ok"
