"""Makes traces of three real kinds of traffic from a seed, and reads lists of frames that an encoder left.

The numbers of the chat are those of the frame traces of a Firefox H.264 chat of 2 Mbit/s in cisco/syncodecs,
the reference code of RFC 8593: 30 frames a second, standard deviation 0.17 of the mean, the largest frame
five times the mean. Voice is Opus in frames of 20 ms; a game sends the state of its world 60 times a second.
"""

from collections.abc import Callable, Iterator
from pathlib import Path

from fecbench.runners.refusal import Refusal
from fecbench.runners.workloads.chance import Sizes
from fecbench.runners.workloads.json_file import checked
from fecbench.runners.workloads.messages import traffic
from fecbench.runners.workloads.messages.traffic import Trace

CHAT_HZ, VOICE_HZ, GAME_HZ = 30.0, 50.0, 60.0
VOICE_BYTES, GAME_BYTES = (60, 160), (60, 250)
LARGE_FRAMES = 1 / 100
"""How often the picture changes so much that its frame is a large one."""
LARGEST_LIST_BYTES = 64 * 2**20


def chat(seed: int, duration_s: float, bitrate_mbps: float, made_by: str) -> Trace:
    """Video of a person who talks: a key frame, then frames of much the same size, and rare large ones."""
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
    """What changed in a game's world: small messages of changing size."""
    draw = Sizes(seed)
    return _trace(
        f"game, seed {seed}", made_by, GAME_HZ, duration_s, lambda _: _between(GAME_BYTES, draw, 110, 0.35)
    )


def from_list(path: Path, rate_hz: float, made_by: str) -> Trace:
    """A trace of a list of frames, one a line: its last column is the size in bytes. Raises Refusal.

    Where a line has more columns, the one before the size is the frame's time in s, as in the lists of
    cisco/syncodecs; else `rate_hz` frames are a second apart. Empty lines and those with a # are left out.
    """
    messages = list(_frames(path, rate_hz))
    first_us = messages[0][0] if messages else 0
    document = {
        "title": f"frames of {_printable(path.name)}",
        "made_by": made_by,
        "messages": [[due_us - first_us, size_bytes] for due_us, size_bytes in messages],
    }
    return checked(Trace, document, str(path))


def _frames(path: Path, rate_hz: float) -> Iterator[list[int]]:
    try:
        with path.open("rb") as file:
            content = file.read(LARGEST_LIST_BYTES + 1)
    except OSError as error:
        raise Refusal(f"{path}: cannot be read: {error.strerror}") from None
    if len(content) > LARGEST_LIST_BYTES:
        raise Refusal(f"{path}: is larger than {LARGEST_LIST_BYTES} bytes")
    frames = 0
    for number, line in enumerate(content.decode(errors="replace").splitlines(), 1):
        columns = line.split()
        if not columns or columns[0].startswith("#"):
            continue
        if frames == traffic.MOST_MESSAGES:
            raise Refusal(f"{path}: has more than {traffic.MOST_MESSAGES} frames")
        where = f"{path}: line {number}"
        due_s = _number(columns[-2], where, "a time in s") if len(columns) > 1 else frames / rate_hz
        yield [round(1e6 * due_s), round(_number(columns[-1], where, "a size in bytes"))]
        frames += 1


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
