"""The workload `live`: a live broadcast of tracks, whose frames become due at given times."""

from collections.abc import Collection, Mapping
from typing import Any, ClassVar

from fecbench.runners.options import Option, Value
from fecbench.runners.refusal import Refusal
from fecbench.runners.tasks.demand import Demand
from fecbench.runners.workloads.live import noted, plausible, source
from fecbench.runners.workloads.live.noted import SERIES
from fecbench.runners.workloads.live.recorded import Recording
from fecbench.runners.workloads.timetabled import Timetabled
from fecbench.runners.workloads.workload import (
    SAMPLE_BYTES,
    Surroundings,
    Transfer,
)

USUAL_PLAYOUT_MS = (150.0, 100.0, 200.0, 300.0, 500.0)
DELIVERIES: list[Value] = ["group", "frame", "datagram", "parts"]
PROTOCOLS: list[Value] = ["moq-lite-06", "moq-transport-22"]


class Live(Timetabled):
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
        "protocol": Option(
            type="string",
            choices=PROTOCOLS,
            default=PROTOCOLS[0],
            help="The version of Media over QUIC: moq-lite, or the IETF's draft.",
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
    trace_file = Recording
    stored_as = "frames"
    replaced = ("fps", "i_bytes", "p_bytes", "source_seed")
    usual_playouts_ms = USUAL_PLAYOUT_MS
    measuring: ClassVar = noted
    judging: ClassVar = plausible
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

    def check(self, choices: Mapping[str, Any], labels: Collection[str], where: str) -> None:
        """Refuse parameters that do not fit. Absent ones have their defaults."""
        super().check(choices, labels, where)
        values = self.with_defaults(choices)
        for parameter, problem in (
            ("repair_track", source.problem_of_repair(values)),
            ("protocol", source.problem_of_protocol(values)),
        ):
            if problem:
                raise Refusal(
                    f"{where}: workload {self.name}: {parameter} = {values[parameter]!r}: {problem}"
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
        if choices.get("trace") and parameter in self.replaced:
            return False
        has_audio = bool(self.with_defaults(choices)["audio_hz"])
        return has_audio or parameter not in ("audio_bytes", "audio_delivery", "priority")

    def transfers(self, choices: Mapping[str, Any], around: Surroundings) -> list[Transfer]:
        values = self.with_defaults(choices)
        video = self.from_trace(choices, around)
        if video and "duration_s" not in choices:
            values["duration_s"] = video[-1][0] / 1e6
        if values["duration_s"] >= around.timeout_s:
            raise Refusal(
                f"workload {self.name}: duration_s = {values['duration_s']:g},"
                f" and timeout_s = {around.timeout_s:g}: it must be more"
            )
        playouts = self.playouts(choices)
        workload = {
            "name": self.asked_for,
            "direction": values["direction"],
            "max_age_ms": values["max_age_ms"],
            "deadline_us": round(1e3 * playouts[0]),
            "send_buffer_bytes": values["send_buffer_bytes"],
            "tracks": source.tracks(values, video),
        }
        if values["protocol"] != PROTOCOLS[0]:
            workload["protocol"] = values["protocol"]
        return [Transfer(around.variant, workload, self.demand_of(workload), tuple(map(float, playouts)))]

    def demand_of(self, workload: Mapping[str, Any]) -> Demand:
        """Return the demand: frames that are too late need not arrive."""
        frames = [frame for track in workload["tracks"] for frame in track["frames"]]
        return self.demand_of_rows(workload, frames, may_be_lost=True)
