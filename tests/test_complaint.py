"""Refusals of values are worded in one place, `fecbench.complaint`."""

import re

import pytest

from fecbench.checkout import REPOSITORY
from fecbench.complaint import wrong_value
from tests.support.modules import MODULES

WORDED = re.compile(r" = \{[^{}]*!r\}: must be|!r\}; it must be|Input should be|Value error")


@pytest.mark.parametrize(
    ("value", "line"),
    [
        (-1, "owd_ms = -1: must be a number"),
        ("5", "owd_ms = '5': must be a number"),
        (True, "owd_ms = true: must be a number"),
        ("x" * 100, f"owd_ms = '{'x' * 56}...: must be a number"),
    ],
    ids=["number", "text", "truth", "long"],
)
def test_a_refused_value_stands_as_in_a_design_and_is_short(value: object, line: str) -> None:
    assert wrong_value("owd_ms", value, "a number") == line


def test_no_other_module_words_the_refusal_of_a_value() -> None:
    files = {path for path in MODULES.values() if path != REPOSITORY / "fecbench" / "complaint.py"}
    assert [path.name for path in files if WORDED.search(path.read_text())] == []
