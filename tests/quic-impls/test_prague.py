"""noq-fec's sender for L4S behind DualPI2: a short queue, no losses, and a share beside Cubic."""

import csv
from pathlib import Path
from typing import Any

import pytest

from fecbench.runners.tasks.task import ROLES
from tests.support.simulations import (
    FILLING,
    Answer,
    Simulator,
    Task,
    Tasks,
    check_conserved,
    download,
    exits,
    metrics,
)

NAME = "noq-fec"

QUEUE = {"queue_packets": 10_000, "queue": "dualpi2", "ecn": "true"}
MBPS, RTT_MS = 100, 10


@pytest.fixture
def tasks(tasks: Tasks, tmp_path: Path) -> Tasks:
    for role in ROLES:
        (tmp_path / role).mkdir()
    return tasks


def task(tasks: Tasks, size_bytes: int, control: str, **options: Any) -> Task:
    return tasks(
        download(size_bytes),
        mbps=MBPS,
        owd_ms=RTT_MS / 2,
        queue=QUEUE,
        scheme="none",
        ecn=True,
        congestion_control=control,
        **options,
    )


def alone(simulator: Simulator, tasks: Tasks, control: str) -> tuple[Answer, float]:
    """Return the answer, and the longest smoothed round trip of a download after its first second, in ms."""
    answer = simulator.answer(task(tasks, 30_000_000, control, series=["cwnd"]))
    assert exits(answer) == {"client": 0, "server": 0}
    check_conserved(answer)
    with (tasks.logs / "server" / "cwnd.series.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    return answer, max(float(row["smoothed_rtt_ms"]) for row in rows if float(row["t_s"]) > 1)


def test_prague_keeps_the_queue_for_l4s_near_its_target_without_a_loss_and_cubic_that_of_others(
    simulator: Simulator, tasks: Tasks
) -> None:
    """The L queue marks from 0.8 ms on, and the others have 15 ms (RFC 9332)."""
    prague, prague_ms = alone(simulator, tasks, "prague")
    _, cubic_ms = alone(simulator, tasks, "cubic")
    down = prague["links"]["internet"]["down"]
    assert down["queue_dropped"] == 0 and down["counted"]["marked"] > 20
    assert metrics(prague)["ecn_marks_received"] == down["counted"]["marked"]
    assert RTT_MS < prague_ms < RTT_MS + 1.5
    assert prague_ms + 2 < cubic_ms
    assert metrics(prague)["dct_s"] < 1.5 * 8 * 30 / MBPS


@pytest.mark.parametrize(("measured", "other"), [("prague", "cubic"), ("cubic", "prague")])
def test_prague_and_cubic_leave_each_other_a_share(
    simulator: Simulator, tasks: Tasks, measured: str, other: str
) -> None:
    own = task(tasks, 30_000_000, measured)
    background = tasks.pair(
        download(10**9), address="10.0.4.2", scheme="none", ecn=True, congestion_control=other
    )
    answer = simulator.answer({**own, "pairs": [*own["pairs"], background], "filling": FILLING})
    competition = answer["competition"]
    share = competition["foreground_mbps"] / (competition["foreground_mbps"] + competition["background_mbps"])
    assert 0.25 < share < 0.75
