"""Text of others is only text: nothing in it is a command to a terminal."""

from hypothesis import given
from hypothesis import strategies as st

from fecbench.runners.trial.plain_text import one_line, plain


@given(st.text())
def test_a_line_is_printable(text: str) -> None:
    assert one_line(text).isprintable()


@given(st.text())
def test_plain_text_keeps_its_lines_and_its_letters(text: str) -> None:
    assert plain(text).count("\n") == text.count("\n")
    assert all(character.isprintable() for character in plain(text) if character not in "\n\t\xa0")
    assert [c for c in plain(text) if c.isalnum()] == [c for c in text if c.isalnum()]
    assert plain(plain(text)) == plain(text)


MARKED: list[tuple[str, str]] = [
    ("a\x1b[31mb", "a\ufffd[31mb"),
    ("a\0b", "a\ufffdb"),
    ("a\rb", "a\ufffdb"),
    ("a\u202eb", "a\ufffdb"),
    ("a\ud800b", "a\ufffdb"),
    ("one\r\ntwo", "one\ntwo"),
    ("tab\tkept", "tab\tkept"),
    ("Größe: 5 µs", "Größe: 5 µs"),
]


def test_a_character_that_is_none_to_read_is_marked() -> None:
    for text, output in MARKED:
        assert plain(text) == output
