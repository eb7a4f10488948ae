"""A figure is laid out for its first file, and drawn once for each. Files share letters that were found."""

import io
from pathlib import Path
from unittest.mock import Mock

import pytest
from fontTools.ttLib import TTFont
from matplotlib import font_manager
from matplotlib.backends import _backend_pdf_ps as embedding
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine

from fecbench.results.figures import embedded_letters
from fecbench.results.figures.saving import SUFFIXES, Folder, write
from fecbench.results.figures.style import style


def two_panels(title: str = "") -> Figure:
    with style():
        figure = Figure()
        figure.subplots(1, 2)[0].set_title(title, fontweight="bold")
    return figure


def test_each_file_costs_a_drawing_and_all_together_a_layout(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawings, layouts = [], []

    def draw(figure: Figure, renderer: object, drawing: object = Figure.draw) -> None:
        drawings.append(figure.get_layout_engine())
        drawing(figure, renderer)  # type: ignore[operator]

    def execute(engine: object, figure: Figure, lay_out: object = ConstrainedLayoutEngine.execute) -> None:
        layouts.append(figure.dpi)
        lay_out(engine, figure)  # type: ignore[operator]

    monkeypatch.setattr(Figure, "draw", draw)
    monkeypatch.setattr(ConstrainedLayoutEngine, "execute", execute)
    Folder(tmp_path).draw("panels", "Two panels.", two_panels)
    assert drawings == [None] * len(SUFFIXES)
    assert layouts == [150]


def test_a_png_file_is_as_matplotlib_lays_it_out_and_the_figure_can_be_laid_out_again() -> None:
    figure, other = two_panels("Which one?"), two_panels("Which one?")
    ours, theirs = io.BytesIO(), io.BytesIO()
    write(figure, ours, ".png")
    with style():
        other.savefig(theirs, format="png", metadata={"Software": None}, pil_kwargs={"compress_level": 3})
    assert ours.getvalue() == theirs.getvalue()
    assert isinstance(figure.get_layout_engine(), ConstrainedLayoutEngine)
    assert figure.dpi == other.dpi


def test_files_share_letters_and_each_letter_is_that_of_the_font(monkeypatch: pytest.MonkeyPatch) -> None:
    find = Mock(wraps=embedding.get_glyphs_subset)
    monkeypatch.setattr(embedding, "get_glyphs_subset", find)
    files = [io.BytesIO() for _ in range(3)]
    for file, title in zip(files, ["helps", "harms", "помогает"], strict=True):
        write(two_panels(title), file, ".pdf")
    # One font for titles and one for ticks; the last title has letters that are not usual.
    assert find.call_count == 3
    font = font_manager.FontPath(font_manager.findfont("DejaVu Sans"), 0)
    whole = TTFont(font)
    letters = [whole.getGlyphID(whole.getBestCmap()[ord(letter)]) for letter in "ж≤g0"]
    with embedded_letters.shared_letters(), embedding.get_glyphs_subset(font, set(letters)) as few:
        content = io.BytesIO()
        few.font.save(content, reorderTables=False)
    embedded = TTFont(content)
    for letter in letters:
        outlines = [
            tables["glyf"][tables.getGlyphName(place)].getCoordinates(tables["glyf"])[0]
            for tables, place in ((whole, letter), (embedded, few.glyph_index_map[letter]))
        ]
        assert outlines[0] == outlines[1], letter
