"""Files of others, read within a limit, and unpacked where they are gzip.

Refuses, in one line that names the file, what cannot be read, is larger than the limit once it is unpacked,
is packed in another way, or is gzip that is cut off or broken.
"""

import gzip
import io
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from fecbench.errors import BadInput

_GZIP = b"\x1f\x8b"
_OTHERS = {
    b"\x28\xb5\x2f\xfd": "zstd",
    b"\xfd7zXZ\0": "xz",
    b"BZh": "bzip2",
    b"PK\x03\x04": "zip",
    b"\x04\x22\x4d\x18": "lz4",
}
_BUFFER_BYTES = 1 << 16


@contextmanager
def opened(path: Path, most_bytes: int) -> Iterator[BinaryIO]:
    """Open a file for reading; gzip is unpacked. Raises BadInput, also while it is read."""
    try:
        with path.open("rb") as file:
            start = file.read(6)
            file.seek(0)
            packed_by = next((name for magic, name in _OTHERS.items() if start.startswith(magic)), None)
            if packed_by is not None:
                raise BadInput(
                    f"{path}: is packed by {packed_by}: unpack it first; only gzip is unpacked here"
                )
            raw = gzip.GzipFile(fileobj=file) if start.startswith(_GZIP) else file
            yield io.BufferedReader(_Limited(raw, path, most_bytes), _BUFFER_BYTES)
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise BadInput(f"{path}: its gzip is cut off or broken: {error}") from None
    except OSError as error:
        raise BadInput(f"{path}: cannot be read: {error.strerror or error}") from error


def content_of(path: Path, most_bytes: int) -> bytes:
    """Return the bytes of a file; of gzip, those that it packs. Raises BadInput."""
    with opened(path, most_bytes) as file:
        return file.read()


class _Limited(io.RawIOBase):
    """A file that refuses to be longer than a limit."""

    def __init__(self, file: BinaryIO | gzip.GzipFile, path: Path, most_bytes: int) -> None:
        self._file, self._path, self._most_bytes, self._read_bytes = file, path, most_bytes, 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: bytearray | memoryview) -> int:  # type: ignore[override]
        content = self._file.read(len(buffer))
        self._read_bytes += len(content)
        if self._read_bytes > self._most_bytes:
            raise BadInput(f"{self._path}: has more than {_size(self._most_bytes)}")
        buffer[: len(content)] = content
        return len(content)


def _size(size_bytes: int) -> str:
    return f"{size_bytes >> 30} GiB" if size_bytes >= 1 << 30 else f"{size_bytes >> 20} MiB"
