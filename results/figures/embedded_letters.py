"""Letters that PDF files embed, found once for many files.

To find the letters of a figure among a font's 6,000 takes longer than to draw the figure. So a file embeds
the usual letters, too: most files then have the same ones, and these are kept.
"""

from __future__ import annotations

import string
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from functools import cache
from typing import Any, BinaryIO

from matplotlib import font_manager
from matplotlib.backends import _backend_pdf_ps
from matplotlib.backends._backend_pdf_ps import SubsetResults

embedding: Any = _backend_pdf_ps  # in part without types
_USUAL = f"{string.digits}{string.ascii_letters}{string.punctuation} ·×–“”≤≥∞µ◀▶"

Find = Callable[[Any, Iterable[int]], AbstractContextManager[SubsetResults]]


@dataclass(frozen=True)
class _Saved:
    """A font with few letters, as Matplotlib writes it into a file."""

    content: bytes

    def save(self, file: BinaryIO, **_: Any) -> None:
        file.write(self.content)


@contextmanager
def shared_letters() -> Iterator[None]:
    """Have PDF files embed letters that were found before, where they are the same."""
    find: Find = embedding.get_glyphs_subset

    def of_font(font: Any, letters: Iterable[int]) -> AbstractContextManager[SubsetResults]:
        return nullcontext(_letters_of(find, font, _usual(font) | frozenset(letters)))

    embedding.get_glyphs_subset = of_font
    try:
        yield
    finally:
        embedding.get_glyphs_subset = find


@cache
def _letters_of(find: Find, font: Any, letters: frozenset[int]) -> SubsetResults:
    with find(font, letters) as few:
        content = embedding.font_as_file(few.font).getvalue()
        return SubsetResults(_Saved(content), few.glyph_index_map)


@cache
def _usual(font: Any) -> frozenset[int]:
    """The places of the usual letters in a font; 0, which every font has, of one that it lacks."""
    return frozenset(map(font_manager.get_font(font).get_char_index, map(ord, _USUAL)))
