"""Figures saved into a folder, each in one or more forms of file, under a name of its own.

Matplotlib is loaded with the first of them: it takes longer than the page takes to write.
"""

from __future__ import annotations

import base64
import io
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from itertools import chain, count
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from fecbench.results.figures.nothing import NothingToDraw
from fecbench.whole_files import replacing

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SUFFIXES = (".png", ".svg", ".pdf")
_DATES_AND_PROGRAMS = {
    ".png": ["Software"],
    ".svg": ["Date", "Creator"],
    ".pdf": ["CreationDate", "Creator", "Producer"],
}

# Pixels are the same. Matplotlib's default, 6, takes 1.6 times as long, for files that are an eighth smaller.
_PACKING: dict[str, Any] = {".png": {"pil_kwargs": {"compress_level": 3}}}


def save(figure: Figure, path: Path) -> None:
    """Write a PNG, SVG or PDF file, by the suffix, without a date or a program's version in it."""
    drawn = io.BytesIO()  # on a full disk, Matplotlib's PDF ends by an error of its own
    write(figure, drawn, path.suffix)
    with replacing(path) as unfinished:
        unfinished.write_bytes(drawn.getbuffer())


def write(figure: Figure, stream: BinaryIO, suffix: str) -> None:
    """Write a figure in the form that this suffix of a file's name says."""
    from fecbench.results.figures.style import style

    with (
        style(),
        _laid_out(figure) if suffix == ".png" else nullcontext(),
        _few_letters() if suffix == ".pdf" else nullcontext(),
    ):
        metadata = dict.fromkeys(_DATES_AND_PROGRAMS[suffix])
        figure.savefig(stream, format=suffix[1:], metadata=metadata, **_PACKING.get(suffix, {}))


def _few_letters() -> AbstractContextManager[None]:
    from fecbench.results.figures.embedded_letters import shared_letters  # loads what writes PDF files

    return shared_letters()


@dataclass(frozen=True)
class Drawing:
    """A figure of the page (the first of its `files` is a PNG), or the sentence that stands in its place."""

    caption: str = ""
    inline: str = ""
    """The PNG in base64; "" where the page asks a server for it."""
    files: tuple[Path, ...] = ()
    sentence: str = ""
    url: str = ""
    """Address of the PNG on a server."""

    @property
    def source(self) -> str:
        """The address of its PNG: of the server, or all of it."""
        return self.url or f"data:image/png;base64,{self.inline}"


class Folder:
    """A folder of figures, and all that were saved in it, in the forms of these `suffixes`, a PNG first.

    Raises OSError when it cannot be written.
    """

    def __init__(self, path: Path, suffixes: Sequence[str] = SUFFIXES) -> None:
        path.mkdir(parents=True, exist_ok=True)
        self.path = path
        self.files: list[Path] = []
        self.undrawn: list[str] = []
        """The names of files that were not drawn: there is nothing to draw, or they are of another form."""
        self._suffixes = tuple(suffixes)

    def draw(self, name: str, caption: str, draw: Callable[[], Figure]) -> Drawing:
        """Save a figure under this name, with a number behind it where labels have the same letters."""
        taken = {file.stem for file in self.files}
        name = next(free for free in chain([name], (f"{name}-{n}" for n in count(2))) if free not in taken)
        files = tuple(self.path / f"{name}{suffix}" for suffix in self._suffixes)
        try:
            figure = draw()
        except NothingToDraw as nothing:
            for stale in files:  # of an earlier time into the same folder
                stale.unlink(missing_ok=True)
            self.undrawn += [f"{name}{suffix}" for suffix in SUFFIXES]
            return Drawing(sentence=str(nothing))
        for file in files:
            save(figure, file)
            _keep_layout(figure)
        self.files += files
        self.undrawn += [f"{name}{suffix}" for suffix in SUFFIXES if suffix not in self._suffixes]
        return Drawing(caption, base64.b64encode(files[0].read_bytes()).decode("ascii"), files)

    def with_suffix(self, suffix: str) -> list[Path]:
        return [file for file in self.files if file.suffix == suffix]


@contextmanager
def _laid_out(figure: Figure) -> Iterator[None]:
    """Place everything as a PNG file has it. Matplotlib would draw the figure once more for that."""
    from matplotlib import rcParams
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    engine, dpi = figure.get_layout_engine(), figure.dpi
    if engine is not None:
        FigureCanvasAgg(figure)
        figure.dpi = dpi if rcParams["savefig.dpi"] == "figure" else rcParams["savefig.dpi"]
        engine.execute(figure)
        figure.dpi = dpi
        _keep_layout(figure)
    try:
        yield
    finally:
        if engine is not None:
            figure.set_layout_engine(engine)


def _keep_layout(figure: Figure) -> None:
    """Leave everything where the first file has it: layout costs as much as drawing.

    The layout engine "none" would still have Matplotlib draw each file twice."""
    from matplotlib import rc_context

    with rc_context({"figure.autolayout": False, "figure.constrained_layout.use": False}):
        figure.set_layout_engine(None)


def stem(label: str) -> str:
    """A label as a part of a file's name."""
    return "".join(letter if letter.isalnum() else "-" for letter in label).strip("-")
