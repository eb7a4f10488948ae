"""The ladder of a DASH presentation that lies in a folder: its MPD, and its segments or their sizes.

Nothing is fetched: sizes are those of files beside the MPD, or of the byte ranges that it or the index of a
file (`sidx`) names. Of several periods the first is read, of several sets of video the one with the most
representations.
"""

import re
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

from fecbench.runners.refusal import Refusal
from fecbench.runners.workloads.json_file import checked
from fecbench.runners.workloads.video.ladder import MOST_SEGMENTS, Video

LARGEST_MPD_BYTES = 16 << 20
MOST_INDEX_BYTES = 1 << 20
_NAMESPACE = re.compile(r"^{[^}]*}")
_DURATION = re.compile(r"P(?:(\d+)D)?T?(?:(\d+)H)?(?:(\d+)M)?(?:([\d.]+)S)?")
_FIELD = re.compile(r"\$(RepresentationID|Number|Time|Bandwidth)(?:%0(\d+)d)?\$")


@dataclass(frozen=True)
class _Segment:
    """One of a representation: its number, when it begins, and how long it takes, in units of a second."""

    number: int
    time: int
    duration: int


class _Presentation:
    """An MPD and its folder."""

    def __init__(self, path: Path) -> None:
        self.path = _only_mpd(path) if path.is_dir() else path
        self.folder = self.path.parent.resolve()
        self.root = self._parse()

    def refuse(self, problem: str) -> Refusal:
        return Refusal(f"{self.path}: {problem}"[:300])

    def _parse(self) -> Element:
        try:
            with self.path.open("rb") as file:
                text = file.read(LARGEST_MPD_BYTES + 1)
        except OSError as error:
            raise self.refuse(f"cannot be read: {error.strerror}") from None
        if len(text) > LARGEST_MPD_BYTES:
            raise self.refuse(f"is larger than {LARGEST_MPD_BYTES} bytes")
        if b"<!DOCTYPE" in text or b"<!ENTITY" in text:
            raise self.refuse("declares a document type or entities: an MPD has none")
        try:
            root = ElementTree.fromstring(text)
        except (ElementTree.ParseError, ValueError, LookupError) as error:
            raise self.refuse(f"is no XML: {error}") from None
        for element in root.iter():
            element.tag = _NAMESPACE.sub("", element.tag)
        if root.tag != "MPD":
            raise self.refuse(f"is no MPD: its root is {root.tag[:40]}")
        return root

    def size_of(self, name: str) -> int:
        """Of a file of the presentation, by what the MPD calls it."""
        if "://" in name or name.startswith("/"):
            raise self.refuse(f"{name[:80]!r} is not beside it, and nothing is fetched")
        file = (self.folder / name).resolve()
        if not file.is_relative_to(self.folder):
            raise self.refuse(f"{name[:80]!r} is outside of its folder")
        try:
            return file.stat().st_size
        except OSError as error:
            raise self.refuse(f"{name[:80]}: {error.strerror}") from None

    def head_of(self, name: str, first: int, last: int) -> bytes:
        """Bytes of a file, both ends included."""
        if last - first >= MOST_INDEX_BYTES or first < 0:
            raise self.refuse(f"{name[:80]}: an index from {first} to {last} is none")
        self.size_of(name)
        with (self.folder / name).open("rb") as file:
            file.seek(first)
            return file.read(last - first + 1)


def video_from(path: Path, made_by: str) -> Video:
    """The video of a presentation: an MPD, or the folder with its only one. Raises Refusal."""
    read = _Presentation(path)
    period = read.root.find("Period")
    sets = [] if period is None else [each for each in period.iter("AdaptationSet") if _is_video(each)]
    if period is None or not sets:
        raise read.refuse("has no AdaptationSet of video in its first Period")
    chosen = max(sets, key=lambda each: len(each.findall("Representation")))
    base = "".join((each.findtext("BaseURL") or "").strip() for each in (read.root, period, chosen))
    length_s = _seconds(period.get("duration") or read.root.get("mediaPresentationDuration") or "")
    levels, lengths = [], set()
    for representation in chosen.findall("Representation"):
        sizes, segment_s = _sizes(read, chosen, representation, base, length_s)
        lengths.add(segment_s)
        whole = round(8e-3 * sum(sizes) / (segment_s * len(sizes)), 3)
        levels.append(
            {
                "kbps": whole,
                "width": _integer(read, representation, chosen, "width"),
                "height": _integer(read, representation, chosen, "height"),
                "fps": _fps(representation.get("frameRate") or chosen.get("frameRate") or "25"),
                "sizes": sizes,
            }
        )
    if len(lengths) > 1:
        raise read.refuse(f"its representations have segments of {sorted(lengths)[:5]} s: one length is read")
    count = min((len(level["sizes"]) for level in levels), default=0)  # type: ignore[arg-type]
    for level in levels:  # the last segment of some may be missing
        level["sizes"] = level["sizes"][:count]  # type: ignore[index]
    document = {
        "title": " ".join((read.root.findtext("ProgramInformation/Title") or read.path.stem).split())[:200],
        "made_by": made_by,
        "segment_s": lengths.pop() if lengths else 0.0,
        "levels": sorted(levels, key=lambda level: float(str(level["kbps"]))),
    }
    return checked(Video, document, str(read.path))


def _only_mpd(folder: Path) -> Path:
    found = sorted(folder.glob("*.mpd"))
    if len(found) != 1:
        raise Refusal(f"{folder}: has {len(found)} files *.mpd: name one of them")
    return found[0]


def _is_video(adaptation: Element) -> bool:
    kinds = [adaptation.get("contentType"), adaptation.get("mimeType")]
    kinds += [each.get("mimeType") for each in adaptation.findall("Representation")]
    return any(kind and kind.startswith("video") for kind in kinds)


def _sizes(
    read: _Presentation, chosen: Element, representation: Element, base: str, length_s: float
) -> tuple[list[int], float]:
    """The bytes of each segment of a representation, and how long one takes."""
    base += (representation.findtext("BaseURL") or "").strip()
    for name, sizes in (("SegmentTemplate", _of_template), ("SegmentList", _of_list)):
        own, of_set = representation.find(name), chosen.find(name)
        if own is not None or of_set is not None:
            attributes = {
                **(of_set.attrib if of_set is not None else {}),
                **(own.attrib if own is not None else {}),
            }
            described = own if own is not None and len(own) else of_set if of_set is not None else own
            assert described is not None
            return sizes(read, described, attributes, representation, base, length_s)
    index = representation.find("SegmentBase")
    if index is not None and index.get("indexRange"):
        return _of_index(read, base, str(index.get("indexRange")))
    raise read.refuse(
        f"representation {representation.get('id')!r}: has no SegmentTemplate, SegmentList or index"
    )


def _of_template(
    read: _Presentation,
    described: Element,
    attributes: dict[str, str],
    representation: Element,
    base: str,
    length_s: float,
) -> tuple[list[int], float]:
    media, scale = attributes.get("media"), _number(read, attributes.get("timescale", "1"))
    if media is None:
        raise read.refuse("a SegmentTemplate has no media")
    if scale <= 0:
        raise read.refuse(f"a SegmentTemplate has timescale {scale}: it must be above 0")
    segments = list(_timeline(read, described, attributes, scale, length_s))
    fields = {
        "RepresentationID": representation.get("id") or "",
        "Bandwidth": representation.get("bandwidth") or "0",
    }

    def name(segment: _Segment) -> str:
        told = {**fields, "Number": str(segment.number), "Time": str(segment.time)}
        return _FIELD.sub(lambda found: told[found[1]].zfill(int(found[2] or 0)), media).replace("$$", "$")

    return [read.size_of(base + name(segment)) for segment in segments], segments[0].duration / scale


def _timeline(
    read: _Presentation, described: Element, attributes: dict[str, str], scale: int, length_s: float
) -> Iterator[_Segment]:
    """The segments, all but the last of one length."""
    first = _number(read, attributes.get("startNumber", "1"))
    timeline = described.find("SegmentTimeline")
    if timeline is None:
        duration = _number(read, attributes.get("duration", "0"))
        if duration <= 0 or not length_s > 0:
            raise read.refuse(
                "a SegmentTemplate has neither a SegmentTimeline nor a duration, or its period none"
            )
        count = length_s * scale / duration
        if count > MOST_SEGMENTS:
            raise read.refuse(f"has {count:.0f} segments: {MOST_SEGMENTS} are the most")
        numbers = range(max(1, int(count + 0.999)))
        yield from (_Segment(first + n, n * duration, duration) for n in numbers)
        return
    number, time, usual = first, 0, 0
    for each in timeline.findall("S"):
        duration, repeats = _number(read, each.get("d", "0")), _number(read, each.get("r", "0"))
        time = _number(read, each.get("t", str(time)))
        if duration <= 0 or not 0 <= repeats < MOST_SEGMENTS or number - first + repeats >= MOST_SEGMENTS:
            raise read.refuse(f"a SegmentTimeline has d = {duration}, r = {repeats}, or too many segments")
        for _ in range(repeats + 1):
            usual = usual or duration
            yield _Segment(number, time, usual)
            number, time = number + 1, time + duration
    if number == first:
        raise read.refuse("a SegmentTimeline is empty")


def _of_list(
    read: _Presentation,
    described: Element,
    attributes: dict[str, str],
    representation: Element,  # noqa: ARG001
    base: str,
    length_s: float,  # noqa: ARG001
) -> tuple[list[int], float]:
    duration = _number(read, attributes.get("duration", "0"))
    scale = _number(read, attributes.get("timescale", "1"))
    urls = described.findall("SegmentURL")
    if duration <= 0 or scale <= 0 or not 0 < len(urls) <= MOST_SEGMENTS:
        raise read.refuse(f"a SegmentList has {len(urls)} segments of {duration} / {scale} s")
    sizes = []
    for url in urls:
        if url.get("mediaRange"):
            first, last = _range(read, str(url.get("mediaRange")))
            sizes.append(last - first + 1)
        else:
            sizes.append(read.size_of(base + (url.get("media") or "")))
    return sizes, duration / scale


def _of_index(read: _Presentation, name: str, span: str) -> tuple[list[int], float]:
    """By the box `sidx` of a file (ISO/IEC 14496-12, 8.16.3)."""
    first, last = _range(read, span)
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
    if not entries or scale == 0 or entries[0][1] == 0:
        raise read.refuse(f"{name[:80]}: its sidx has no segments")
    return [size & 0x7FFFFFFF for size, _, _ in entries], entries[0][1] / scale


def _range(read: _Presentation, span: str) -> tuple[int, int]:
    found = re.fullmatch(r"(\d{1,15})-(\d{1,15})", span)
    if found is None or int(found[2]) < int(found[1]):
        raise read.refuse(f"{span[:40]!r} is no range of bytes")
    return int(found[1]), int(found[2])


def _number(read: _Presentation, text: str) -> int:
    if not re.fullmatch(r"-?\d{1,18}", text):
        raise read.refuse(f"{text[:40]!r} is no whole number")
    return int(text)


def _integer(read: _Presentation, representation: Element, chosen: Element, name: str) -> int:
    return _number(read, representation.get(name) or chosen.get(name) or "0")


def _fps(text: str) -> float:
    """Such as 25 or 30000/1001; 0, which is refused, for anything else."""
    found = re.fullmatch(r"(\d{1,9}(?:\.\d{1,9})?)(?:/(\d{1,9}))?", text)
    return float(found[1]) / max(1.0, float(found[2] or 1)) if found else 0.0


def _seconds(text: str) -> float:
    """Of a duration of XML Schema, such as PT1H2M3.5S; 0 for anything else."""
    found = _DURATION.fullmatch(text)
    if found is None or not re.fullmatch(r"[\d.]*", found[4] or "") or (found[4] or "").count(".") > 1:
        return 0.0
    return sum(
        float(part or 0) * unit for part, unit in zip(found.groups(), (86400, 3600, 60, 1), strict=True)
    )
