"""The ladder of a DASH presentation that lies in a folder: its MPD, and its segments or their sizes.

Nothing is fetched: sizes are those of files beside the MPD, or of the byte ranges that it or the index of a
file (`sidx`) names. The first of several periods is read, and of several sets of video the one with the most
representations. Segment attributes of a Period or a set apply to its representations.

A ladder has one length for all segments. A presentation is refused if a segment other than the last differs
from this length by more than a frame or so.
"""

import re
from collections.abc import Callable
from pathlib import Path
from xml.etree.ElementTree import Element

from fecbench.runners.workloads.json_file import checked
from fecbench.runners.workloads.video.ladder import Video
from fecbench.runners.workloads.video.presentation import Presentation, period_length_s, whole_number
from fecbench.runners.workloads.video.segments import sizes_of

_LONGEST_LAST = 1.5
"""The last segment may take so much longer than the others."""
_SHOWN = 6


def video_from(path: Path, made_by: str, warn: Callable[[str], None] = lambda _: None) -> Video:
    """The video of a presentation: an MPD, or the folder with its only one. Raises Refusal.

    `warn` gets a sentence if there are Periods besides the first, which alone is read.
    """
    read = Presentation(path)
    periods = read.root.findall("Period")
    if len(periods) > 1:
        warn(f"{path.name} has {len(periods)} Periods; the first is read, and the others are left out")
    period = next(iter(periods), None)
    sets = (
        []
        if period is None
        else [adaptation for adaptation in period.iter("AdaptationSet") if _is_video(adaptation)]
    )
    if period is None or not sets:
        raise read.refuse("has no AdaptationSet of video in its first Period")
    best_set = max(sets, key=lambda adaptation: len(adaptation.findall("Representation")))
    base = "".join((element.findtext("BaseURL") or "").strip() for element in (read.root, period, best_set))
    length_s = period_length_s(read, period)
    levels, lengths = [], list[float]()
    for representation in best_set.findall("Representation"):
        fps = _fps(representation.get("frameRate") or best_set.get("frameRate") or "25")
        sizes, durations_s = sizes_of(read, (period, best_set, representation), base, length_s)
        segment_s = _one_length(read, durations_s, fps)
        lengths.append(segment_s)
        whole = round(8e-3 * sum(sizes) / (segment_s * len(sizes)), 3)
        levels.append(
            {
                "kbps": whole,
                "width": _integer(read, representation, best_set, "width"),
                "height": _integer(read, representation, best_set, "height"),
                "fps": fps,
                "sizes": sizes,
            }
        )
    if lengths and max(lengths) - min(lengths) > 1 / 24:
        lengths_s = sorted(round(length, 3) for length in set(lengths))[:5]
        raise read.refuse(f"its representations have segments of {lengths_s} s: one length is read")
    counts = sorted({len(level["sizes"]) for level in levels})  # type: ignore[arg-type]
    if counts and counts[-1] - counts[0] > 1:
        raise read.refuse(
            f"its representations have {counts[0]} to {counts[-1]} segments: all must have the same"
        )
    for level in levels:  # the last segment of some may be missing
        level["sizes"] = level["sizes"][: counts[0]]  # type: ignore[index]
    document = {
        "title": " ".join((read.root.findtext("ProgramInformation/Title") or read.path.stem).split())[:200],
        "made_by": made_by,
        "segment_s": lengths[0] if lengths else 0.0,
        "levels": sorted(levels, key=lambda level: float(str(level["kbps"]))),
    }
    return checked(Video, document, str(read.path))


def _one_length(read: Presentation, durations_s: list[float], fps: float) -> float:
    """Return the length of a segment. The last may have another, and each may differ by a frame or so."""
    others = durations_s[:-1] or durations_s
    usual, frame_s = sorted(others)[len(others) // 2], 1.5 / max(fps, 1.0)
    if (
        max(others) - usual > frame_s
        or usual - min(others) > frame_s
        or durations_s[-1] > _LONGEST_LAST * usual
    ):
        text = ", ".join(f"{length:g}" for length in durations_s[:_SHOWN])
        more = ", …" if len(durations_s) > _SHOWN else ""
        raise read.refuse(
            f"its segments last {text}{more} s, {sum(durations_s):g} s in all: a ladder has one length, which"
            " all but the last must have"
        )
    return others[0] if min(others) == max(others) else round(sum(others) / len(others), 6)


def _is_video(adaptation: Element) -> bool:
    kinds = [adaptation.get("contentType"), adaptation.get("mimeType")]
    kinds += [representation.get("mimeType") for representation in adaptation.findall("Representation")]
    return any(kind and kind.startswith("video") for kind in kinds)


def _integer(read: Presentation, representation: Element, best_set: Element, name: str) -> int:
    return whole_number(read, representation.get(name) or best_set.get(name) or "0")


def _fps(text: str) -> float:
    """Return a frame rate such as 25 or 30000/1001; 0, which is refused, for anything else."""
    match = re.fullmatch(r"(\d{1,9}(?:\.\d{1,9})?)(?:/(\d{1,9}))?", text)
    return float(match[1]) / max(1.0, float(match[2] or 1)) if match else 0.0
