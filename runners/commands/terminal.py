"""Text as a terminal may be given it: without the control characters that it would obey.

Reasons, labels and what programs wrote on standard error come from outside, and an escape sequence among them
could clear the screen or rename the window of whoever reads it.
"""

import sys

# The C0 and C1 controls of ISO 6429, and DEL. Line breaks and tabs only move the cursor on.
_CONTROLS = dict.fromkeys({*range(0x20), *range(0x7F, 0xA0)} - {ord("\n"), ord("\t")})


def printable(text: str) -> str:
    """The text without control characters; line breaks and tabs stay."""
    return text.translate(_CONTROLS)


def one_line(text: str) -> str:
    """The text without control characters, and on one line."""
    return " ".join(printable(text).split())


def say(text: str) -> None:
    """Print text on standard output."""
    print(printable(text))


def note(text: str) -> None:
    """Tell on standard error, in one line, what is not the command's result."""
    print("note:", one_line(text), file=sys.stderr)
