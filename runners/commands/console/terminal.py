"""Text as a terminal may be given it: without the control characters that it would obey.

Reasons, labels and what programs wrote on standard error come from outside, and an escape sequence among them
could clear the screen or rename the window of whoever reads it.

A terminal may lack a character, and a stream may be closed, as a service manager leaves it: neither is a
reason to end a campaign whose trials are done.
"""

import io
import os
import shutil
import sys
import textwrap
import traceback
import warnings
from types import TracebackType
from typing import TextIO

# The C0 and C1 controls of ISO 6429, and DEL. Line breaks and tabs only move the cursor on.
_CONTROLS = {*range(0x20), *range(0x7F, 0xA0)} - {ord("\n"), ord("\t")}
# Unicode's overrides of the direction of writing: they rearrange what stands around them.
_DIRECTIONS = {*range(0x202A, 0x202F), *range(0x2066, 0x206A)}
# Characters that no encoding has, such as a byte of a file's name that is no UTF-8: they cannot be printed.
SENTENCE_ENDS = (".", "!", "?", ":", ".)")
_SURROGATES = range(0xD800, 0xE000)
_SHOWN = {**dict.fromkeys(_CONTROLS | _DIRECTIONS), **dict.fromkeys(_SURROGATES, "\ufffd")}


def printable(text: str) -> str:
    """The text without characters that a terminal obeys; line breaks and tabs stay."""
    return text.translate(_SHOWN)


def one_line(text: str) -> str:
    """The text without control characters, and on one line."""
    return " ".join(printable(text).split())


def say(text: str) -> None:
    """Print text on standard output. On a terminal, long sentences are broken at words."""
    print(_fitted(printable(text), sys.stdout))


def say_next(text: str) -> None:
    """Print the command that comes next to a person: on a terminal alone."""
    if sys.stdout.isatty():
        say(f"next: {text}")


def _fitted(text: str, stream: TextIO) -> str:
    """Return text whose sentences end at words where a terminal would cut them; as it is for a pipe.

    Other lines stay whole, so that a command or a line of a design can be copied.
    """
    if not stream.isatty():
        return text
    columns = shutil.get_terminal_size().columns
    return "\n".join(_line(line, columns) for line in text.split("\n"))


def _line(line: str, columns: int) -> str:
    if len(line) <= columns or not line.endswith(SENTENCE_ENDS):
        return line
    indent = line[: len(line) - len(line.lstrip())]
    return textwrap.fill(
        line, columns, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
    )


def open_streams() -> None:
    """Have standard streams take all text: what their encoding lacks is replaced, what goes to a closed one
    is lost. Otherwise the next file that is opened, such as a database, would be that stream."""
    while (descriptor := os.open(os.devnull, os.O_RDWR)) <= 2:
        os.set_inheritable(descriptor, True)
    os.close(descriptor)
    for descriptor, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:
            stream = io.FileIO(descriptor, "r" if name == "stdin" else "w", closefd=False)
            buffer = io.BufferedReader(stream) if name == "stdin" else io.BufferedWriter(stream)
            setattr(sys, name, io.TextIOWrapper(buffer, encoding="utf-8", errors="replace"))
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")


def tame() -> None:
    """Have what Python itself tells on standard error be printable: warnings, and the end by a mistake."""
    warnings.showwarning = _show_warning
    sys.excepthook = _show_mistake


def _show_warning(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,  # noqa: ARG001 - the signature is Python's
    line: str | None = None,
) -> None:
    text = warnings.formatwarning(message, category, filename, lineno, line)
    print(printable(text), end="", file=sys.stderr)


def _show_mistake(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    text = "".join(traceback.format_exception(kind, error, trace))
    print(printable(text), end="", file=sys.stderr)


def note(text: str) -> None:
    """Tell on standard error, in one line, what is not the command's result."""
    print(_fitted(f"note: {one_line(text)}", sys.stderr), file=sys.stderr)
