"""Series: tables that an endpoint left of a trial, each kept as one compressed Parquet blob.

Units stand in the names of columns: `t_s`, `congestion_window_bytes`. Refused: a column with anything but
finite numbers, two columns of one name, and data that are no Parquet.
"""

from __future__ import annotations

from collections.abc import Collection

import pyarrow as pa
import pyarrow.compute as pc

from fecbench.results.store.error import DatabaseError, UnfitRecord
from fecbench.results.store.records import SeriesTable


def of_endpoint(endpoint: str, name: str, table: pa.Table) -> SeriesTable:
    """The table as the record of a trial has it. Raises UnfitRecord for a table that `pack` refuses."""
    return SeriesTable(endpoint, name, list(table.column_names), table.num_rows, pack(table))


def pack(table: pa.Table) -> bytes:
    """The table as Parquet. Raises UnfitRecord for a table that cannot be a series."""
    from pyarrow import parquet  # takes long to load, and most commands read no series

    names = table.column_names
    for name in names:
        if names.count(name) > 1:
            raise UnfitRecord(f"column {name!r} of a series: is there twice: must be one column")
        _check_numbers(name, table[name])
    sink = pa.BufferOutputStream()
    parquet.write_table(table, sink, compression="zstd")
    packed: bytes = sink.getvalue().to_pybytes()
    return packed


def unpack(data: bytes, columns: Collection[str] | None = None) -> pa.Table:
    """The table that was packed, or those of its columns that are named.

    Raises DatabaseError for data that `pack` has not made.
    """
    from pyarrow import parquet

    try:
        file = parquet.ParquetFile(pa.BufferReader(data))
        names = file.schema_arrow.names
        return file.read([name for name in names if columns is None or name in columns])
    except (pa.ArrowException, OSError) as error:
        raise DatabaseError(f"a series cannot be read: {str(error).splitlines()[0]}") from error


def _check_numbers(name: str, column: pa.ChunkedArray) -> None:
    kind = column.type
    if not (pa.types.is_integer(kind) or pa.types.is_floating(kind)):
        raise UnfitRecord(f"column {name!r} of a series: has values of type {kind}: must be numbers")
    if column.null_count or not pc.all(pc.is_finite(column), min_count=0).as_py():
        raise UnfitRecord(f"column {name!r} of a series: must have a finite number in every row")
