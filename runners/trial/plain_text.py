"""Text that others wrote, such as standard error: what a terminal might obey is taken out as it comes in."""

REPLACEMENT = "\ufffd"
# Besides what Python calls printable. Control and format characters are not, nor halves of surrogate pairs.
_KEPT = {"\n", "\t", "\N{NO-BREAK SPACE}"}


def plain(text: str) -> str:
    """The text with a mark in place of each character that is none to read; lines stay."""
    return "".join(
        character if character.isprintable() or character in _KEPT else REPLACEMENT
        for character in text.replace("\r\n", "\n")
    )


def one_line(text: str) -> str:
    """Return the same text in one line."""
    return " ".join(plain(text).split())
