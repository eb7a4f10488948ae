"""The one exception of this package."""


class DesignError(ValueError):
    """Bad input to a design or its plan; `str()` is one line: where, the value, what would be right."""
