"""Bad input to a command: one line that names what was wrong and what would be right, and exit status 2."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fecbench.errors import BadInput

if TYPE_CHECKING:  # programs without pydantic raise refusals, too
    from pydantic import ValidationError


class Refusal(BadInput):
    """The complete line for the user."""


def first_problem(error: ValidationError) -> str:
    """The first problem that pydantic found, as `key.path = value: what is wrong`."""
    problem = error.errors(include_url=False, include_context=False)[0]
    where = ".".join(str(part) for part in problem["loc"]) or "document"
    if problem["type"] == "missing":
        return f"{where}: is missing"
    if problem["type"] == "value_error" and isinstance(problem["input"], dict):  # of a table as a whole
        what = problem["msg"].removeprefix("Value error, ")
        return f"{where}: {what}" if problem["loc"] else what
    return f"{where} = {problem['input']!r}: {problem['msg']}"
