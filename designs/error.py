"""The one exception of this package."""

from fecbench.errors import BadInput


class DesignError(BadInput):
    """Bad input to a design or its plan; `str()` is one line: where, the value, what would be right."""
