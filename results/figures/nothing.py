"""The error of a figure whose campaign lacks what it shows."""


class NothingToDraw(ValueError):
    """Says in one sentence what a campaign lacks for a figure."""
