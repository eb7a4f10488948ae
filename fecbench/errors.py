"""The two kinds of errors that a person reads: one line each, and the exit status of the command.

Every part raises its own kinds below these. Any other error is a mistake in fecbench and keeps its traceback.
"""


class BadInput(ValueError):
    """Wrong input: the line says where, the key, the value, and what would be right."""


class Failed(RuntimeError):
    """The input is right, and the work could not be done: the line says what failed, and why."""


BAD_INPUT, FAILED = 2, 1


def status_of(error: Exception) -> int | None:
    """The status with which an error ends the command; None for a mistake in fecbench."""
    if isinstance(error, BadInput):
        return BAD_INPUT
    return FAILED if isinstance(error, Failed | OSError) else None
