"""Figures for a paper: as wide as a column, in the letters of a publisher, with a caption beside them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from matplotlib import font_manager
from matplotlib.figure import Figure

from fecbench.errors import BadInput
from fecbench.results.figures.saving import save
from fecbench.results.figures.style import STYLES, Page, settings_of
from fecbench.whole_files import write_text

NAMES = tuple(sorted(path.stem for path in STYLES.glob("*.mplstyle")))
"""Our styles of papers."""


def page_of(style: str, width: float | None = None, *, titled: bool = True) -> Page:
    """A page in one of our styles of papers, or in that of a file (.mplstyle): as wide as this, in inches, or
    as the style's `figure.figsize`.

    Raises BadInput for an unknown style, and for a file that cannot be read or has no setting of
    Matplotlib's.
    """
    settings = _settings(style)
    default = settings.get("figure.figsize", (3.33,))[0]
    return Page(width=width or float(default), is_fixed=True, titled=titled, settings=settings)


def _settings(style: str) -> dict[str, Any]:
    if style in NAMES:
        return settings_of(STYLES / f"{style}.mplstyle")
    file = Path(style)
    if file.suffix != ".mplstyle":
        raise BadInput(f"style {style}: must be one of {', '.join(NAMES)} or a file that ends with .mplstyle")
    try:
        settings = settings_of(file)
    except OSError as error:
        raise BadInput(f"style {style}: cannot be read: {error.strerror or error}") from None
    if not settings:
        raise BadInput(f"style {style}: has no setting of Matplotlib, such as font.size: 8")
    return settings


def with_known_letters(page: Page) -> tuple[Page, str]:
    """The page with those letters alone that this machine has, and what is absent of those that are wanted
    first; "" for nothing."""
    (family, *_) = page.settings.get("font.family", ["sans-serif"])
    name = f"font.{family}"
    wanted = page.settings.get(name, [])
    known = set(font_manager.get_font_names())
    there = [letters for letters in wanted if letters in known]
    if not wanted or there == wanted or not there:
        return page, ""
    absent = wanted[: wanted.index(there[0])]
    sentence = f"{', '.join(absent)}: not installed here; the letters are {there[0]}" if absent else ""
    return replace(page, settings={**page.settings, name: there}), sentence


def caption_of(page: Page, caption: str) -> str:
    """Return the caption of the figure that was drawn last for this page."""
    return " ".join(f"{page.question} {caption} {page.detail and f'({page.detail})'}".split())


def write(figure: Figure, path: Path, caption: str) -> Path:
    """Write a figure (PNG, SVG or PDF, by the suffix) and its caption into a file beside it: its path.

    Raises OSError where it cannot be written.
    """
    save(figure, path)
    beside = path.with_suffix(".caption.txt")
    write_text(beside, f"{caption}\n")
    return beside
