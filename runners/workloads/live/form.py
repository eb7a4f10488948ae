"""The workload `live`: a live broadcast of tracks, whose frames become due at given times."""

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

from fecbench.runners.options import Option, Value
from fecbench.runners.refusal import Refusal
from fecbench.runners.tasks.demand import Demand
from fecbench.runners.tasks.outcome import Outcome
from fecbench.runners.tasks.task import Task
from fecbench.runners.workloads import timed
from fecbench.runners.workloads.live import noted, plausible, recorded, source
from fecbench.runners.workloads.live.noted import SERIES
from fecbench.runners.workloads.messages.possible import sent_bytes
from fecbench.runners.workloads.workload import (
    SAMPLE_BYTES,
    Impossible,
    Measured,
    Surroundings,
    Transfer,
    Workload,
)

USUAL_PLAYOUT_MS = (150.0, 100.0, 200.0, 300.0, 500.0)
OF_SOURCE = ("fps", "i_bytes", "p_bytes", "source_seed")
"""Parameters that a trace replaces."""
DELIVERIES: list[Value] = ["group", "frame", "datagram", "parts"]


class Live(Workload):
    name = asked_for = "live"
    summary = "A live broadcast: video in groups of frames, and audio, in one direction."
    parameters: ClassVar = {
        "duration_s": Option(
            type="number",
            minimum=0.1,
            maximum=3600,
            default=20,
            help="Frames become due for so long; without it, all of a trace.",
        ),
        "trace": Option(
            type="string",
            default="",
            help="traces/NAME.json beside the design: video of an encoder, in the place of fps, i_bytes and"
            " p_bytes.",
        ),
        "fps": Option(type="number", minimum=1, maximum=240, default=30, help="Frames of video a second."),
        "group_ms": Option(
            type="number",
            minimum=1,
            maximum=60_000,
            default=1000,
            help="A group begins after so long, with a frame that needs no other.",
        ),
        "i_bytes": Option(
            type="integer",
            minimum=2,
            maximum=2**20,
            default=40_000,
            help="Bytes of the first frame of a group, on average.",
        ),
        "p_bytes": Option(
            type="integer",
            minimum=2,
            maximum=2**20,
            default=7000,
            help="Bytes of each other frame of video, on average.",
        ),
        "audio_hz": Option(
            type="number", minimum=0, maximum=1000, default=50, help="Frames of audio a second; 0: no audio."
        ),
        "audio_bytes": Option(
            type="integer", minimum=1, maximum=2**16, default=160, help="Bytes of each frame of audio."
        ),
        "source_seed": Option(
            type="integer", minimum=0, maximum=2**32, default=1, help="Seed of the sizes of video frames."
        ),
        "direction": Option(
            type="string",
            choices=["down", "up"],
            default="down",
            help="From the server to a viewer, or a contribution of the client.",
        ),
        "video_delivery": Option(
            type="string",
            choices=DELIVERIES,
            default="group",
            help="Video travels in a stream a group, a stream a frame, a datagram a frame, or a datagram for"
            " each part of a frame.",
        ),
        "repair_track": Option(
            type="string",
            default="",
            help="N:K: a track of repair symbols above QUIC, N - K for each K parts of video and at the end"
            " of each frame; with video_delivery = parts alone.",
        ),
        "audio_delivery": Option(
            type="string", choices=DELIVERIES, default="group", help="The same for audio."
        ),
        "priority": Option(
            type="string",
            choices=["audio", "equal"],
            default="audio",
            help="Whether audio is sent before video, or both alike.",
        ),
        "max_age_ms": Option(
            type="integer",
            minimum=0,
            maximum=3_600_000,
            default=500,
            help="A group that is so far behind the newest one is given up.",
        ),
        "send_buffer_bytes": Option(
            type="integer",
            minimum=4096,
            maximum=2**30,
            default=64 * 2**20,
            help="Most bytes that QUIC takes before they are acknowledged.",
        ),
        "playout_ms": Option(
            type="number",
            minimum=1,
            maximum=60_000,
            default=USUAL_PLAYOUT_MS[0],
            help="A list: on_time_ratio_…ms is the share of frames usable by then, the first compared.",
        ),
    }
    documents = "traces"
    relayed = True
    series: ClassVar = {SERIES: 64 << 20}
    sample: ClassVar = {
        "name": name,
        "direction": "down",
        "max_age_ms": 500,
        "deadline_us": 150_000,
        "send_buffer_bytes": 64 * 2**20,
        "tracks": [
            {
                "name": "video",
                "priority": 1,
                "delivery": "group",
                "frames": [[0, SAMPLE_BYTES // 2, 1], [20_000, SAMPLE_BYTES // 2, 0]],
            }
        ],
    }
    compared: ClassVar[str] = f"live.on_time_ratio_{USUAL_PLAYOUT_MS[0]:g}ms"

    def check(self, choices: Mapping[str, Any], labels: Collection[str], where: str) -> None:  # noqa: ARG002
        """Refuse parameters that do not fit. Absent ones have their defaults."""
        timed.check_playouts(
            _playouts(choices), self.parameters["playout_ms"], f"{where}: workload {self.name}"
        )
        self.check_values({name: value for name, value in choices.items() if name != "playout_ms"}, where)
        for parameter in OF_SOURCE if choices.get("trace") else ():
            if parameter in choices:
                raise Refusal(
                    f"{where}: workload {self.name}: trace = {choices['trace']!r} says sizes and times of"
                    f" video itself: leave out {parameter}"
                )
        values = self._with_defaults(choices)
        if problem := source.problem_of_repair(values):
            raise Refusal(
                f"{where}: workload {self.name}: repair_track = {values['repair_track']!r}: {problem}"
            )
        frames = sum(source.count(values[rate], values["duration_s"]) for rate in ("fps", "audio_hz"))
        if frames > source.MOST_FRAMES:
            raise Refusal(
                f"{where}: workload {self.name}: fps = {values['fps']:g}, audio_hz = {values['audio_hz']:g},"
                f" duration_s = {values['duration_s']:g}: has {frames} frames; {source.MOST_FRAMES} are the"
                " most"
            )

    def reads(self, parameter: str, choices: Mapping[str, Any]) -> bool:
        """Whether it reads a parameter: without audio, it reads none of audio, and with a trace, none of
        synthetic video."""
        if choices.get("trace") and parameter in OF_SOURCE:
            return False
        has_audio = bool(self._with_defaults(choices)["audio_hz"])
        return has_audio or parameter not in ("audio_bytes", "audio_delivery", "priority")

    def compared_with(self, choices: Mapping[str, Any]) -> str:
        """The share of video frames that are usable by the first playout delay."""
        return f"live.on_time_ratio_{_playouts(choices)[0]:g}ms"

    def _with_defaults(self, choices: Mapping[str, Any]) -> dict[str, Any]:
        return {name: option.default for name, option in self.parameters.items()} | dict(choices)

    def transfers(self, choices: Mapping[str, Any], around: Surroundings) -> list[Transfer]:
        values = self._with_defaults(choices)
        video = self._recorded(choices, values, around)
        if video and "duration_s" not in choices:
            values["duration_s"] = video[-1][0] / 1e6
        if values["duration_s"] >= around.timeout_s:
            raise Refusal(
                f"workload {self.name}: duration_s = {values['duration_s']:g},"
                f" and timeout_s = {around.timeout_s:g}: it must be more"
            )
        playouts = _playouts(choices)
        workload = {
            "name": self.asked_for,
            "direction": values["direction"],
            "max_age_ms": values["max_age_ms"],
            "deadline_us": round(1e3 * playouts[0]),
            "send_buffer_bytes": values["send_buffer_bytes"],
            "tracks": source.tracks(values, video),
        }
        return [Transfer(around.variant, workload, self.demand_of(workload), tuple(map(float, playouts)))]

    def _recorded(
        self, choices: Mapping[str, Any], values: Mapping[str, Any], around: Surroundings
    ) -> source.Frames | None:
        """Return the video of a trace, as long as it is wanted; None for that of the source."""
        if not values["trace"]:
            return None
        frames: source.Frames = around.documents[values["trace"]]["frames"]
        if "duration_s" not in choices:
            return frames
        cut = recorded.until(frames, choices["duration_s"])
        if not cut:
            raise Refusal(
                f"workload {self.name}: trace = {values['trace']!r}: no frame is due before duration_s ="
                f" {choices['duration_s']:g}"
            )
        return cut

    def document(self, choices: Mapping[str, Any], folders: Sequence[Path]) -> tuple[str, Path] | None:
        name = str(choices.get("trace", ""))
        return (name, recorded.path_of(name, folders)) if name else None

    def read_document(self, path: Path) -> dict[str, Any]:
        return recorded.stored(path)

    def demand_of(self, workload: Mapping[str, Any]) -> Demand:
        """Return the demand: the last frame is due at its time, and frames that are too late need not
        arrive."""
        frames = [frame for track in workload["tracks"] for frame in track["frames"]]
        size_bytes = sum(size for _, size, _ in frames)
        down = workload["direction"] == "down"
        return Demand(
            up_bytes=0 if down else size_bytes,
            down_bytes=size_bytes if down else 0,
            round_trips=1,
            pauses_s=max(due_us for due_us, _, _ in frames) / 1e6,
            may_be_lost=True,
        )

    def measure(self, task: Task, outcome: Outcome) -> Measured:
        broadcast = noted.read(task, outcome)
        for problem in plausible.problems(task, outcome, broadcast):
            raise Impossible(problem)
        pair = task.pairs[0]
        _, receiver = timed.ends(pair)
        return Measured(
            metrics=noted.measure(broadcast, pair.playout_ms, sent_bytes(task, outcome)),
            series={(receiver, SERIES): noted.rows(broadcast)} if SERIES in pair.end(receiver).series else {},
        )


def _playouts(choices: Mapping[str, Any]) -> tuple[Any, ...]:
    delays = choices.get("playout_ms", USUAL_PLAYOUT_MS)
    return tuple(delays) if isinstance(delays, list | tuple) else (delays,)
