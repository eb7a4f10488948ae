"""Live broadcasts in virtual time, by moq: their tasks, and the tables that both ends leave."""

import csv
import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

from fecbench.dropper.loss_model import LossModel
from fecbench.dropper.model import GilbertElliott
from tests.support.simulations import NOTHING, Simulator, Tasks

PROTOCOLS = ("moq-lite-06", "moq-transport-22")
MBPS, OWD_MS = 20, 25
LINK_BYTES = 42  # what Ethernet, IPv4 and UDP add to a datagram
QUIC_BYTES = 50  # most that QUIC and MoQ add to the part of a frame in a packet
PACKET_BYTES = 1252
PART_HEADER_BYTES = 12
PART_BYTES = PACKET_BYTES - 93  # most of a frame in a datagram with FEC off
GROUP = 5
IN_BURSTS = GilbertElliott(0.01, 0.25, 1, 0)
NO_WINDOW = {"scheme": "none", "congestion_control": "none"}


def track(name: str, delivery: str, *sizes: int, every_us: int = 33_333, priority: int = 1) -> dict[str, Any]:
    """A track of frames of these sizes, in groups of five."""
    frames = [[every_us * number, size, int(number % GROUP == 0)] for number, size in enumerate(sizes)]
    return {"name": name, "priority": priority, "delivery": delivery, "frames": frames}


TWO_TRACKS = (
    track("video", "group", *[20_000, *[4000] * (GROUP - 1)] * 6),
    track("audio", "group", *[160] * 50, every_us=20_000, priority=2),
)

EQUAL_TRACKS = tuple({**of, "priority": 1} for of in TWO_TRACKS)
"""The same without ranks, which moq-net does not ask for over moq-transport."""


def parted(*sizes: int, rate: list[int] | None = None, every_us: int = 33_333) -> dict[str, Any]:
    """A track of video in parts, and the rate of its repair track; None: it has none."""
    return track("video", "parts", *sizes, every_us=every_us) | ({"repair": rate} if rate else {})


def live(*tracks: dict[str, Any], **others: Any) -> dict[str, Any]:
    return {
        "name": "live",
        "direction": "down",
        "max_age_ms": 500,
        "deadline_us": 150_000,
        "send_buffer_bytes": 2**26,
        "tracks": list(tracks),
        **others,
    }


class Broadcasts:
    """Carries out broadcasts in virtual time, with a folder for the tables of each."""

    def __init__(self, folder: Path, identity: dict[str, str]) -> None:
        self._folder, self._identity = folder, identity
        self._numbers = itertools.count(1)

    def task(
        self,
        workload: dict[str, Any],
        model: LossModel = NOTHING,
        mbps: float = MBPS,
        queue_packets: int = 200,
        **options: Any,
    ) -> dict[str, Any]:
        number = next(self._numbers)
        folder = self._folder / str(number)
        for role in ("client", "server"):
            (folder / role).mkdir(parents=True)
        return Tasks("moq", self._identity, folder, made=number - 1)(
            workload,
            mbps=mbps,
            owd_ms=OWD_MS,
            up=NOTHING,
            down=model,
            seeds={"up": 5, "down": 6},
            queue={"queue_packets": queue_packets},
            series=["live"],
            **options,
        )

    def carry_out(self, *tasks: dict[str, Any]) -> list[dict[str, Any]]:
        """The answers of one simulator to tasks whose endpoints have to succeed."""
        with Simulator("moq") as simulator:
            answers = [simulator.answer(task) for task in tasks]
        for answer in answers:
            assert "error" not in answer, answer
            for end in answer["endpoints"].values():
                assert (end["exit_code"], end["stderr"]) == (0, "")
        return answers


def rows(task: dict[str, Any], sends: bool) -> list[dict[str, float]]:
    """The table of the sender or of the receiver."""
    pair = task["pairs"][0]
    of_sender = {"up": "client", "down": "server"}[pair["client"]["workload"]["direction"]]
    role = of_sender if sends else {"client": "server", "server": "client"}[of_sender]
    with (Path(pair[role]["log_folder"]) / "live.series.csv").open(newline="") as file:
        return [
            {name: float(value) for name, value in row.items()} for row in csv.DictReader(file, strict=True)
        ]


def assert_same(
    broadcasts: Broadcasts,
    times: int,
    make: Callable[[], dict[str, Any]],
    *others: Callable[[], dict[str, Any]],
) -> None:
    """Assert that a task has one outcome each time, with some of the others in between, in one process."""
    tasks, order = [], []
    for number in range(times):
        tasks.append(make())
        order += [tasks[-1], *(other() for other in others[: number % (len(others) + 1)])]
    answers = dict(zip([task["number"] for task in order], broadcasts.carry_out(*order), strict=True))
    tables = [(rows(task, sends=True), rows(task, sends=False)) for task in tasks]
    assert all(table == tables[0] for table in tables)
    outcomes = [{**answers[task["number"]], "number": 0} for task in tasks]
    assert all(outcome == outcomes[0] for outcome in outcomes)


def places(table: list[dict[str, float]], number: int) -> list[int]:
    """The frames of a track, in the order of the table."""
    return [int(row["frame"]) for row in table if row["track"] == number]


def latencies_ms(task: dict[str, Any]) -> dict[tuple[float, float], float]:
    """Return the time from when each frame that arrived was due until it had arrived, by track and frame."""
    due_s = {(row["track"], row["frame"]): row["due_s"] for row in rows(task, sends=True)}
    return {
        (row["track"], row["frame"]): 1e3 * (row["arrived_s"] - due_s[row["track"], row["frame"]])
        for row in rows(task, sends=False)
    }
