"""A map of what to take shows where something gains, and how sure that is."""

import pandas as pd
from matplotlib.figure import Figure
from matplotlib.text import Text

from fecbench.results import figures

LOSSES = [pd.Interval(0.001, 0.01, closed="left"), pd.Interval(0.01, 0.1, closed="left")]
DELAYS = [pd.Interval(10, 50, closed="left"), pd.Interval(50, 300, closed="left")]
VARIANTS = ["no FEC", "XOR", "RLC"]


def planted(table: pd.DataFrame, **columns: object) -> pd.DataFrame:
    """Return the table of `choices` for cells in which all went well, except for these columns."""
    usual = {"points": 20, "unknown": 0, "dropped": 0, "halves_agree": True, "margin": 0.02}
    return table.assign(**(usual | {"timed_out": [()] * len(table)} | columns))


def texts_in(figure: Figure) -> list[Text]:
    """Return the texts of the first panel's cells that have some, row by row from below."""
    return [text for text in figure.axes[0].texts if text.get_text()]


def said_of(figure: Figure) -> str:
    return " ".join(" ".join(text.get_text() for text in figure.texts).split())


def test_cells_with_a_gain_have_its_colour_and_numbers_and_the_others_are_white() -> None:
    cells = [(loss, delay) for loss in LOSSES for delay in DELAYS]
    table = pd.DataFrame(cells, columns=["loss.p", "owd_ms"]).assign(
        panel="Cubic", variant=["no FEC", "no FEC", "RLC", "no FEC"], ratio=0.8, low=0.75, high=0.86
    )
    table = planted(table, chosen=table["variant"])
    drawing = figures.choice_map(table, VARIANTS, "loss.p", "owd_ms", "Where?", "Cells.")
    (axes,) = drawing.axes
    (text,) = texts_in(drawing)
    assert (text.get_text(), text.get_position()) == ("0.80\n0.75–0.86", (1.5, 0.5))
    (mesh,) = axes.collections
    white = [tuple(color[:3]) == (1, 1, 1) for color in mesh.get_facecolor()]
    assert white == [True, False, True, True]  # row by row, from below
    assert [label.get_text() for label in axes.get_xticklabels()] == ["0.1 %", "1 %", "10 %"]
    assert [label.get_text() for label in axes.get_yticklabels()] == ["10 ms", "50 ms", "300 ms"]
    assert [label.get_text() for label in drawing.legends[0].get_texts()] == ["no FEC", "RLC"]


def test_a_cell_that_is_open_says_so_and_by_whom() -> None:
    table = pd.DataFrame({"loss.p": LOSSES, "owd_ms": DELAYS[0]}).assign(
        panel="Cubic", variant="no FEC", ratio=float("nan"), low=float("nan"), high=float("nan")
    )
    table = planted(table, chosen=["no FEC", None], unknown=[0, 3], timed_out=[(), ("no FEC", "XOR")])
    drawing = figures.choice_map(table, VARIANTS, "loss.p", "owd_ms", "Where?", "Cells.")
    assert [text.get_text() for text in texts_in(drawing)] == ["?\n3 of 20"]
    assert "failures or timeouts in so many of the networks, of no FEC (1), XOR (1)" in said_of(drawing)


def test_the_caption_says_the_margin_and_what_each_mark_means() -> None:
    table = pd.DataFrame({"loss.p": LOSSES * 2, "owd_ms": [*DELAYS, *reversed(DELAYS)]}).assign(
        panel="Cubic", variant=["RLC", "RLC", "no FEC", "RLC"], ratio=0.8, low=0.75, high=0.86
    )
    whole = planted(table, chosen=table["variant"])
    drawing = figures.choice_map(whole, VARIANTS, "loss.p", "owd_ms", "Where?", "Cells.")
    assert "the cheapest that is at most 2 % worse than the best" in said_of(drawing)
    assert not [mark for mark in ("*", "!", "?:", "left out") if mark in said_of(drawing)]
    marked = whole.assign(
        halves_agree=[True, False, False, True],
        unknown=[0, 0, 2, 1],
        timed_out=[(), (), ("XOR",), ("XOR",)],
        dropped=[0, 3, 0, 4],
    )
    drawing = figures.choice_map(marked, VARIANTS, "loss.p", "owd_ms", "Where?", "Cells.")
    numbers = "\n0.75–0.86"
    texts = [text.get_text() for text in texts_in(drawing)]
    assert texts == [f"0.80{numbers}", f"0.80!{numbers}", "!", f"0.80*{numbers}"]
    for remark in (
        "*: the halves of the repetitions choose differently",
        "!: without those that failed or timed out there: XOR (2)",
        "7 repetitions are left out",
    ):
        assert remark in said_of(drawing)
