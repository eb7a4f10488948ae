"""Ladders of videos that nobody filmed, from a seed.

The levels are those of a service that streams films, 235 kbps to 4.3 Mbps, with the highest frame size
that each rate carries. The sizes of segments vary as they do where the quality is kept constant (VBR): what
is in the picture decides, at all levels alike, and stays for some seconds.
"""

import math

from fecbench.runners.workloads.chance import Sizes
from fecbench.runners.workloads.video.ladder import Level, Video

RUNGS = (
    (235, 320, 240),
    (375, 384, 288),
    (560, 512, 384),
    (750, 512, 384),
    (1050, 640, 480),
    (1750, 720, 480),
    (2350, 1280, 720),
    (3000, 1280, 720),
    (4300, 1920, 1080),
)
"""kbps, width and height."""
FPS = 24.0
SPREAD = 0.35
"""Standard deviation of the logarithm of a scene's rate: segments then spread by two to four times around
their level's mean, as those of published ladders do."""
OF_SEGMENT = 0.08
"""The same within a scene, a level each."""
SCENE_S = 6.0
"""Median length of a scene."""
SCENE_SPREAD = 0.6


def make(seed: int, segment_s: float, duration_s: float, made_by: str) -> Video:
    """A film of that length. The mean of each level is its bit rate."""
    sizes = Sizes(seed)
    count = math.ceil(round(duration_s / segment_s, 9))
    factors = _scenes(sizes, count * segment_s)
    levels = []
    for kbps, width, height in RUNGS:
        of_level = [
            _mean(factors, number * segment_s, segment_s) * sizes.lognormal(1.0, OF_SEGMENT)
            for number in range(count)
        ]
        scale = 125 * kbps * segment_s * count / sum(of_level)
        levels.append(
            Level(
                kbps=float(kbps),
                width=width,
                height=height,
                fps=FPS,
                sizes=tuple(max(1, round(scale * factor)) for factor in of_level),
            )
        )
    title = f"Made film of {count * segment_s:g} s in segments of {segment_s:g} s"
    return Video(title=title, made_by=made_by, segment_s=segment_s, levels=tuple(levels))


def _scenes(sizes: Sizes, duration_s: float) -> list[tuple[float, float]]:
    """Return the end of each scene, and its rate relative to the mean."""
    scenes, end_s = [], 0.0
    while end_s < duration_s:
        end_s += sizes.lognormal(SCENE_S, SCENE_SPREAD)
        scenes.append((end_s, sizes.lognormal(1.0, SPREAD)))
    return scenes


def _mean(scenes: list[tuple[float, float]], from_s: float, length_s: float) -> float:
    """The mean rate of a part of the film."""
    total, begin_s = 0.0, 0.0
    for end_s, rate in scenes:
        overlap_s = min(end_s, from_s + length_s) - max(begin_s, from_s)
        total += rate * max(0.0, overlap_s)
        begin_s = end_s
    return total / length_s
