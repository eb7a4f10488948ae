"""The ladder of a video: at which bit rates it is there, and how large each of its segments is.

Only sizes matter to a network, so a ladder is all that a session needs of a video. It is a file
`videos/NAME.json` beside the design. This is the one place that refuses ladders that cannot be played.
"""

import hashlib
import json
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from fecbench.runners.workloads.json_file import Line, checked, find_document, read_json

MOST_SEGMENTS = 10_000
MOST_LEVELS = 64
LARGEST_SEGMENT_BYTES = 2**30

Size = Annotated[int, Field(ge=1, le=LARGEST_SEGMENT_BYTES)]


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)


class Level(_Part):
    """A representation of a video."""

    kbps: Annotated[float, Field(gt=0, le=1e6)]
    """The mean bit rate that players go by, in kilobits (1,000 bits) a second."""
    width: Annotated[int, Field(ge=1, le=20_000)]
    height: Annotated[int, Field(ge=1, le=20_000)]
    fps: Annotated[float, Field(gt=0, le=1_000)]
    sizes: Annotated[tuple[Size, ...], Field(min_length=1, max_length=MOST_SEGMENTS, strict=False)]
    """Bytes of each segment."""

    @property
    def resolution(self) -> str:
        return f"{self.width}x{self.height}"


class Ladder(_Part):
    """The levels of a video, the lowest first."""

    segment_s: Annotated[float, Field(ge=0.1, le=60)]
    levels: Annotated[tuple[Level, ...], Field(min_length=1, max_length=MOST_LEVELS, strict=False)]

    @property
    def segments(self) -> int:
        return len(self.levels[0].sizes)

    @property
    def duration_s(self) -> float:
        return self.segments * self.segment_s

    @model_validator(mode="after")
    def _check_levels(self) -> Self:
        for number, (lower, level) in enumerate(pairwise(self.levels), 1):
            if level.kbps <= lower.kbps:
                raise ValueError(
                    f"level {number}: {level.kbps:g} kbps must be more than {lower.kbps:g} of the one below"
                )
            if len(level.sizes) != self.segments:
                raise ValueError(
                    f"level {number}: has {len(level.sizes)} sizes, and level 0 has {self.segments}:"
                    " all levels have the same segments"
                )
        return self

    def cut(self, segments: int) -> "Ladder":
        """The first segments of it."""
        levels = [level.model_copy(update={"sizes": level.sizes[:segments]}) for level in self.levels]
        return self.model_copy(update={"levels": tuple(levels)})


class Video(Ladder):
    """A ladder with what it is of."""

    title: Line
    made_by: Line

    def text(self) -> str:
        """The file's text: one level a line."""
        head = {"title": self.title, "made_by": self.made_by, "segment_s": self.segment_s}
        lines = ",\n  ".join(json.dumps(level.model_dump(mode="json")) for level in self.levels)
        return json.dumps(head, ensure_ascii=False, indent=1)[:-2] + f',\n "levels": [\n  {lines}\n ]\n}}\n'


def load(path: Path) -> Video:
    """The video in a file. Raises Refusal."""
    return checked(Video, read_json(path), str(path))


def stored(path: Path) -> dict[str, Any]:
    """A ladder as a campaign keeps it: the file's hash, and all that is needed to play it again."""
    ladder = load(path).model_dump(mode="json", include={"segment_s", "levels"})
    return {"sha256": hashlib.sha256(path.read_bytes()).hexdigest(), "ladder": ladder}


def path_of(name: str, folders: Sequence[Path]) -> Path:
    """The file of the ladder of that name: in `videos` within these folders. Raises Refusal."""
    return find_document(folders, "video", name, "workload video: ladder")
