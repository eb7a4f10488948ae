"""Bad input to a command: one line that names what was wrong and what would be right, and exit status 2."""

from fecbench.errors import BadInput


class Refusal(BadInput):
    """The complete line for the user."""
