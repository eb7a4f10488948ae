"""Sessions of video over the emulated link: the player decides as it does in virtual time."""

from collections.abc import Callable
from typing import Any

import pytest

from fecbench.results.store.records import TrialKey
from fecbench.runners.campaign.programs import engine_for
from fecbench.runners.implementations.finding import ours
from fecbench.runners.tasks.task import ROLES, VIRTUAL, Task
from fecbench.runners.trial import ends
from fecbench.runners.trial.judge import Judgement, judge
from fecbench.runners.trial.site import Commands
from fecbench.runners.workloads.video import session as sessions
from fecbench.runners.workloads.video.form import Video
from fecbench.runners.workloads.video.ladder import Ladder, Level
from fecbench.runners.workloads.video.player import Settings
from fecbench.topologies.link import LinkSettings
from tests.support import needs, tasks
from tests.support.patience import carried_out
from tests.support.trials import Trials

STACKS = ("noq-fec", "rquic", "tcp")
STOPPING = ("noq-fec", "rquic")
FOUND = {name: ours().find(name, "tests") for name in STACKS}
pytestmark = [*needs.TRIALS, needs.built(*FOUND.values())]

SEGMENTS, RATES = 16, (200.0, 800.0, 3200.0)


def ladder(segments: int) -> Ladder:
    sizes = {rate: (round(62.5 * rate),) * segments for rate in RATES}
    levels = (Level(kbps=rate, width=320, height=240, fps=25.0, sizes=sizes[rate]) for rate in RATES)
    return Ladder(segment_s=0.5, levels=tuple(levels))


def task(name: str, backend: Any, **player: Any) -> Task:
    settings = LinkSettings.symmetric(1.5 if "abandon" in player else 2.0, 10.0)
    usual = {"abr": "throughput", "start_segments": 2, "buffer_s": 3.0}
    end = ends.end_of(FOUND[name], FOUND[name].options({}, "tests"))
    # One that gives up takes a second for each.
    film = ladder(SEGMENTS // 2 if "abandon" in player else SEGMENTS)
    session = sessions.document(film, Settings(**usual | player))
    workload, demand = {"name": "requests"}, Video().demand_of({})
    pair = tasks.pair(client=end, server=end, workload=workload, demand=demand, session=session)
    usual = {"backend": backend, "timeout_s": 30, "validity": tasks.SLOW_MACHINE}
    return tasks.task(tasks.link(settings), pair, **usual)


Emulated = Callable[..., Judgement]


@pytest.fixture
def emulated(trials: Trials) -> Emulated:
    def emulated(
        name: str, is_right: Callable[[Judgement], bool] = lambda _: True, **player: Any
    ) -> Judgement:
        """Emulate the session. A wrong one is tried again: a busy machine may look slow now and then."""
        commands: Commands = {name: {role: FOUND[name].command(role) for role in ROLES}}
        folders, trial_task = {name: FOUND[name].folder}, task(name, "wire", **player)
        _, judged = carried_out(trials, trial_task, commands, folders, lambda _, judged: is_right(judged))
        return judged

    return emulated


def simulated(name: str, **player: Any) -> Judgement:
    with engine_for("virtual", {name: FOUND[name]}) as engine:
        (finished,) = engine.run([(TrialKey("v", "w", 0, 0), task(name, VIRTUAL, **player))])
        return judge(finished.task, finished.outcome)


def gives_up_each(judged: Judgement) -> bool:
    """Return whether nearly each segment of the highest level was given up for the level below."""
    choice, given_up = levels(judged), judged.series["client", "given_up"]["index"].to_pylist()
    below = choice.count(1) >= 0.7 * len(choice)
    return below and given_up[: len(choice)] == list(range(len(choice)))


@pytest.mark.parametrize("backend", ["wire", VIRTUAL])
@pytest.mark.parametrize("name", STOPPING)
def test_what_a_link_cannot_carry_in_time_is_given_up_each_time(
    emulated: Emulated, name: str, backend: str
) -> None:
    # A segment of the highest level takes 1.07 s, and plays 0.5: each is given up, for the level below.
    player = {"abr": "fixed", "level": 2, "abandon": True}
    judged = simulated(name, **player) if backend == VIRTUAL else emulated(name, gives_up_each, **player)
    choice = levels(judged)
    assert len(choice) >= SEGMENTS // 4
    given_up = judged.series["client", "given_up"]
    assert gives_up_each(judged)
    assert all(0 < size < 200_000 for size in given_up["bytes"].to_pylist())
    assert judged.metrics["video"]["given_up_bytes"] == sum(given_up["bytes"].to_pylist())


def test_a_client_that_cannot_give_up_is_unsupported(emulated: Emulated) -> None:
    assert emulated("tcp", abandon=True).state == "unsupported"


def levels(judged: Judgement) -> list[int]:
    assert (judged.state, judged.reason) == ("ok", "")
    choice: list[int] = judged.series["client", "segments"]["level"].to_pylist()
    return choice


@pytest.mark.parametrize("name", STACKS)
def test_the_player_reaches_the_level_that_the_link_carries_as_in_virtual_time(
    emulated: Emulated, name: str
) -> None:
    of_virtual = levels(simulated(name)) if name == "noq-fec" else []

    def is_right(judged: Judgement) -> bool:
        choice = levels(judged)
        alike = sum(here == there for here, there in zip(of_virtual or choice, choice, strict=True))
        reaches_it = choice.count(1) >= SEGMENTS - 2 and judged.metrics["video"]["stalls"] == 0
        return reaches_it and alike >= 0.95 * SEGMENTS

    judged = emulated(name, is_right)
    assert is_right(judged)
    choice = levels(judged)
    assert len(choice) == SEGMENTS
    assert choice[0] == 0
    assert judged.metrics["video"]["request_lag_p99_ms"] >= 0


def test_a_live_session_asks_for_each_chunk_when_it_is_there(emulated: Emulated) -> None:
    judged = emulated("noq-fec", live_latency_s=1.0)
    assert (judged.state, judged.reason) == ("ok", "")
    assert judged.metrics["video"]["objects"] == SEGMENTS
    requested = judged.series["client", "segments"]["requested_s"].to_pylist()
    assert all(at >= 0.5 * (number + 1) - 1.0 for number, at in enumerate(requested))
