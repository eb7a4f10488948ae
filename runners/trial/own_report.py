"""The own report of an endpoint of the interop contract: `fecbench.json` in its log folder, with counters
and series (quic-impls/contract/interop.md).

An endpoint is not trusted: the file may be huge, no file at all, or of any content.
"""

from collections.abc import Collection
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, FiniteFloat, ValidationError

from fecbench.complaint import complaint
from fecbench.runners.tasks.series import SeriesError, read_left
from fecbench.runners.trial.endpoint import MetricName

NAME = "fecbench.json"
LIMIT_BYTES = 16 << 20


class OwnReport(BaseModel):
    """The document."""

    model_config = ConfigDict(extra="forbid", strict=True)

    metrics: dict[MetricName, FiniteFloat] = {}
    series: dict[str, Annotated[dict[str, list[FiniteFloat]], Field(min_length=2)]] = {}
    """The columns of each series; the first column is `t_s`."""

    def tables(self, names: Collection[str]) -> dict[str, bytes]:
        """Return these series, as endpoints of our own contract write them. Raises SeriesError for a missing
        one."""
        return {name: self._table(name) for name in names}

    def _table(self, name: str) -> bytes:
        if name not in self.series:
            raise SeriesError(f"left no series {name}: {NAME} has none of that name")
        columns = self.series[name]
        if len({len(values) for values in columns.values()}) > 1:
            raise SeriesError(f"series {name}: columns {', '.join(columns)}: must be of one length")
        rows = [",".join(columns), *(",".join(map(repr, row)) for row in zip(*columns.values(), strict=True))]
        return "\n".join([*rows, ""]).encode()


def read(folder: Path) -> OwnReport:
    """Return the report in an endpoint's log folder; an empty one if there is no such file.

    Raises SeriesError for one that is not right.
    """
    try:
        content = read_left(folder / NAME, NAME, LIMIT_BYTES)
    except FileNotFoundError:
        return OwnReport()
    except OSError as error:
        raise SeriesError(f"left {NAME}, which cannot be read: {error.strerror}") from None
    try:
        return OwnReport.model_validate_json(content)
    except ValidationError as error:
        cause = " ".join(complaint(error).split())[:200]
        raise SeriesError(f"left {NAME}, which is not right: {cause}") from None
