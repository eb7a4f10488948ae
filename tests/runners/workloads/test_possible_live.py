"""The judge of live broadcasts: what an endpoint notes and cannot be is `failed`, in one line."""

from collections.abc import Callable

import pytest

from fecbench.runners.tasks.outcome import Outcome
from fecbench.runners.tasks.task import EndpointTask, PairTask, Task
from fecbench.runners.trial.judge import judge
from tests.runners.workloads.radio import BEGAN_S, OWD_MS, lossless

FRAMES = [[0, 3000, 1], [33_333, 1000, 0], [66_667, 1000, 0], [100_000, 3000, 1]]
SENT = "t_s,connection,track,frame,due_s,sent_s,bytes"
ARRIVED = "t_s,connection,track,frame,arrived_s,bytes"
Line = tuple[int, float, int]
"""A frame, when it was sent or arrived, and its bytes."""


def workload(delivery: str) -> dict[str, object]:
    track = {"name": "video", "priority": 1, "delivery": delivery, "frames": FRAMES}
    return {
        "name": "live",
        "direction": "down",
        "max_age_ms": 500,
        "deadline_us": 150_000,
        "send_buffer_bytes": 65_536,
        "tracks": [track],
    }


def sent() -> list[Line]:
    return [(number, due_us / 1e6, size) for number, (due_us, size, _) in enumerate(FRAMES)]


def arrived() -> list[Line]:
    return [(number, at_s + OWD_MS / 1e3 + 0.005, size) for number, at_s, size in sent()]


def reason(of_sender: list[Line], of_receiver: list[Line], delivery: str = "group") -> str:
    """Return why the trial failed, a line; nothing of one that is ok."""
    # A link and its counters that can have carried it: those of messages of the same times and sizes.
    radio = lossless(timetable=[[due_us, size] for due_us, size, _ in FRAMES], part_bytes=1000)
    task, outcome = radio.task(), radio.outcome()
    end = EndpointTask(implementation="radio", options={})
    pair = PairTask(client=end, server=end, workload=workload(delivery), playout_ms=[150.0])
    files = {
        "server": [SENT]
        + [
            f"{at_s:.6f},0,0,{number},{BEGAN_S + FRAMES[number % 4][0] / 1e6:.9f},{BEGAN_S + at_s:.9f},{size}"
            for number, at_s, size in of_sender
        ],
        "client": [ARRIVED]
        + [f"{at_s:.6f},0,0,{number},{BEGAN_S + at_s:.9f},{size}" for number, at_s, size in of_receiver],
    }
    judgement = judge(_with_pair(task, pair), _with_files(outcome, files))
    assert judgement.state in ("ok", "failed"), judgement
    assert "\n" not in judgement.reason
    assert (judgement.metrics == {}) == (judgement.state == "failed")
    return judgement.reason


def _with_pair(task: Task, pair: PairTask) -> Task:
    return task.model_copy(update={"pairs": [pair]})


def _with_files(outcome: Outcome, files: dict[str, list[str]]) -> Outcome:
    endpoints = {
        name: end.model_copy(update={"series": {"live": "\n".join([*files[name], ""]).encode()}})
        for name, end in outcome.endpoints.items()
    }
    return outcome.model_copy(update={"endpoints": endpoints})


def test_what_is_possible_is_ok() -> None:
    assert reason(sent(), arrived()) == ""
    assert reason(sent(), arrived(), "frame") == ""
    assert reason(sent(), arrived(), "datagram") == ""
    assert reason(sent(), arrived(), "parts") == ""


def test_a_group_that_is_cut_at_its_end_is_ok() -> None:
    lines = arrived()
    assert reason(sent(), [lines[0], lines[3]]) == ""
    assert reason(sent(), lines[3:]) == ""


def early(lines: list[Line]) -> list[Line]:
    number, at_s, size = lines[1]
    return [lines[0], (number, at_s - 0.02, size), *lines[2:]]


IMPOSSIBLE: dict[str, tuple[Callable[[], tuple[list[Line], list[Line]]], str]] = {
    "sent before it was due": (
        lambda: (early(sent()), arrived()),
        "server: track video, frame 1 was sent 20.000 ms before it was due",
    ),
    "left out by the sender": (
        lambda: (sent()[:3], arrived()[:3]),
        "server: 3 frames were sent of 4: none may be left out",
    ),
    "arrived before the link can have carried it": (
        lambda: (sent(), early(arrived())),
        "client: track video, frame 1 arrived 5.000 ms after it was sent: the links carry it in",
    ),
    "lost between two of its group": (
        lambda: (sent(), [arrived()[0], *arrived()[2:]]),
        "client: track video, frame 2 arrived, and the one before it in its group never did",
    ),
    "of another size": (
        lambda: (sent(), [(0, 0.03, 2999), *arrived()[1:]]),
        "client: series live: track video, frame 0: bytes = 2999: must be 3000",
    ),
    "of no track": (
        lambda: (sent(), [(4, 0.2, 1000), *arrived()]),
        "client: series live: has more than 4 rows",
    ),
    "unknown": (
        lambda: (sent(), [(4, 0.2, 1000)]),
        "client: series live: row 1: frame = 4: must be a whole number from 0 to 3",
    ),
    "there twice": (
        lambda: (sent(), [arrived()[0], arrived()[0]]),
        "client: series live: track video, frame 0: is noted twice",
    ),
}


@pytest.mark.parametrize("kind", IMPOSSIBLE)
def test_what_cannot_be_is_named(kind: str) -> None:
    make, right = IMPOSSIBLE[kind]
    assert reason(*make()).startswith(right)


@pytest.mark.parametrize("delivery", ["datagram", "parts"])
def test_a_datagram_that_nobody_lost_is_named(delivery: str) -> None:
    lost = [arrived()[0], *arrived()[2:]]
    right = (
        "client: 1 frames in datagrams never came, but 0 packets were lost on their way, and 0 datagrams"
        " were not sent"
    )
    assert reason(sent(), lost, delivery) == right
    assert reason(sent(), lost, "frame") == ""
