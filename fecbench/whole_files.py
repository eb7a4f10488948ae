"""Files and folders that are whole or absent: after a kill, or on a full disk, there is what was there.

The name of an unfinished one is the same each time, so the next command writes over what a killed one left.
"""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

_UNFINISHED = ".unfinished-"


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yield a name to write to, with the suffix of `path`; the file gets the name `path` at the end.

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


@contextmanager
def filling(folder: Path) -> Iterator[Path]:
    """Yield an empty folder to write to; everything in it moves to `folder` at the end, beside what is there.

    After an error nothing was written: a folder that was absent is absent, and so are those above it.
    """
    import shutil  # takes longer to load than the rest of what becomes a simulator needs of this module

    target = folder.resolve()
    absent = [parent for parent in target.parents if not parent.exists()]
    is_new = not target.exists()
    unfinished = (target.parent if is_new else target) / f"{_UNFINISHED}{target.name}"
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.rmtree(unfinished, ignore_errors=True)
        unfinished.mkdir()
        yield unfinished
        if is_new:
            unfinished.rename(target)
        else:
            for path in sorted(unfinished.iterdir()):
                path.replace(target / path.name)
            unfinished.rmdir()
    except BaseException:
        shutil.rmtree(unfinished, ignore_errors=True)
        with suppress(OSError):
            for parent in absent:
                parent.rmdir()
        raise


def is_unfinished(path: Path) -> bool:
    """Whether it has the name of a file that is being written, or was when somebody was killed."""
    return path.name.startswith(_UNFINISHED)


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """Make an OSError name this file: the error of a full disk does not say which file was written."""
    try:
        yield
    except OSError as error:
        if error.errno is not None and error.filename is None:
            error.filename = str(path)
        raise


def write_text(path: Path, text: str) -> None:
    with replacing(path) as unfinished:
        unfinished.write_text(text, encoding="utf-8")
