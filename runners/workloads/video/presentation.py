"""A DASH presentation in a folder: its MPD, the files beside it, and how long its period lasts.

Nothing is fetched, and no file outside of the folder is looked at.
"""

import re
from pathlib import Path
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

from fecbench.runners.refusal import Refusal

LARGEST_MPD_BYTES = 16 << 20
MOST_INDEX_BYTES = 1 << 20
_NAMESPACE = re.compile(r"^{[^}]*}")
_DURATION = re.compile(
    r"P(?:(\d+)Y)?(?:(\d+)M)?(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:(\d+(?:\.\d*)?|\.\d+)S)?)?"
)


class Presentation:
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
        """Return the bytes of a file of the presentation, by what the MPD calls it."""
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


def _only_mpd(folder: Path) -> Path:
    files = sorted(folder.glob("*.mpd"))
    if len(files) != 1:
        raise Refusal(f"{folder}: has {len(files)} files *.mpd: name one of them")
    return files[0]


def period_length_s(read: Presentation, period: Element) -> float:
    """Return the length of a period: its own, up to the next one, or the whole; 0 if it is not known."""
    if (own := period.get("duration")) is not None:
        return _seconds(read, own)
    begin_s = _seconds(read, period.get("start", "PT0S"))
    periods = read.root.findall("Period")
    following = periods[1].get("start") if len(periods) > 1 else None
    whole = following or read.root.get("mediaPresentationDuration")
    return max(0.0, _seconds(read, whole) - begin_s) if whole is not None else 0.0


def _seconds(read: Presentation, text: str) -> float:
    """Return a duration of XML Schema in seconds, such as PT1H2M3.5S."""
    match = _DURATION.fullmatch(text.strip())
    if match is None or not any(match.groups()):
        raise read.refuse(f"{text[:40]!r} is no duration such as PT1H2M3.5S")
    years, months, *parts = (float(part or 0) for part in match.groups())
    if years or months:
        raise read.refuse(f"{text[:40]!r}: years and months are no length in seconds")
    return sum(part * unit for part, unit in zip(parts, (86400, 3600, 60, 1), strict=True))


def whole_number(read: Presentation, text: str) -> int:
    if not re.fullmatch(r"-?\d{1,18}", text):
        raise read.refuse(f"{text[:40]!r} is no whole number")
    return int(text)


def byte_range(read: Presentation, span: str) -> tuple[int, int]:
    match = re.fullmatch(r"(\d{1,15})-(\d{1,15})", span)
    if match is None or int(match[2]) < int(match[1]):
        raise read.refuse(f"{span[:40]!r} is no range of bytes")
    return int(match[1]), int(match[2])
