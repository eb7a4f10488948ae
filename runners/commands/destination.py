"""Where a command writes: what `--output` and `--plot` may name, checked before anything is computed.

They mean the same everywhere. What the command wrote under this name before is replaced, and nothing else is
touched: a file is replaced; a folder is made when it is absent, and files in it that have other names stay.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from runners.refusal import Refusal


def check_file(option: str, path: Path, suffixes: Sequence[str]) -> None:
    """Raises Refusal for a file that cannot be written, and for one with another suffix."""
    *most, last = suffixes
    if path.suffix.lower() not in suffixes:
        raise Refusal(f"{option} {path}: must end with {', '.join(most)}{' or ' if most else ''}{last}")
    if path.is_dir():
        raise Refusal(f"{option} {path}: is a folder: give the name of a file")
    if not path.absolute().parent.is_dir():
        raise Refusal(f"{option} {path}: cannot be written: its folder does not exist: make it first")


def check_folder(option: str, path: Path) -> None:
    """Raises Refusal for a folder that cannot be made. It is not made yet."""
    there = next(folder for folder in (path.absolute(), *path.absolute().parents) if folder.exists())
    if not there.is_dir():
        raise Refusal(
            f"{option} {path}: cannot be made a folder: {there} is a file: give the name of a folder"
        )


@contextmanager
def writing(option: str, path: Path) -> Iterator[None]:
    """Makes an error of the file system one about this option."""
    try:
        yield
    except OSError as error:
        raise Refusal(f"{option} {path}: cannot be written: {error.strerror or error}") from error
