"""Processes of this machine, as /proc has them now."""

from collections.abc import Sequence
from pathlib import Path


def is_running(process: int) -> bool:
    """Whether it is there and no zombie."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def with_mark(mark: str | bytes, places: Sequence[str] = ("cmdline",)) -> dict[int, bytes]:
    """The processes that have the mark in one of these files of theirs, with what they have in the first."""
    word = mark.encode() if isinstance(mark, str) else mark
    processes = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            texts = [(folder / place).read_bytes() for place in places]
        except OSError:  # it has just ended
            continue
        if any(word in text for text in texts):
            processes[int(folder.name)] = texts[0]
    return processes


def descendants(process: int) -> list[int]:
    """The processes below one."""
    parents = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            parents[int(folder.name)] = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
        except OSError:
            continue
    below = {process}
    while more := {child for child, parent in parents.items() if parent in below} - below:
        below |= more
    return sorted(below - {process})
