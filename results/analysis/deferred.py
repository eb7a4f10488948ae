"""Tables that take long to compute, and that many readers do not need."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cached_property

import pandas as pd


class Deferred(Mapping[str, pd.DataFrame]):
    """Tables by name, computed when the first of them is read."""

    def __init__(self, compute: Callable[[], Mapping[str, pd.DataFrame]]) -> None:
        self._compute = compute

    @cached_property
    def _tables(self) -> Mapping[str, pd.DataFrame]:
        return self._compute()

    def __getitem__(self, name: str) -> pd.DataFrame:
        return self._tables[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._tables)

    def __len__(self) -> int:
        return len(self._tables)
