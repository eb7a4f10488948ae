"""Text that others wrote, such as standard error: what a terminal might obey is taken out as it comes in."""

import unicodedata

REPLACEMENT = "\ufffd"
# Control and format characters (escape codes, the direction of writing), halves of pairs, other line ends.
_UNPRINTABLE = {"Cc", "Cf", "Cs", "Zl", "Zp"}


def plain(text: str) -> str:
    """The text with a mark in place of each character that is none to read; lines and tabs stay."""
    return "".join(
        REPLACEMENT
        if unicodedata.category(character) in _UNPRINTABLE and character not in "\n\t"
        else character
        for character in text.replace("\r\n", "\n")
    )


def one_line(text: str) -> str:
    """The same in one line."""
    return " ".join(plain(text).split())
