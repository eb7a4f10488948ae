"""Video that an encoder made, as a trace: when each frame is due, its bytes, and where groups begin.

`fecbench trace from-video` makes one of a media file, which ffprobe reads; the file itself is not needed
afterwards. Frames are due in the order and at the times at which a decoder wants them.
"""

import json
import subprocess
from pathlib import Path
from typing import Annotated, Any, Self

from pydantic import Field, model_validator

from fecbench.runners.refusal import Refusal
from fecbench.runners.workloads.json_file import checked
from fecbench.runners.workloads.live.source import MOST_FRAMES, Frames
from fecbench.runners.workloads.timetable_file import TimetableFile

_LONGEST_READING_S = 600


class Recording(TimetableFile):
    """Frames of video."""

    rows_are = "frames"
    largest_bytes = 2**24

    frames: Annotated[
        list[Annotated[list[int], Field(min_length=3, max_length=3)]],
        Field(min_length=1, max_length=MOST_FRAMES),
    ]
    """The third column is 1 where a group begins, else 0."""

    @model_validator(mode="after")
    def _check_groups(self) -> Self:
        for number, (_, _, begins) in enumerate(self.frames):
            if begins not in (0, 1):
                raise ValueError(f"frame {number}: {begins} must be 1 where a group begins, else 0")
        if not self.frames[0][2]:
            raise ValueError("frame 0: must begin a group")
        return self


def from_video(path: Path, made_by: str) -> Recording:
    """Return the frames of the first track of video in a media file. Raises Refusal."""
    if not path.is_file():
        raise Refusal(f"{path}: there is no such file")
    packets = _packets(path)
    frames: Frames = []
    for number, packet in enumerate(packets):
        try:
            due_us = round(1e6 * float(packet["dts_time"]))
            frames.append([due_us, int(packet["size"]), int("K" in packet["flags"])])
        except (KeyError, TypeError, ValueError):
            raise Refusal(f"{path}: frame {number} has no decoding time (dts), size or flags") from None
    if not frames:
        raise Refusal(f"{path}: has no frames of video")
    first_us = frames[0][0]
    document = {
        "title": f"video of {''.join(letter for letter in path.name if letter.isprintable())[:60] or '-'}",
        "made_by": made_by,
        "frames": [[due_us - first_us, size_bytes, begins] for due_us, size_bytes, begins in frames],
    }
    return checked(Recording, document, str(path))


def _packets(path: Path) -> list[dict[str, Any]]:
    """Return what ffprobe says of each frame in a file, in the order of decoding."""
    entries = ["-select_streams", "v:0", "-show_entries", "packet=dts_time,size,flags"]
    command = ["ffprobe", "-loglevel", "error", "-protocol_whitelist", "file", *entries]
    command += ["-print_format", "json", f"file:{path}"]
    try:
        ran = subprocess.run(command, capture_output=True, text=True, timeout=_LONGEST_READING_S, check=False)
    except FileNotFoundError:
        raise Refusal("ffprobe is missing: apt-get install ffmpeg") from None
    except subprocess.TimeoutExpired:
        raise Refusal(f"{path}: ffprobe took longer than {_LONGEST_READING_S} s") from None
    if ran.returncode:
        why = " ".join(ran.stderr.split())[:200]
        raise Refusal(f"{path}: ffprobe cannot read it: {why}")
    try:
        packets: list[dict[str, Any]] = json.loads(ran.stdout)["packets"]
    except (KeyError, ValueError):
        raise Refusal(f"{path}: ffprobe listed no frames") from None
    return packets
