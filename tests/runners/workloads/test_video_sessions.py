"""Whole sessions over real stacks in virtual time: what a player decides there, and what it is worth."""

from collections.abc import Sequence
from itertools import cycle, product

import pandas as pd
import pytest

from fecbench import designs
from fecbench.results.store.records import TrialKey
from fecbench.runners.campaign.programs import engine_for
from fecbench.runners.implementations.finding import ours
from fecbench.runners.tasks.outcome import Outcome
from fecbench.runners.tasks.requests import Object, Progress
from fecbench.runners.tasks.task import VIRTUAL, Task
from fecbench.runners.tasks.validity import Validity
from fecbench.runners.trial import ends
from fecbench.runners.trial.judge import Judgement, judge
from fecbench.runners.workloads.video import session as sessions
from fecbench.runners.workloads.video.abr import RULES
from fecbench.runners.workloads.video.form import Video
from fecbench.runners.workloads.video.ladder import Ladder
from fecbench.runners.workloads.workload import Impossible, Surroundings
from fecbench.topologies.link import LinkSettings
from tests.runners.workloads import viewer
from tests.support import needs, tasks
from tests.support.refusals import refusal_of

STACKS = ("noq-fec", "rquic")
FOUND = {name: ours().find(name, "tests") for name in STACKS}
LADDER = designs.catalogue()["video-ladder"].with_name("videos") / "film-2s.json"
pytestmark = needs.built(*FOUND.values())


def task(
    stack: str,
    mbps: float,
    *,
    owd_ms: float = 25.0,
    loss: float = 0.0,
    seed: int = 1,
    options: dict[str, object] | None = None,
    **chosen: object,
) -> Task:
    workload, implementation = Video(), FOUND[stack]
    settings = LinkSettings.symmetric(bandwidth_mbps=mbps, owd_ms=owd_ms)
    around = Surroundings("off", settings, 300.0, {"film-2s": workload.read_document(LADDER)})
    (trial_task,) = workload.transfers(chosen, around)
    end = ends.end_of(implementation, implementation.options({"scheme": "none", **(options or {})}, "tests"))
    losses = {"model": "uniform", "p": loss}
    session = dict(trial_task.session or {})
    return tasks.task(
        tasks.link(settings, losses, losses, late_bound_us=1250),
        tasks.pair(
            client=end, server=end, workload=trial_task.workload, demand=trial_task.demand, session=session
        ),
        backend=VIRTUAL,
        seeds={"content": seed, "internet/up": seed, "internet/down": seed + 1},
        timeout_s=300.0,
        validity=Validity(),
    )


def played(tasks: Sequence[Task]) -> list[Judgement]:
    """Return the judged outcome of each task, in order."""
    with engine_for("virtual", FOUND) as engine:
        result = {}
        for finished in engine.run((TrialKey("v", "w", 0, n), task) for n, task in enumerate(tasks)):
            result[finished.key.repetition] = judge(finished.task, finished.outcome)
            engine.judged(finished, valid=True)
    return [result[number] for number in range(len(tasks))]


def segments(judged: Judgement) -> pd.DataFrame:
    assert judged.state == "ok", judged.reason
    frame: pd.DataFrame = judged.series["client", "segments"].to_pandas()
    return frame


def test_over_a_good_link_the_highest_level_is_reached_and_held() -> None:
    entry = list(product(STACKS, ("hq", "h3")))
    trial_task = [task(stack, 40, duration_s=60, options={"http": http}) for stack, http in entry]
    for which, judged in zip(entry, played(trial_task), strict=True):
        assert list(segments(judged)["level"][5:]) == [8] * 25, which
        assert judged.metrics["video"]["stalls"] == 0
        assert judged.metrics["video"]["share_1920x1080"] > 0.8


def test_a_live_session_without_losses_keeps_its_latency() -> None:
    (judged,) = played([task("noq-fec", 40, duration_s=60, live_latency_s=2)])
    assert judged.state == "ok", judged.reason
    assert 2.0 <= judged.metrics["video"]["latency_p95_s"] <= 2.05
    assert judged.metrics["video"]["skipped_s"] == 0


def test_over_half_of_the_lowest_level_stalls_add_up_to_what_the_link_says() -> None:
    ladder = sessions.read(task("noq-fec", 1).pairs[0].session)[0]
    trial_task = task("noq-fec", ladder.levels[0].kbps / 2e3, duration_s=60)
    (judged,) = played([trial_task])
    frame, measured = segments(judged), judged.metrics["video"]
    arrived = len(frame)
    shown_before_the_last = 2.0 * (arrived - 1)
    stalled_s = frame["done_s"].iloc[-1] - measured["startup_s"] - shown_before_the_last
    assert measured["startup_s"] == pytest.approx(frame["done_s"].iloc[1])
    assert stalled_s > 10
    # Behind the last that came, two seconds are shown, and then nothing until the viewer leaves.
    rest_s = 120.0 - frame["done_s"].iloc[-1] - 2.0
    assert measured["stall_s"] == pytest.approx(stalled_s + rest_s, rel=0.01)
    assert measured["unplayed_s"] == pytest.approx(60 - 2.0 * arrived)


def test_each_decision_of_many_sessions_is_that_of_a_second_player() -> None:
    owds_ms = cycle((10.0, 120.0, 120.0, 10.0))
    networks = [(*entry, next(owds_ms)) for entry in product((0.6, 2.0, 5.0, 15.0), (0.0, 0.01))]
    cases = [
        (rule, task("noq-fec", mbps, owd_ms=owd_ms, loss=loss, seed=number, abr=rule, duration_s=60))
        for rule in RULES
        for number, (mbps, loss, owd_ms) in enumerate(networks)
    ]
    compared = 0
    for (rule, trial_task), judged in zip(
        cases, played([trial_task for _, trial_task in cases]), strict=True
    ):
        ladder, settings = sessions.read(trial_task.pairs[0].session)
        compared += same_decisions(rule, ladder, settings.buffer_s, segments(judged))
    assert compared > 600


def same_decisions(rule: str, ladder: Ladder, most_s: float, frame: pd.DataFrame) -> int:
    """Return how many segments were compared. All had the level that the second player takes."""
    rates, sizes = [level.kbps for level in ladder.levels], [level.sizes for level in ladder.levels]
    samples: list[float] = []
    before: list[int] = []
    buffers: list[float] = []
    arrivals: list[tuple[float, float]] = []
    for row in frame.itertuples():
        at_s, end_s = float(row.requested_s), 2.0 * row.index
        shown_s = viewer.shown_until(arrivals, 2, at_s, ladder.segments)
        buffers.append(end_s - shown_s)
        level = viewer.level_of(rule, rates, 2.0, most_s, buffers[-1], samples, before, buffers)
        assert row.level == level, (rule, row)
        assert row.bytes == sizes[level][row.index]
        before.append(level)
        samples.append(8e-3 * row.bytes / (row.done_s - at_s))
        arrivals.append((float(row.done_s), end_s + 2.0))
    return len(frame)


@pytest.mark.parametrize("http", ["hq", "h3"])
@pytest.mark.parametrize("stack", STACKS)
def test_what_comes_too_slowly_is_given_up_as_a_second_player_does(stack: str, http: str) -> None:
    tasks = [
        task(stack, mbps, loss=loss, seed=seed, duration_s=60, abandon=True, options={"http": http})
        for mbps, loss in ((1.2, 0.05), (3.0, 0.05))
        for seed in (1, 2)
    ]
    given_up = 0
    with engine_for("virtual", FOUND) as engine:
        for finished in engine.run((TrialKey("v", "w", 0, n), entry) for n, entry in enumerate(tasks)):
            judged = judge(finished.task, finished.outcome)
            assert (judged.state, judged.reason) == ("ok", "")
            given_up += same_ends(finished.task, finished.outcome)
            assert judged.metrics["video"]["given_up"] == sum(
                message.event == "stopped" for message in finished.outcome.said
            )
            engine.judged(finished, valid=True)
    assert given_up >= 2


def same_ends(trial_task: Task, outcome: Outcome) -> int:
    """Return how many downloads were given up, each where the second player would have."""
    ladder, _ = sessions.read(trial_task.pairs[0].session)
    rates = [level.kbps for level in ladder.levels]
    arrivals: list[tuple[float, float]] = []
    downloads: list[tuple[int, float, float]] = []
    given_up, before = 0, -1
    for message in outcome.said:
        index = len(arrivals)
        if isinstance(message, Progress):
            shown_s = viewer.shown_until(arrivals, 2, message.at, ladder.segments)
            downloads.append((message.bytes, message.at, 2.0 * index - shown_s))
            continue
        sizes = [level.sizes[index] for level in ladder.levels]
        ends = [level for level, size in enumerate(sizes) if size == message.bytes]
        if message.whole:
            level = ends[0]
            arrivals.append((message.done_at, 2.0 * (index + 1)))
        else:
            # The one that is given up is the only one that the second player would give up just now.
            level = next(
                level
                for level, size in enumerate(sizes)
                if viewer.given_up_for(rates, 2.0, level, size, downloads) is not None
            )
            assert index != before
            given_up, before = given_up + 1, index
        looks = range(1, len(downloads) if not message.whole else len(downloads) + 1)
        if index != before or not message.whole:
            assert all(
                viewer.given_up_for(rates, 2.0, level, sizes[level], downloads[:look]) is None
                for look in looks
            )
        downloads = []
    return given_up


def heard(*objects: tuple[int, float, float, float]) -> Outcome:
    """Return the outcome with a client's messages of bytes, request, first byte and end."""
    names = ("bytes", "requested_at", "first_byte_at", "done_at")
    objects_told = [Object(event="object", **dict(zip(names, entry, strict=True))) for entry in objects]
    return Outcome(said=objects_told, client_s=300.0)


def test_what_a_client_says_that_cannot_be_is_no_session() -> None:
    trial_task = task("noq-fec", 10)
    size = sessions.read(trial_task.pairs[0].session)[0].levels[0].sizes[0]
    for message, why in {
        (size + 1, 0.0, 0.2, 0.5): "were asked for",
        (size, 0.0, 0.6, 0.5): "must not decrease",
        (size, 0.0, 0.001, 0.002): "at the soonest",
    }.items():
        assert why in refusal_of(Video().measure, trial_task, heard(message), by=Impossible)
    gone = Outcome(client_s=12.0)
    assert "the viewer leaves after 240 s" in refusal_of(Video().measure, trial_task, gone, by=Impossible)


WATCHED: list[tuple[bool, list[tuple[int, float]], str]] = [
    (False, [(100, 1.3)], "was not asked for"),
    (True, [(100, 1.3), (200, 1.35)], "too soon"),
    (True, [(200, 1.3), (100, 1.5)], "must be more than 200"),
    (True, [(10**9, 1.3)], "less than"),
]


def test_progress_that_cannot_be_and_what_nobody_gave_up_is_no_session() -> None:
    for abandon, objects_told, why in WATCHED:
        message = [
            Progress(event="progress", bytes=size, requested_at=1.0, at=at) for size, at in objects_told
        ]
        trial_task, heard = task("noq-fec", 10, abandon=abandon), Outcome(said=message, client_s=300.0)
        assert why in refusal_of(Video().measure, trial_task, heard, by=Impossible)
    stopped = Object(event="stopped", bytes=5, requested_at=0.0, first_byte_at=0.2, done_at=0.5)
    heard = Outcome(said=[stopped], client_s=300.0)
    assert "nobody asked for that" in refusal_of(Video().measure, trial_task, heard, by=Impossible)
