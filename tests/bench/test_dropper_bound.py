"""The bounds of the dropper's benchmark: what misses one is told."""

from bench.dropper_cost import MOST_MS, MOST_NS, missed
from bench.table import Row

EMPTY = Row("an empty program", [30.0, 31.0, 90.0])
PROMPT = Row("attach", [MOST_MS])


def test_a_verdict_at_the_bound_keeps_it_and_one_beyond_is_told() -> None:
    good, slow = Row("kept", [31.0 + MOST_NS]), Row("slow", [32.0 + MOST_NS])
    (line,) = missed([EMPTY, good, slow], PROMPT)
    assert line == "missed: dropper, slow: 26 ns more than an empty program; the bound is 25"


def test_an_attachment_beyond_the_bound_is_told() -> None:
    assert missed([EMPTY], PROMPT) == []
    assert missed([EMPTY], Row("attach", [MOST_MS + 1])) == [
        "missed: dropper, attach: 21 ms; the bound is 20"
    ]
