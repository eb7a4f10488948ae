"""A figure for a paper is as wide as its column, whatever it would have liked."""

from pathlib import Path

import pytest

from fecbench.errors import BadInput
from fecbench.results.figures.paper import NAMES, caption_of, page_of, with_known_letters
from fecbench.results.figures.sheet import heading, sheet
from fecbench.results.figures.style import across, em, new_figure, on_page, style


def test_no_figure_is_wider_than_its_page_and_lengths_follow_the_letters() -> None:
    for width, expected in ((30, 3.33), (2, 2 * 8 / 12)):
        with on_page(page_of("paper", 3.33)), style():
            figure = new_figure(width, 6)
        assert figure.get_size_inches() == pytest.approx((expected, 6 * 8 / 12)), width
    assert new_figure(30, 6).get_size_inches() == pytest.approx((30, 6))


def test_fewer_panels_stand_beside_each_other_where_there_is_less_room() -> None:
    counts = {}
    for width in (3.33, 7.0):
        with on_page(page_of("paper", width)):
            counts[width] = across()
    assert counts == {3.33: 1, 7.0: 3}
    assert (across(), em()) == (3, 1.0)


def test_every_style_of_ours_is_one_column_of_letters_that_can_be_read() -> None:
    for name in NAMES:
        page = page_of(name)
        assert 3 < page.width < 3.6, name
        assert 7 <= page.settings["font.size"] <= 9, name


def test_letters_that_are_absent_are_told(tmp_path: Path) -> None:
    file = tmp_path / "x.mplstyle"
    file.write_text("font.family: serif\nfont.serif: No Such Letters, DejaVu Serif\n")
    page, absent = with_known_letters(page_of(str(file)))
    assert absent == "No Such Letters: not installed here; the letters are DejaVu Serif"
    assert page.settings["font.serif"] == ["DejaVu Serif"]
    assert with_known_letters(page_of("paper")) == (page_of("paper"), "")


def test_a_style_without_a_setting_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "empty.mplstyle"
    file.write_text("# nothing\n")
    with pytest.raises(BadInput, match="has no setting of Matplotlib"):
        page_of(str(file))


def test_a_caption_has_what_stood_above_the_panels() -> None:
    with on_page(page_of("paper", titled=False)) as page:
        with sheet(1, (5, 3)) as drawing:
            drawing.heading("Does it help?", "40 points")
        assert drawing.figure.texts == []
        assert caption_of(page, "The ratio.") == "Does it help? The ratio. (40 points)"
    with on_page(page_of("paper")) as page, style():
        figure = new_figure(5, 3)
        heading(figure, "Does it help?")
    assert [text.get_text() for text in figure.texts] == ["Does it help?", ""]
