"""Makes traces of three real kinds of traffic from a seed, and reads lists of frames that an encoder left.

The numbers of the chat are those of the frame traces of a Firefox H.264 chat of 2 Mbit/s in cisco/syncodecs,
the reference code of RFC 8593: 30 frames a second, standard deviation 0.17 of the mean, the largest frame
five times the mean. Voice is Opus in frames of 20 ms; a game sends the state of its world 60 times a second.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from fecbench.errors import BadInput
from fecbench.runners.refusal import Refusal
from fecbench.runners.workloads.chance import Sizes
from fecbench.runners.workloads.json_file import checked
from fecbench.runners.workloads.messages import traffic
from fecbench.runners.workloads.messages.traffic import Trace
from fecbench.unpacking import content_of

CHAT_HZ, VOICE_HZ, GAME_HZ = 30.0, 50.0, 60.0
VOICE_BYTES, GAME_BYTES = (60, 160), (60, 250)
LARGE_FRAMES = 1 / 100
"""Share of frames that are large, because the picture changes so much."""
LARGEST_LIST_BYTES = 64 * 2**20
_SIZE = "a size in bytes, a whole number"
_CHOICE = "--time-column says which column has times, 0 that none has"
_OTHER_UNIT = re.compile(r"(?<![a-z])(?:ms|msec|us|usec|[µμ]s|ns|min|milli\w*|micro\w*|nano\w*)(?![a-z])")
"""A unit other than s, in the name of a column of times."""
_OF_SIZES = re.compile(r"size|byte|octet|length")
_NO_BYTES = re.compile(r"bit|(?<![a-z])[kmg]i?b(?![a-z])|kilo|mega")
"""Words in names of columns of sizes, and units other than bytes."""
_FIRST_DUE_S = 2.0
"""A column that begins above it is none of times, unless it is called so."""


def chat(seed: int, duration_s: float, bitrate_mbps: float, made_by: str) -> Trace:
    """Return video of a person who talks: a key frame, then frames of similar size, and rare large ones."""
    mean_bytes = 1e6 * bitrate_mbps / 8 / CHAT_HZ
    draw = Sizes(seed)

    def frame(number: int) -> int:
        large, factor = draw.uniform(0, 1) < LARGE_FRAMES, draw.uniform(1.4, 3.5)
        size = draw.lognormal(0.97 * mean_bytes, 0.12)
        if number == 0:
            return round(5 * mean_bytes)
        return round(size * (factor if large else 1.0))

    return _trace(f"chat at {bitrate_mbps:g} Mbit/s, seed {seed}", made_by, CHAT_HZ, duration_s, frame)


def voice(seed: int, duration_s: float, made_by: str) -> Trace:
    """Speech: small frames of changing size."""
    draw = Sizes(seed)
    return _trace(
        f"voice, seed {seed}", made_by, VOICE_HZ, duration_s, lambda _: _between(VOICE_BYTES, draw, 100, 0.2)
    )


def game(seed: int, duration_s: float, made_by: str) -> Trace:
    """Return a trace of changes of a game's world: small messages of varying size."""
    draw = Sizes(seed)
    return _trace(
        f"game, seed {seed}", made_by, GAME_HZ, duration_s, lambda _: _between(GAME_BYTES, draw, 110, 0.35)
    )


def from_list(path: Path, rate_hz: float, made_by: str, time_column: int | None = None) -> Trace:
    """A trace of a list of frames, one a line: its last column is the size in bytes. Raises Refusal.

    The lists of cisco/syncodecs begin with the names of their columns. The last must be called a size, in no
    other unit than bytes; one of them is the frame's time in s if it is called so. Without names, the column
    before the size is, if it begins at about 0 and does not fall; whole numbers alone may be those of the
    frames, and are refused. `time_column` decides
    otherwise: 1 is the first, 0 none. Without times, there are `rate_hz`
    frames a second. Comments begin with % or #.
    """
    messages = list(_frames(path, rate_hz, time_column))
    first_us = messages[0][0] if messages else 0
    document = {
        "title": f"frames of {_printable(path.name)}",
        "made_by": made_by,
        "messages": [[due_us - first_us, size_bytes] for due_us, size_bytes in messages],
    }
    return checked(Trace, document, str(path))


@dataclass(frozen=True)
class _Line:
    """A frame of a list."""

    where: str
    columns: list[str]


def _frames(path: Path, rate_hz: float, time_column: int | None) -> Iterator[list[int]]:
    names, lines = _lines(path)
    at = _times_at(path, names, lines) if time_column is None else time_column - 1
    for number, line in enumerate(lines):
        if at >= len(line.columns) - 1:
            raise Refusal(f"{line.where}: has {len(line.columns)} columns, none of them with its time")
        due_s = _number(line.columns[at], line.where, "a time in s") if at >= 0 else number / rate_hz
        size_bytes = _number(line.columns[-1], line.where, _SIZE)
        if not size_bytes.is_integer():
            raise Refusal(f"{line.where}: {_printable(line.columns[-1])!r}: must be {_SIZE}")
        yield [round(1e6 * due_s), round(size_bytes)]


def _lines(path: Path) -> tuple[list[str], list[_Line]]:
    """The names of the columns, if a comment has them, and the frames."""
    try:
        text = content_of(path, LARGEST_LIST_BYTES).decode("utf-8-sig", errors="replace")
    except BadInput as error:
        raise Refusal(str(error)) from None
    names, lines = list[str](), list[_Line]()
    for number, line in enumerate(text.splitlines(), 1):
        content, _, comment = line.partition("%")
        if "|" in comment and not names:
            names = [name.strip().lower() for name in comment.split("|")]
        columns = content.split()
        if not columns or columns[0].startswith("#"):
            continue
        if len(lines) == traffic.MOST_MESSAGES:
            raise Refusal(f"{path}: has more than {traffic.MOST_MESSAGES} frames")
        lines.append(_Line(f"{path}: line {number}", columns))
    return names, lines


def _times_at(path: Path, names: list[str], lines: list[_Line]) -> int:
    """The place of the times in a line; -1: there are none."""
    if names:
        if not _OF_SIZES.search(names[-1]) or _NO_BYTES.search(names[-1]):
            raise Refusal(f"{path}: column {_printable(names[-1])!r}: the last must be {_SIZE}")
        at = next((at for at, name in enumerate(names[:-1]) if name.startswith("time")), -1)
        if at >= 0 and _OTHER_UNIT.search(names[at]):
            raise Refusal(f"{path}: column {_printable(names[at])!r}: times must be in s; {_CHOICE}")
        return at
    if not lines or len(lines[0].columns) < 2:
        return -1
    at, before_s = len(lines[0].columns) - 2, 0.0
    for line in lines:
        if len(line.columns) != at + 2:
            raise Refusal(f"{line.where}: has {len(line.columns)} columns; the first line has {at + 2}")
        due_s = _number(line.columns[at], line.where, "a time in s")
        if due_s < before_s or (line is lines[0] and due_s > _FIRST_DUE_S):
            raise Refusal(
                f"{line.where}: {_printable(line.columns[at])!r}: must be a time in s, from about 0 on and"
                f" not falling; {_CHOICE}"
            )
        before_s = due_s
    if all(line.columns[at].isdigit() for line in lines):
        raise Refusal(
            f"{path}: column {at + 1} has whole numbers alone: times in s, or numbers of frames? {_CHOICE}"
        )
    return at


def _number(text: str, where: str, meaning: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = -1.0
    # `not <=` and not `>`: NaN fails every comparison.
    if not 0 <= number <= 1e9:
        raise Refusal(f"{where}: {_printable(text)!r}: must be {meaning}")
    return number


def _printable(text: str) -> str:
    return "".join(letter for letter in text if letter.isprintable())[:60] or "-"


def _trace(
    title: str, made_by: str, rate_hz: float, duration_s: float, size_of: Callable[[int], int]
) -> Trace:
    due = (round(1e6 * number / rate_hz) for number in range(traffic.count(rate_hz, duration_s)))
    messages = [[due_us, size_of(number)] for number, due_us in enumerate(due)]
    return Trace(title=title, made_by=made_by, messages=messages)


def _between(bounds: tuple[int, int], draw: Sizes, median: float, sigma: float) -> int:
    least, most = bounds
    return min(most, max(least, round(draw.lognormal(median, sigma))))
