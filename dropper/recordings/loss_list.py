"""A list of losses: 0 for each packet that came and 1 for each that was lost."""

from pathlib import Path

import numpy as np

from fecbench.dropper.recordings.recording import MOST_PACKETS, Recording
from fecbench.errors import BadInput
from fecbench.quantities import counted
from fecbench.unpacking import content_of

_ALLOWED = str.maketrans("", "", "01")


def read(path: Path) -> Recording:
    """Return the losses of a list. Raises BadInput, which names the file and the line."""
    try:
        text = content_of(path, 4 * MOST_PACKETS).decode("utf-8-sig")
    except UnicodeDecodeError:
        raise BadInput(f"{path}: is no text") from None
    for number, line in enumerate(text.splitlines(), start=1):
        for word in line.replace(",", " ").split():
            if wrong := word.translate(_ALLOWED):
                raise BadInput(
                    f"{path}: line {number}: {wrong[:20]!r}: must be 0 (it came) or 1 (it was lost), without"
                    " a heading and numbers of packets"
                )
    digits = "".join(text.split()).replace(",", "")
    if not digits:
        raise BadInput(f"{path}: is empty")
    lost = np.frombuffer(digits.encode(), np.uint8) == ord("1")
    count = int(lost.sum())
    doubt = (
        f"{count:,} of {counted(lost.size, 'packet')} were lost, more than came: does a 1 mean that a"
        " packet came?"
    )
    return Recording(lost, notes=(doubt,) if 2 * count > lost.size else ())
