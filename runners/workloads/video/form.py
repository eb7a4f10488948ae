"""The workload `video`: a viewer's session of DASH video, on demand or live."""

import math
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

from fecbench.runners.options import Option
from fecbench.runners.refusal import Refusal
from fecbench.runners.tasks.demand import Demand
from fecbench.runners.tasks.outcome import Outcome
from fecbench.runners.tasks.requests import Conversation, Object
from fecbench.runners.tasks.task import Task
from fecbench.runners.workloads.video import ladder as ladders
from fecbench.runners.workloads.video import session as sessions
from fecbench.runners.workloads.video.abr import RULES
from fecbench.runners.workloads.video.ladder import Ladder
from fecbench.runners.workloads.video.player import CHUNK_S, PATIENCE, Player, Settings
from fecbench.runners.workloads.workload import Measured, Surroundings, Transfer, Workload
from fecbench.topologies.rate import together

MARGIN_S = 10.0
"""A session that the viewer left has this long to end."""


class Video(Workload):
    name = "video"
    asked_for = "requests"
    summary = (
        "A viewer's session of DASH video: a segment after another, at the levels that a player chooses."
    )
    parameters: ClassVar = {
        "ladder": Option(
            type="string", default="film-2s", help="videos/NAME.json beside the design: levels and segments."
        ),
        "abr": Option(
            type="string", choices=list(RULES), default="throughput", help="How the player chooses the level."
        ),
        "level": Option(
            type="integer", minimum=0, maximum=63, default=0, help="With abr fixed: always this one."
        ),
        "start_segments": Option(
            type="integer",
            minimum=1,
            maximum=100,
            default=2,
            help="It plays when so many segments are there.",
        ),
        "buffer_s": Option(
            type="number", minimum=1, maximum=3600, default=30, help="The most video that it holds."
        ),
        "duration_s": Option(
            type="number", minimum=1, maximum=3600, default=120, help="So much of the video is played."
        ),
        "live_latency_s": Option(
            type="number",
            minimum=0,
            maximum=60,
            default=0,
            help="The video is live, and to be shown so long after it was taken; 0: it is not live.",
        ),
        "abandon": Option(
            type="boolean",
            default=False,
            help="A segment that comes too slowly is given up, and asked for at a lower level.",
        ),
    }
    documents = "videos"
    sample: ClassVar = {"name": "requests"}
    sample_session: ClassVar = {
        "ladder": {
            "segment_s": 1.0,
            "levels": [
                {"kbps": kbps, "width": 320, "height": 240, "fps": 25.0, "sizes": [int(125 * kbps)] * 3}
                for kbps in (40.0, 80.0)
            ],
        },
        "settings": {"abr": "throughput", "start_segments": 1, "buffer_s": 2.0, "live_latency_s": 0.0},
    }
    compared = "video.mean_kbps"

    def check(self, choices: Mapping[str, Any], labels: Collection[str], where: str) -> None:  # noqa: ARG002
        """Refuse parameters that do not fit. Absent ones have their defaults."""
        self.check_values(choices, where)
        values = self.with_defaults(choices)
        if 0 < values["live_latency_s"] < 2 * CHUNK_S:
            raise Refusal(
                f"{where}: workload {self.name}: live_latency_s = {values['live_latency_s']:g}: must be 0 or"
                f" at least {2 * CHUNK_S:g}, two chunks"
            )
        if values["live_latency_s"] and values["abandon"]:
            raise Refusal(f"{where}: workload {self.name}: abandon = true: is for video that is not live")

    def reads(self, parameter: str, choices: Mapping[str, Any]) -> bool:
        values = self.with_defaults(choices)
        match parameter:
            case "level":
                return bool(values["abr"] == "fixed")
            case "start_segments":
                return not values["live_latency_s"]
            case _:
                return True

    def compared_with(self, choices: Mapping[str, Any]) -> str:
        """Return the metric to compare: the latency, for live video."""
        return "video.latency_p95_s" if self.with_defaults(choices)["live_latency_s"] else self.compared

    def transfers(self, choices: Mapping[str, Any], around: Surroundings) -> list[Transfer]:
        values = self.with_defaults(choices)
        ladder = Ladder.model_validate(around.documents[values["ladder"]]["ladder"])
        where = f"workload {self.name}: ladder = {values['ladder']!r}"
        segments = math.ceil(round(values["duration_s"] / ladder.segment_s, 9))
        if segments > ladder.segments:
            raise Refusal(f"{where}: has {ladder.duration_s:g} s, and duration_s = {values['duration_s']:g}")
        begins_with = 1 if values["live_latency_s"] else values["start_segments"]
        if values["buffer_s"] < ladder.segment_s * begins_with:
            raise Refusal(
                f"{where}: buffer_s = {values['buffer_s']:g}: must hold the"
                f" {begins_with} segments of {ladder.segment_s:g} s with which it begins"
            )
        longest_s = PATIENCE * segments * ladder.segment_s + MARGIN_S
        if around.timeout_s < longest_s:
            raise Refusal(
                f"workload {self.name}: timeout_s = {around.timeout_s:g}: must be at least {longest_s:g}: a"
                f" viewer leaves after {PATIENCE:g} times the video's length"
            )
        if values["abr"] == "fixed" and values["level"] >= len(ladder.levels):
            raise Refusal(f"{where}: level = {values['level']}: must be at most {len(ladder.levels) - 1}")
        settings = Settings(
            abr=values["abr"],
            start_segments=values["start_segments"],
            buffer_s=float(values["buffer_s"]),
            live_latency_s=float(values["live_latency_s"]),
            level=values["level"],
            abandon=values["abandon"],
        )
        session = sessions.document(ladder.cut(segments), settings)
        workload = {"name": self.asked_for}
        return [Transfer(around.variant, workload, self.demand_of(workload), session=session)]

    def demand_of(self, workload: Mapping[str, Any]) -> Demand:  # noqa: ARG002
        """Return a demand of one round trip: nobody can know which levels a player will choose."""
        return Demand(round_trips=1)

    def document(self, choices: Mapping[str, Any], folders: Sequence[Path]) -> tuple[str, Path] | None:
        name = str(self.with_defaults(choices)["ladder"])
        return name, ladders.path_of(name, folders)

    def read_document(self, path: Path) -> dict[str, Any]:
        return ladders.stored(path)

    def conversation(self, session: Mapping[str, Any] | None) -> Conversation:
        return sessions.Asking(_player(session))

    def settled(self, task: Task, outcome: Outcome) -> Task:
        """Return the task with the demand of the objects that arrived: links had to carry them."""
        pair = task.pairs[0]
        carried = sum(message.bytes for message in outcome.said if isinstance(message, Object))
        demand = Demand(down_bytes=carried, round_trips=1)
        return task.model_copy(
            update={"pairs": [pair.model_copy(update={"demand": demand}), *task.pairs[1:]]}
        )

    def measure(self, task: Task, outcome: Outcome) -> Measured:
        pair = task.pairs[0]
        rates = [link.settings.down.rate for link in task.links.values()]
        rate = together(rates) if rates else None
        played = sessions.played(_player(pair.session), outcome, rate)
        ladder, settings = sessions.read(pair.session)
        return Measured(sessions.metrics(ladder, settings, played), sessions.series(played.session))


def _player(session: Mapping[str, Any] | None) -> Player:
    return Player(*sessions.read(session))
