"""The last value of a notebook's cell is shown as a card, and printed in a line."""

from collections.abc import Callable
from html.parser import HTMLParser
from itertools import product

import pytest

import fecbench
from fecbench.results.analysis.cards import VERDICT_COLORS
from fecbench.results.reading import Results
from fecbench.results.store.database import Database
from fecbench.results.store.records import CampaignInfo, TrialKey, Variant

Filled = Callable[..., tuple[Database, CampaignInfo]]
OFF, XOR = "off", '<b>xor</b> & "co"'


class Text(HTMLParser):
    """The words of a page, and its tags."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.words: list[str] = []
        self.open: list[str] = []
        self.styles: list[str] = []
        self.feed(page)
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.open.append(tag)
        self.styles += [value for name, value in attrs if name == "style" and value]

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.words.append(data)

    @property
    def said(self) -> str:
        return " ".join(self.words)


@pytest.fixture
def read(filled: Filled, sqlite: str) -> Results:
    """XOR helps at two points of three by far, and harms at the third."""
    factor = {OFF: (1.0, 1.0, 1.0), XOR: (0.5, 0.6, 1.5)}
    outcomes = {
        TrialKey(variant, "download-2000", point, repetition): (
            "ok",
            factor[variant][point] * (1 + repetition / 1000),
        )
        for variant, point, repetition in product(factor, range(3), range(8))
    }
    variants = [
        Variant(label=label, implementation="x", options={}, baseline=label == OFF) for label in factor
    ]
    points = [{"owd_ms": 10 * (i + 1)} for i in range(3)]
    filled(outcomes, variants=variants, points=points, repetitions=8, title="Does it <help>?")
    return fecbench.open(sqlite)


def test_the_card_of_a_campaign_has_question_arms_ranges_states_answer_and_what_comes_next(
    read: Results,
) -> None:
    card = Text(read["campaign-0"]._repr_html_())
    for words in (
        "Does it <help>?",
        f"{OFF}; {XOR}, compared with {OFF}",
        "owd_ms 10 ms to 30 ms",
        "48 ok of 96",
        "campaign.ratios()",
        f"campaign.paired({OFF!r}, {XOR!r})",
    ):
        assert words in card.said, words
    answer = card.words[card.words.index("helps") :]
    assert {"2", "1"} <= set(answer)
    assert [style.rpartition("color:")[2] for style in card.styles if "color:#" in style] == [
        VERDICT_COLORS["gain"],
        VERDICT_COLORS["harm"],
    ]


def test_the_card_of_a_database_lists_its_campaigns(read: Results) -> None:
    card = Text(read._repr_html_())
    assert "campaign-0" in card.words
    assert 'campaign = db["campaign-0"]' in card.said


def test_the_card_of_a_comparison_has_points_pairs_and_the_median_ratio(read: Results) -> None:
    card = Text(read["campaign-0"].paired(OFF, XOR)._repr_html_())
    assert f"{XOR} / {OFF}" in card.said
    assert card.words[card.words.index("3") :][:3] == ["3", "24", "0.60"]


def test_printed_they_are_one_line(read: Results) -> None:
    for output in (repr(read), repr(read["campaign-0"])):
        assert "campaign-0" in output
        assert len(output.splitlines()) == 1
        assert len(output) < 200
