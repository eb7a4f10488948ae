"""Rows of the record as NumPy's columns: pandas takes longer to load than advice takes to find."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Rows:
    """Columns of one length, by name."""

    columns: Mapping[str, NDArray[Any]]

    @classmethod
    def of(cls, frame: pd.DataFrame) -> Self:
        """Return the rows of a frame."""
        return cls({str(name): np.asarray(frame[name]) for name in frame.columns})

    @classmethod
    def read(cls, path: Path) -> Self:
        """Return the rows of a Parquet file."""
        from pyarrow.parquet import ParquetFile  # read_table and to_numpy load pandas

        with ParquetFile(path) as file:
            table = file.read().combine_chunks()
        return cls({name: _values(table[name]) for name in table.column_names})

    def __len__(self) -> int:
        return len(next(iter(self.columns.values())))

    def __getitem__(self, name: str) -> NDArray[Any]:
        return self.columns[name]

    def at(self, places: NDArray[Any] | slice) -> Self:
        """Return the rows at these places, or those of a mask."""
        return type(self)({name: column[places] for name, column in self.columns.items()})

    def joined(self, others: Iterable[Rows]) -> Self:
        """Return these rows and, behind them, others; the columns are those of these."""
        parts: list[Rows] = [self, *others]
        return type(self)({name: np.concatenate([part[name] for part in parts]) for name in self.columns})

    def frame(self) -> pd.DataFrame:
        """Return the rows as a frame."""
        import pandas as pd

        return pd.DataFrame(dict(self.columns))


def _values(column: Any) -> NDArray[Any]:
    """Return the values of a column of one chunk; NaN for a number that is absent."""
    kind = column.type.to_pandas_dtype()
    if np.issubdtype(kind, np.number) and not column.null_count:
        return np.from_dlpack(column.chunk(0))
    return np.array(column.to_pylist(), dtype=kind)
