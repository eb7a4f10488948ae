"""Docstrings begin with a subject, and names are nouns or verbs, but for what `tests/words.txt` counts."""

import pytest

from fecbench.checkout import REPOSITORY
from tests import words


@pytest.mark.parametrize(
    "first",
    [
        "What is measured of a trial.",
        "Of each point, the trials.",
        "Those that ended.",
        "One that ended.",
        "That which is kept.",
        "Who may run it.",
        "How many packets were lost.",
        "When the trial began.",
        "Everything that a trial needs.",
        "By path, the version.",
        "As the design has it.",
        "\n    Where it lies.",
    ],
)
def test_a_phrase_without_a_subject_is_refused(first: str) -> None:
    for text in (
        f'"""{first}"""\n',
        f'def count():\n    """{first}"""\n',
        f'class Trial:\n    lost: int\n    """{first}"""\n',
    ):
        assert [place.kind for place in words.places("a.py", text)] == ["docstrings"]


@pytest.mark.parametrize(
    "first",
    [
        "Return the verdicts of the first n packets.",
        "Whether a packet is lost.",
        "One direction of a link.",
        "Each trial's record.",
        "Slow start threshold, in bytes.",
        "Seconds.\n\nOf each point, the trials.",
        "Intervals.",
        "On-off losses.",
    ],
)
def test_a_noun_a_deed_and_whether_are_accepted(first: str) -> None:
    assert list(words.places("a.py", f'"""{first}"""\n')) == []


@pytest.mark.parametrize(
    "code",
    [
        "found = 1",
        "_FOUND = 1",
        "for each in (): pass",
        "def told(): pass",
        "class Made: pass",
        "def count(given): pass",
        "count = lambda said: 0",
        "with open('a') as kept: pass",
        "import json as known",
        "self.wanted = 1",
        "(left := 1)",
        "try: pass\nexcept OSError as seen: pass",
        "match 1:\n    case asked: pass",
        "[0 for left in ()]",
    ],
)
def test_a_binding_that_is_no_noun_is_refused(code: str) -> None:
    assert [place.kind for place in words.places("a.py", code)] == ["names"]


@pytest.mark.parametrize(
    "code", ["found_paths = 1", "found()", "a = self.told", "count(given=1)", "founded = 1"]
)
def test_other_names_and_uses_are_accepted(code: str) -> None:
    assert list(words.places("a.py", code)) == []


def test_the_counts_are_those_recorded() -> None:
    now, recorded = words.counts(), words.recorded()
    grown = [
        str(place)
        for path, numbers in now.items()
        for kind, count, most in zip(words.KINDS, numbers, recorded.get(path, (0, 0)), strict=True)
        if count > most
        for place in words.places(path, (REPOSITORY / path).read_text("utf-8"))
        if place.kind == kind
    ]
    assert not grown, "mend as many as are new:\n" + "\n".join(grown)
    assert now == recorded, f"fewer than {words.RECORD.name} counts: write it anew by `{words.COMMAND}`"
