"""Trials of two transfers that compete: when the second begins, what both got, and how either can fail."""

from collections.abc import Callable
from typing import Any

import pytest

from fecbench.runners.engines.engine import Finished
from fecbench.runners.tasks.task import Task
from fecbench.runners.trial.competition import FULL_RTTS, INTERVAL_S
from fecbench.runners.trial.judge import Judgement
from fecbench.topologies.link import LinkSettings
from tests.support import needs, tasks
from tests.support.patience import patiently
from tests.support.scripts import HEAD, SERVE, commands_of
from tests.support.trials import Trials

pytestmark = needs.TRIALS

MBPS = 2.0

# Sends to whoever asked, far more than the link can carry: its queue is never empty, though the server may be
# kept from running for a tenth of a second.
SERVER = f"""{SERVE}
_, peer = socket_.recvfrom(2000)
while True:
    for _ in range(10):
        socket_.sendto(bytes(1000), peer)
    time.sleep(0.02)
"""
ASK = f"{HEAD}socket_.sendto(b'go', server)\n"
RECEIVE = f"{ASK}while True: socket_.recv(2000)\n"
# A hundred of them are 100 kB: 0.4 s of the link.
DOWNLOAD = f"{ASK}for _ in range(100): socket_.recv(2000)\ndone()\n"
RECEIVE_FOR_2_S = ASK + "until = time.monotonic() + 2\nwhile time.monotonic() < until: socket_.recv(2000)\n"
HANG = "import time; time.sleep(600)"


def task(**fields: Any) -> Task:
    link = tasks.link(LinkSettings.symmetric(MBPS, 5, queue_packets=40), {"model": "uniform", "p": 0.05})
    return tasks.task(link, *map(tasks.pair, ("foreground", "background")), topology="dumbbell", **fields)


Run = Callable[..., tuple[Finished, Judgement]]


@pytest.fixture
def run(trials: Trials) -> Run:
    def run(
        task: Task, client: str = DOWNLOAD, background: str = RECEIVE, server: str = SERVER
    ) -> tuple[Finished, Judgement]:
        """The trial; the last two programs are the second pair's."""
        commands = {"foreground": commands_of(client, SERVER), "background": commands_of(background, server)}
        return trials.run(task, commands)

    return run


def test_the_foreground_begins_in_a_full_link_and_each_transfers_part_is_measured(run: Run) -> None:

    def sum_mbps(finished: Finished) -> float:
        measured = finished.outcome.competition
        assert measured
        return (measured.foreground_mbps or 0.0) + (measured.background_mbps or 0.0)

    # 5 % is lost behind the link; the counters are read a moment apart.
    finished, judgement = patiently(
        lambda _: run(task(capture=True)), lambda result: sum_mbps(result[0]) >= 1.1 * MBPS
    )
    assert sum_mbps(finished) < 1.1 * MBPS
    outcome = finished.outcome
    assert (judgement.state, judgement.reason) == ("ok", "")
    assert list(outcome.endpoints) == ["client", "server", "background_client", "background_server"]
    measured = outcome.competition
    assert measured is not None
    assert measured.filling_s >= FULL_RTTS * INTERVAL_S
    assert min(measured.foreground_mbps or 0.0, measured.background_mbps or 0.0) > 0.05 * MBPS
    # Alone, the download would have taken 0.4 s.
    assert (outcome.endpoints["client"].metrics or {})["dct_s"] > 0.5
    assert outcome.droppers["internet"]["down"].counters.dropped > 0
    folder = finished.folder
    assert folder is not None
    assert {str(path.relative_to(folder)) for path in folder.rglob("*.pcap")} == {
        f"{of}{host}.pcap" for of in ("", "background/") for host in ("client", "server")
    }


def test_neighbours_join_and_leave_while_the_foreground_runs(run: Run) -> None:
    """The first fills the link and leaves; of the two that join, one stays until the end."""
    first, second = (tasks.pair("background", **times) for times in ({"lasts_s": 0.3}, {"begins_s": 0.2}))
    third = tasks.pair("background", begins_s=60)  # after the end: it is never there
    link = tasks.link(LinkSettings.symmetric(MBPS, 5, queue_packets=40), {"model": "uniform", "p": 0.05})
    pairs = [tasks.pair("foreground"), first, second, third]
    emulated = tasks.task(link, *pairs, topology="dumbbell-5")
    # Each second, the host whose client has left answers one of the packets that still come: in a trial that
    # takes half a minute, these are too many that no loss model judges.
    finished, judgement = patiently(lambda _: run(emulated), lambda result: result[1].state != "ok")
    outcome = finished.outcome
    assert (judgement.state, judgement.reason) == ("ok", "")
    assert outcome.background_lasted
    assert "background2_client" in outcome.endpoints
    assert "background3_client" not in outcome.endpoints
    assert outcome.endpoints["background3_server"].ready
    assert outcome.endpoints["background_client"].exit_code != 0  # it was asked to end
    assert outcome.competition is not None
    measured = outcome.competition
    assert min(measured.foreground_mbps or 0.0, measured.background_mbps or 0.0) > 0.05 * MBPS


@pytest.mark.parametrize(
    ("client", "background"),
    [
        ("import time; time.sleep(5)\n" + DOWNLOAD, RECEIVE_FOR_2_S),
        (DOWNLOAD, "import sys; sys.exit('went home')"),
    ],
)
def test_a_background_that_ends_before_the_foreground_is_a_failure(
    run: Run, client: str, background: str
) -> None:
    _, judgement = run(task(timeout_s=40), client=client, background=background)
    assert judgement.state == "failed"
    assert "background_client ended first" in judgement.reason
    assert ("went home" in judgement.reason) is ("went home" in background)


def test_a_link_that_is_never_full_is_a_timeout(run: Run) -> None:
    finished, judgement = run(task(timeout_s=1.5), background=HANG)
    message = "the background transfer did not fill the link in time"
    assert (judgement.state, judgement.reason) == ("timeout", message)
    assert "client" not in finished.outcome.endpoints


def test_one_time_limit_is_for_both_transfers(run: Run) -> None:
    says = HEAD + "print(task['deadline_s'], file=sys.stderr, flush=True)\n" + HANG
    finished, judgement = run(trial_task := task(timeout_s=6), client=says)
    assert (judgement.state, judgement.reason) == ("timeout", "the client did not end in time")
    outcome = finished.outcome
    assert outcome.competition is not None
    deadline_s = float(outcome.endpoints["client"].stderr.splitlines()[0])
    assert 0 < deadline_s <= trial_task.timeout_s - outcome.competition.filling_s


def test_a_second_server_that_fails_is_told_by_its_name(run: Run) -> None:
    _, judgement = run(task(), server="import sys; sys.exit('port taken')")
    assert (judgement.state, judgement.reason) == ("failed", "background_server ended with 1: port taken")
