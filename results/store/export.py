"""The tables of a campaign as files for other programs: CSV, or Parquet with its types.

A file appears whole or not at all. Refused: another suffix, and a folder that cannot be written.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Literal

from fecbench.errors import BadInput
from fecbench.whole_files import replacing

if TYPE_CHECKING:
    import pandas as pd

SUFFIXES = (".csv", ".parquet")
Table = Literal["trials", "points", "ratios", "summary", "targets", "metrics", "series"]
"""A row a trial, a row a point, a row a ratio of a variant to its baseline at a point, a row a (variant,
workload) with what its ratios come to, a row a latency target of live video at a point, a row a
metric of a trial, or a row of a series of a trial."""


def check(path: Path) -> None:
    """Raises BadInput when the suffix of the path is not in SUFFIXES, or its folder does not exist."""
    if path.suffix.lower() not in SUFFIXES:
        raise BadInput(f"{path}: must end with {' or '.join(SUFFIXES)}")
    if not path.absolute().parent.is_dir():
        raise BadInput(f"{path}: its folder does not exist: make it first")


def write(frame: pd.DataFrame, path: Path) -> None:
    """Write a frame as the suffix of the path says; numbers keep their last bit, and an absent value is empty
    in CSV and null in Parquet.

    Raises BadInput for a path that `check` refuses, or when the file cannot be written.
    """
    check(path)
    try:
        with replacing(path) as unfinished:
            if path.suffix.lower() == ".csv":
                frame.to_csv(unfinished, index=False)
            else:
                frame.to_parquet(unfinished, index=False)
    except OSError as error:
        raise BadInput(f"{path}: cannot be written: {error.strerror or error}") from error
