"""Files and folders that `--output` and `--plot` may name, checked before anything is computed.

They mean the same everywhere. Files that the command wrote under this name before are replaced, and nothing
else is touched: a file is replaced; a folder is made when it is absent, and files in it that have other names
stay.
"""

import json
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from fecbench.runners import scratch
from fecbench.runners.commands.console import arguments
from fecbench.runners.refusal import Refusal
from fecbench.whole_files import is_unfinished, write_text


def check_file(option: str, path: Path, suffixes: Sequence[str]) -> None:
    """Raises Refusal for a file that cannot be written, and for one with another suffix."""
    *most, last = suffixes
    if path.suffix.lower() not in suffixes:
        raise Refusal(f"{option} {path}: must end with {', '.join(most)}{' or ' if most else ''}{last}")
    if path.is_dir():
        raise Refusal(f"{option} {path}: is a folder: give the name of a file")
    if not path.absolute().parent.is_dir():
        raise Refusal(f"{option} {path}: cannot be written: its folder does not exist: make it first")


def checked_plot(path: Path, trial: int) -> Path:
    """The file of a trial's figure: the one that is named, or one named after the trial. Raises Refusal."""
    plot = Path(f"trial-{trial}.png") if path == arguments.UNNAMED else path
    check_file("--plot", plot, arguments.DRAWN)
    return plot


def check_folder(option: str, path: Path) -> None:
    """Raises Refusal for a folder that cannot be made. It is not made yet."""
    there = next(folder for folder in (path.absolute(), *path.absolute().parents) if folder.exists())
    if not there.is_dir():
        raise Refusal(
            f"{option} {path}: cannot be made a folder: {there} is a file: give the name of a folder"
        )


def check_own_folder(option: str, path: Path, report: str) -> None:
    """Raises Refusal as `check_folder` does, and for a folder that holds files but not the report that the
    command leaves beside its artefacts: a folder of somebody else's. Beginnings of a killed command are not.
    """
    check_folder(option, path)
    of_others = path.is_dir() and not all(map(_was_begun, path.iterdir()))
    if of_others and not (path / report).is_file():
        raise Refusal(f"{option} {path}: holds other files, and no {report}: give the name of a new folder")
    _artefacts(path / report)


def _was_begun(path: Path) -> bool:
    """Whether it is what a command has while it runs, and leaves when it is killed."""
    return scratch.is_named(path) or is_unfinished(path)


def fill_own_folder(path: Path, source: Path, report: str, document: Mapping[str, object]) -> None:
    """Move all that is in `source`, if it exists, into the folder, in the place of what was moved before.

    The report has the document, and `artefacts`: the names of what was moved. It has them before anything is
    moved, so that whoever is killed leaves nothing that the next one does not take for the command's.
    """
    moved = sorted(source.iterdir()) if source.is_dir() else []
    names = [artefact.name for artefact in moved]
    earlier = _artefacts(path / report)
    _write_report(path / report, document, sorted({*earlier, *names}))
    for name in earlier:
        if (path / name).is_dir():
            shutil.rmtree(path / name)
        else:
            (path / name).unlink(missing_ok=True)
    for artefact in moved:
        shutil.move(artefact, path / artefact.name)  # temporary files may lie on another disk
    _write_report(path / report, document, names)


def _write_report(report: Path, document: Mapping[str, object], names: Sequence[str]) -> None:
    write_text(report, json.dumps({**document, "artefacts": names}, indent=1) + "\n")


def _artefacts(report: Path) -> list[str]:
    """The names in a report that an earlier run left, if there is one. Raises Refusal for another file."""
    try:
        names = json.loads(report.read_text(encoding="utf-8"))["artefacts"]
    except FileNotFoundError:
        return []
    except (ValueError, KeyError, TypeError):
        names = None
    # Whatever bears one of them is removed: they must not lead out of the folder.
    if not isinstance(names, list) or not all(map(_is_name, names)):
        raise Refusal(f"{report}: no command wrote this: give the name of a new folder")
    return names


def _is_name(name: object) -> bool:
    return isinstance(name, str) and name not in ("", ".", "..") and "/" not in name


@contextmanager
def writing(option: str, path: Path) -> Iterator[None]:
    """Makes an error of the file system one about this option."""
    try:
        yield
    except OSError as error:
        raise Refusal(f"{option} {path}: cannot be written: {error.strerror or error}") from error
