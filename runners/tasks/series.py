"""The series that endpoints leave: `NAME.series.csv` in their log folders (quic-impls/contract/metrics.md).

`collect` takes the files as they are, in the trial; `table` reads one, when the trial is judged. An endpoint
is not trusted: a file may be huge, no file at all, or of any content.
"""

from __future__ import annotations

import errno
import io
import os
import re
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa

LIMIT_BYTES = 16 << 20
"""Limit of a series that no workload needs for its metrics."""
TIME_COLUMN = "t_s"
_COLUMN = re.compile(r"[a-z][a-z0-9_]{0,63}")


class SeriesError(ValueError):
    """The fault of a series in one line."""


def collect(folder: Path, limits: Mapping[str, int]) -> dict[str, bytes]:
    """Return the content of the file of each of these series, which may have so many bytes.

    Raises SeriesError for the first that is not right.
    """
    return {name: _content(folder / f"{name}.series.csv", name, limit) for name, limit in limits.items()}


def _content(path: Path, name: str, limit_bytes: int) -> bytes:
    try:
        return read_left(path, f"a series {name}", limit_bytes)
    except OSError as error:
        raise SeriesError(f"left no series {name}: {path.name}: {error.strerror}") from None


def read_left(path: Path, what: str, limit_bytes: int) -> bytes:
    """Return the content of an endpoint's file, never through a link: the endpoint could link to anything.

    Raises OSError for one that cannot be opened or is not a file, and SeriesError for one that is too large.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, "is not a file")
    with os.fdopen(descriptor, "rb") as file:
        content = file.read(limit_bytes + 1)
    if len(content) > limit_bytes:
        raise SeriesError(f"left {what} of more than {limit_bytes} bytes")
    return content


def table(name: str, content: bytes) -> pa.Table:
    """A series: columns of finite numbers, the first `t_s`. Raises SeriesError."""
    # Imported here: pyarrow takes longer to load than most trials have series.
    import pyarrow as pa
    import pyarrow.compute as pc
    from pyarrow import csv

    header = content.split(b"\n", 1)[0].decode(errors="replace").strip("\r").split(",")
    for column in header:
        if not _COLUMN.fullmatch(column):
            raise SeriesError(f"series {name}: column {column[:80]!r}: must be a name with its unit")
    if header[0] != TIME_COLUMN or len(set(header)) != len(header) or len(header) < 2:
        raise SeriesError(f"series {name}: columns {', '.join(header)}: must be {TIME_COLUMN} and others")
    try:
        read = csv.read_csv(
            io.BytesIO(content),
            convert_options=csv.ConvertOptions(
                column_types=dict.fromkeys(header, pa.float64()), null_values=[], strings_can_be_null=False
            ),
        )
    except pa.ArrowInvalid as error:
        raise SeriesError(f"series {name}: {' '.join(str(error).split())[:200]}") from None
    for column in header:
        if read.num_rows and not pc.all(pc.is_finite(read[column])).as_py():
            raise SeriesError(f"series {name}: column {column}: has a value that is not finite")
    return read
