"""Tables of measurements: the median over rounds, their spread, and the ratio to the first row."""

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from rich.console import Console
from rich.table import Table


@dataclass(frozen=True)
class Row:
    """Measurements, one a round."""

    name: str
    values: Sequence[float]

    @property
    def median(self) -> float:
        return statistics.median(self.values)


def print_table(title: str, unit: str, rows: Sequence[Row]) -> None:
    """Print a line per row; the last column is the ratio to the first row's median."""
    table = Table(title=title, title_justify="left")
    table.add_column("")
    for heading in (f"median, {unit}", "least", "most", "ratio"):
        table.add_column(heading, justify="right")
    for row in rows:
        figures = [row.median, min(row.values), max(row.values)]
        ratio = row.median / rows[0].median
        table.add_row(row.name, *(f"{figure:.1f}" for figure in figures), f"{ratio:.2f}")
    Console().print(table)
