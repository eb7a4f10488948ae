"""Refusals are one line."""

from collections.abc import Callable

import pytest

from fecbench.runners.refusal import Refusal


def refusal_of(
    deed: Callable[..., object],
    *arguments: object,
    by: type[Exception] | tuple[type[Exception], ...] = Refusal,
) -> str:
    """The line with which a deed is refused that is done with what is given."""
    try:
        deed(*arguments)
    except by as refused:
        line = str(refused)
        assert line and "\n" not in line
        return line
    return pytest.fail(f"this was not refused: {arguments!r:.500}")
