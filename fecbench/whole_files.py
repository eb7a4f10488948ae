"""Files that are whole or absent: a command that is killed, or whose disk is full, leaves what was there.

The name of an unfinished file is the same each time, so the next command writes over what a killed one left.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_UNFINISHED = ".unfinished-"


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Give a name to write to, with the suffix of `path`; what was written gets the name `path` at the end.

    A link stays one, and what it leads to is replaced. When a disk is full, an OSError does not say by itself
    which file was written. It does here.
    """
    target = path.resolve()
    unfinished = target.with_name(f"{_UNFINISHED}{target.name}")
    try:
        yield unfinished
        unfinished.replace(target)
    except BaseException as error:
        unfinished.unlink(missing_ok=True)
        if isinstance(error, OSError) and error.errno is not None and error.filename2 is None:
            error.filename = str(path)
        raise


def is_unfinished(path: Path) -> bool:
    """Whether it has the name of a file that is being written, or was when somebody was killed."""
    return path.name.startswith(_UNFINISHED)


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """Have an OSError name this file: when a disk is full, it does not say by itself what was written."""
    try:
        yield
    except OSError as error:
        if error.errno is not None and error.filename is None:
            error.filename = str(path)
        raise


def write_text(path: Path, text: str) -> None:
    with replacing(path) as unfinished:
        unfinished.write_text(text, encoding="utf-8")
