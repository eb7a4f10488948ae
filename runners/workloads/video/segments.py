"""The segments of a representation: how many bytes each has, and how long it takes.

They come from a SegmentTemplate, with a timeline or one duration; a SegmentList; or the index of a file
(`sidx`). Attributes of a Period or a set apply to its representations, and the innermost wins.
"""

import re
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from xml.etree.ElementTree import Element

from fecbench.runners.workloads.video.ladder import MOST_SEGMENTS
from fecbench.runners.workloads.video.presentation import Presentation, byte_range, whole_number

_FIELD = re.compile(r"\$(RepresentationID|Number|Time|Bandwidth)(?:%0(\d+)d)?\$")


Sizes = tuple[list[int], list[float]]
"""The bytes of each segment, and how long it takes (s)."""


@dataclass(frozen=True)
class _Segment:
    """A segment of a representation: its number, begin and length, in units of a second."""

    number: int
    time: int
    duration: int


@dataclass(frozen=True)
class _Described:
    """The segments as a Period, a set and a representation describe them; the innermost counts."""

    attributes: dict[str, str]
    within: dict[str, list[Element]]
    """Elements by their names, such as SegmentURL."""
    representation: Element
    base: str
    """The beginning of all names of files."""
    length_s: float
    """Length of the period; 0: not known."""


def sizes_of(
    read: Presentation, levels: tuple[Element, Element, Element], base: str, length_s: float
) -> Sizes:
    """The segments of a representation, the last of these levels."""
    *_, representation = levels
    base += (representation.findtext("BaseURL") or "").strip()
    ways = {"SegmentTemplate": _of_template, "SegmentList": _of_list, "SegmentBase": _of_base}
    for level in reversed(levels):
        for name, sizes in ways.items():
            if level.find(name) is not None:
                return sizes(read, _described(name, levels, base, length_s))
    raise read.refuse(
        f"representation {representation.get('id')!r}: has no SegmentTemplate, SegmentList or index"
    )


def _described(name: str, levels: tuple[Element, Element, Element], base: str, length_s: float) -> _Described:
    attributes: dict[str, str] = {}
    within: dict[str, list[Element]] = {}
    for level in levels:
        if (element := level.find(name)) is not None:
            attributes |= element.attrib
            within |= {inner: element.findall(inner) for inner in {child.tag for child in element}}
    return _Described(attributes, within, levels[-1], base, length_s)


def _of_template(read: Presentation, described: _Described) -> Sizes:
    media, scale = described.attributes.get("media"), _scale(read, described, "a SegmentTemplate")
    if media is None:
        raise read.refuse("a SegmentTemplate has no media")
    segments = list(_segments(read, described, scale))
    fields = {
        "RepresentationID": described.representation.get("id") or "",
        "Bandwidth": described.representation.get("bandwidth") or "0",
    }

    def name(segment: _Segment) -> str:
        values = {**fields, "Number": str(segment.number), "Time": str(segment.time)}
        return _FIELD.sub(lambda field: values[field[1]].zfill(int(field[2] or 0)), media).replace("$$", "$")

    sizes = [read.size_of(described.base + name(segment)) for segment in segments]
    return sizes, [segment.duration / scale for segment in segments]


def _scale(read: Presentation, described: _Described, what: str) -> int:
    scale = whole_number(read, described.attributes.get("timescale", "1"))
    if scale <= 0:
        raise read.refuse(f"{what} has timescale {scale}: it must be above 0")
    return scale


def _segments(read: Presentation, described: _Described, scale: int) -> Iterator[_Segment]:
    """The segments of a template, by its timeline or its one duration."""
    first = whole_number(read, described.attributes.get("startNumber", "1"))
    most = MOST_SEGMENTS
    if (last := described.attributes.get("endNumber")) is not None:
        most = whole_number(read, last) - first + 1
        if not 0 < most <= MOST_SEGMENTS:
            raise read.refuse(f"a SegmentTemplate has startNumber {first} and endNumber {last}")
    if "SegmentTimeline" in described.within:
        (timeline, *_) = described.within["SegmentTimeline"]
        for place, segment in enumerate(_timeline(read, timeline, described, scale, first)):
            if place < most:
                yield segment
        return
    duration = whole_number(read, described.attributes.get("duration", "0"))
    if duration <= 0 or not (described.length_s > 0 or last is not None):
        raise read.refuse(
            "a SegmentTemplate has neither a SegmentTimeline nor a duration, or its period none"
        )
    count = described.length_s * scale / duration if described.length_s > 0 else float(most)
    if last is None and count > MOST_SEGMENTS:
        raise read.refuse(f"has {count:.0f} segments: {MOST_SEGMENTS} are the most")
    for place in range(max(1, int(min(count, most) + 0.999))):
        yield _Segment(first + place, place * duration, duration)


def _timeline(
    read: Presentation, timeline: Element, described: _Described, scale: int, first: int
) -> Iterator[_Segment]:
    number, time, runs = first, 0, timeline.findall("S")
    for place, run in enumerate(runs):
        duration, repeats = whole_number(read, run.get("d", "0")), whole_number(read, run.get("r", "0"))
        time = whole_number(read, run.get("t", str(time)))
        if repeats == -1 and duration > 0:  # up to the next one, or the end of the period
            following = runs[place + 1].get("t") if place + 1 < len(runs) else None
            end = _period_end(read, described, scale) if following is None else whole_number(read, following)
            repeats = max(0, -(-(end - time) // duration) - 1)
        if duration <= 0 or not 0 <= repeats < MOST_SEGMENTS or number - first + repeats >= MOST_SEGMENTS:
            raise read.refuse(f"a SegmentTimeline has d = {duration}, r = {repeats}, or too many segments")
        for _ in range(repeats + 1):
            yield _Segment(number, time, duration)
            number, time = number + 1, time + duration
    if number == first:
        raise read.refuse("a SegmentTimeline is empty")


def _period_end(read: Presentation, described: _Described, scale: int) -> int:
    """Return the end of the period, in the units of a timeline."""
    if not 0 < described.length_s < 1e9:
        raise read.refuse("a SegmentTimeline has r = -1, up to the end of its period, which has no duration")
    offset = whole_number(read, described.attributes.get("presentationTimeOffset", "0"))
    return offset + round(described.length_s * scale)


def _of_list(read: Presentation, described: _Described) -> Sizes:
    urls, scale = described.within.get("SegmentURL", []), _scale(read, described, "a SegmentList")
    duration = whole_number(read, described.attributes.get("duration", "0"))
    lengths = [duration] * len(urls)
    if "SegmentTimeline" in described.within:
        lengths = [segment.duration for segment in _segments(read, described, scale)][: len(urls)]
    if not 0 < len(urls) == len(lengths) <= MOST_SEGMENTS or min(lengths) <= 0:
        raise read.refuse(f"a SegmentList has {len(urls)} segments of {duration} / {scale} s")
    sizes = []
    for url in urls:
        if url.get("mediaRange"):
            first, last = byte_range(read, str(url.get("mediaRange")))
            sizes.append(last - first + 1)
        else:
            sizes.append(read.size_of(described.base + (url.get("media") or "")))
    return sizes, [length / scale for length in lengths]


def _of_base(read: Presentation, described: _Described) -> Sizes:
    if (span := described.attributes.get("indexRange")) is None:
        raise read.refuse(
            f"representation {described.representation.get('id')!r}: has no SegmentTemplate, SegmentList or"
            " index: its SegmentBase has no indexRange"
        )
    return _of_index(read, described.base, span)


def _of_index(read: Presentation, name: str, span: str) -> Sizes:
    """Return sizes and durations from the box `sidx` of a file (ISO/IEC 14496-12, 8.16.3)."""
    first, last = byte_range(read, span)
    box = read.head_of(name, first, last)
    try:
        version = box[8]
        if box[4:8] != b"sidx" or version > 1:
            raise read.refuse(f"{name[:80]}: there is no sidx at {span}")
        (scale,) = struct.unpack_from(">I", box, 16)
        at = 20 + (8 if version == 0 else 16) + 2
        (count,) = struct.unpack_from(">H", box, at)
        entries = [struct.unpack_from(">III", box, at + 2 + 12 * n) for n in range(count)]
    except (struct.error, IndexError):
        raise read.refuse(f"{name[:80]}: its sidx is cut off") from None
    if not entries or scale == 0 or not all(duration for _, duration, _ in entries):
        raise read.refuse(f"{name[:80]}: its sidx has no segments")
    if any(size >> 31 for size, _, _ in entries):
        raise read.refuse(f"{name[:80]}: its sidx is one of other indexes, which are not read")
    return [size for size, _, _ in entries], [duration / scale for _, duration, _ in entries]
