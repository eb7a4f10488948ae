"""Video that an encoder made, as a trace: when each frame is due, its bytes, and where groups begin.

`fecbench trace from-video` makes one of a media file, which ffprobe reads; the file itself is not needed
afterwards. Frames are due in the order and at the times at which a decoder wants them.
"""

import hashlib
import json
import subprocess
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from fecbench.runners.refusal import Refusal
from fecbench.runners.workloads.json_file import Line, checked, find_document, read_json
from fecbench.runners.workloads.live.source import MOST_FRAMES, Frames

LARGEST_FRAME_BYTES = 2**24
LONGEST_US = 86_400_000_000
"""A day."""
_LONGEST_READING_S = 600


class Recording(BaseModel):
    """Frames of video."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    title: Line
    made_by: Line
    frames: Annotated[
        list[Annotated[list[int], Field(min_length=3, max_length=3)]],
        Field(min_length=1, max_length=MOST_FRAMES),
    ]
    """Microseconds since the sender began, bytes, and 1 where a group begins, else 0."""

    @model_validator(mode="after")
    def _check_frames(self) -> Self:
        for number, ((before_us, *_), (due_us, *_)) in enumerate(pairwise(self.frames), 1):
            if due_us < before_us:
                raise ValueError(
                    f"frame {number}: is due at {due_us} µs, and the one before at {before_us}:"
                    " times must not decrease"
                )
        for number, (due_us, size_bytes, begins) in enumerate(self.frames):
            if not 0 <= due_us <= LONGEST_US:
                raise ValueError(f"frame {number}: {due_us} µs must be from 0 to {LONGEST_US}, a day")
            if not 1 <= size_bytes <= LARGEST_FRAME_BYTES:
                raise ValueError(
                    f"frame {number}: {size_bytes} bytes must be from 1 to {LARGEST_FRAME_BYTES}"
                )
            if begins not in (0, 1):
                raise ValueError(f"frame {number}: {begins} must be 1 where a group begins, else 0")
        if not self.frames[0][2]:
            raise ValueError("frame 0: must begin a group")
        return self

    def text(self) -> str:
        """Return the file's text: one frame a line."""
        head = json.dumps({"title": self.title, "made_by": self.made_by}, ensure_ascii=False, indent=1)
        lines = ",\n  ".join(json.dumps(frame) for frame in self.frames)
        return f'{head[:-2]},\n "frames": [\n  {lines}\n ]\n}}\n'


def path_of(name: str, folders: Sequence[Path]) -> Path:
    """Return the file of a trace. Raises Refusal, which names the parameter."""
    return find_document(folders, "trace", name, "workload live: trace")


def stored(path: Path) -> dict[str, Any]:
    """Return a trace as a campaign keeps it: the file's hash, and its frames. Raises Refusal."""
    recording = checked(Recording, read_json(path), str(path))
    return {"sha256": hashlib.sha256(path.read_bytes()).hexdigest(), "frames": recording.frames}


def until(frames: Frames, duration_s: float) -> Frames:
    """Return the frames that are due before `duration_s`."""
    return [frame for frame in frames if frame[0] < 1e6 * duration_s]


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
