"""The output of `--verbose`: each step of the harness on standard error, and the whole of an error.

Steps are told by the standard library's logging, under the names of modules, at the level INFO.
"""

import logging
import sys
import time

from fecbench.runners.commands.console.terminal import printable


class _OnStandardError(logging.Handler):
    """Prints each step with the seconds since the command began."""

    def __init__(self) -> None:
        super().__init__()
        self._begun = time.monotonic()

    def emit(self, record: logging.LogRecord) -> None:
        elapsed_s = time.monotonic() - self._begun
        print(f"{elapsed_s:8.3f} s  {printable(self.format(record))}", file=sys.stderr)


def tell(asked: bool) -> None:
    """Tell each step from now on, or none."""
    logger = logging.getLogger("fecbench")
    logger.handlers = [_OnStandardError()] if asked else []
    logger.setLevel(logging.INFO if asked else logging.WARNING)
    logger.propagate = not asked


def trace(error: Exception) -> None:
    """Tell where an error came from, if steps are told."""
    logging.getLogger(__name__).info("ended by this error", exc_info=error)
