"""Durations of the parts of a trial."""

import time
from collections.abc import Iterator
from contextlib import contextmanager


class Phases:
    """Seconds by the name of the part."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    @contextmanager
    def __call__(self, name: str) -> Iterator[None]:
        start_s = time.monotonic()
        try:
            yield
        finally:
            self.seconds[name] = time.monotonic() - start_s
