"""A figure is laid out for its first file, and drawn once more for each other."""

from __future__ import annotations

from pathlib import Path

import pytest
from matplotlib.figure import Figure

from fecbench.results.figures.saving import SUFFIXES, Folder
from fecbench.results.figures.style import style


def test_the_second_and_the_third_file_cost_a_drawing_each_and_no_layout(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawings = []

    def draw(figure: Figure, renderer: object, drawing: object = Figure.draw) -> None:
        drawings.append(figure.get_layout_engine())
        drawing(figure, renderer)  # type: ignore[operator]

    monkeypatch.setattr(Figure, "draw", draw)

    def figure() -> Figure:
        with style():
            drawing = Figure()
            drawing.subplots(1, 2)
        return drawing

    Folder(tmp_path).draw("panels", "Two panels.", figure)
    _, *others = drawings  # the first lays out
    assert len(others) == len(SUFFIXES)
    assert others[1:] == [None] * (len(SUFFIXES) - 1)
