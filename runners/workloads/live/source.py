"""The source of the workload `live`: a track of video, and one of audio.

Frames are due at a constant rate. A group of video begins with a frame that needs no other (I); all others
(P) need those before them. Sizes are drawn evenly from half to one and a half of their mean, from a seed
of their own: all trials of a workload have the same sizes. A trace has the sizes of a real encoder
(`recorded`).
"""

import random
import re
from collections.abc import Mapping
from typing import Any

Frames = list[list[int]]
"""Rows of frames: µs since the sender began, bytes, and 1 where a group begins, else 0."""

MOST_FRAMES = 200_000
"""Most frames of both tracks: each is a row of the series that both ends record."""


def count(rate_hz: float, duration_s: float) -> int:
    """Return how many frames are due before `duration_s`, at least one."""
    return max(1, round(rate_hz * duration_s))


MOST_OF_REPAIR = 255
"""Largest N of the rate N:K of a repair track."""


def problem_of_repair(values: Mapping[str, Any]) -> str:
    """Return why there is no such repair track, or "" if there is one or none is asked for."""
    if not values["repair_track"]:
        return ""
    rate = re.fullmatch(r"([0-9]{1,3}):([0-9]{1,3})", values["repair_track"])
    if not rate or not 0 < int(rate[2]) < int(rate[1]) <= MOST_OF_REPAIR:
        return f"must be N:K with 0 < K < N <= {MOST_OF_REPAIR}, such as 21:20"
    if values["video_delivery"] != "parts":
        return f"needs video_delivery = 'parts', and that is {values['video_delivery']!r}"
    return ""


def problem_of_protocol(values: Mapping[str, Any]) -> str:
    """Return why the protocol does not carry these tracks, or "" if it does."""
    if values["protocol"] == "moq-transport-22" and values["audio_hz"] and values["priority"] != "equal":
        return f"needs priority = 'equal', and that is {values['priority']!r}"
    return ""


def tracks(values: Mapping[str, Any], recorded: Frames | None = None) -> list[dict[str, Any]]:
    """Return the tracks of an assignment, by the parameters of the workload; `recorded` is video that an
    encoder made, in the place of that of the seed."""
    equal = values["priority"] == "equal"
    rate = values["repair_track"]
    of_source = [
        {
            "name": "video",
            "priority": 1,
            "delivery": values["video_delivery"],
            "frames": recorded or _video(values),
        }
        | ({"repair": [int(number) for number in rate.split(":")]} if rate else {})
    ]
    if values["audio_hz"]:
        group = max(1, round(values["audio_hz"] * values["group_ms"] / 1e3))
        audio = [
            [round(1e6 * number / values["audio_hz"]), values["audio_bytes"], int(number % group == 0)]
            for number in range(count(values["audio_hz"], values["duration_s"]))
        ]
        of_source.append(
            {
                "name": "audio",
                "priority": 1 if equal else 2,
                "delivery": values["audio_delivery"],
                "frames": audio,
            }
        )
    return of_source


def _video(values: Mapping[str, Any]) -> Frames:
    draw = random.Random(int(values["source_seed"]))
    video: Frames = []
    group = max(1, round(values["fps"] * values["group_ms"] / 1e3))
    for number in range(count(values["fps"], values["duration_s"])):
        begins = number % group == 0
        mean = values["i_bytes"] if begins else values["p_bytes"]
        due_us = round(1e6 * number / values["fps"])
        video.append([due_us, max(1, round(mean * (0.5 + draw.random()))), int(begins)])
    return video
