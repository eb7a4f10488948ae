"""The pair plot of a plan: every two factors against each other, and how each one is distributed.

Each factor is drawn over the axis on which it was planned, so a logarithmic factor has a logarithmic axis and
choices stand in equal steps; the ticks show the values.
"""

from pathlib import Path

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from fecbench.designs.design import Design
from fecbench.designs.factor import AnyFactor, SteppedFactor
from fecbench.designs.planner import Plan
from fecbench.whole_files import replacing

CELL_INCHES = 2.0
BINS = 10
MARGIN = 0.05
MOST_VECTORS = 2000  # marks: as vectors, more make a file that no program opens with ease
COLOUR = "#0072b2"  # blue of the Okabe-Ito palette, made for colour-blind readers


# A "$" in the name of a choice is one, not the beginning of a formula.
@mpl.rc_context({"text.parse_math": False})
def draw_pair_plot(design: Design, plan: Plan, path: Path) -> None:
    """Draws the points into `path`, an image of the format that its suffix names.

    Raises OSError for a file that cannot be written, ValueError for a suffix that is no format.
    """
    factors = list(design.factors.items())
    columns = [[factor.place(point[name]) for point in plan.points] for name, factor in factors]
    size = max(CELL_INCHES * len(factors), 5.0)
    figure = Figure(figsize=(size, size), layout="constrained")
    FigureCanvasAgg(figure)
    figure.suptitle(f"{design.name}: how do its {len(plan.points)} points fill the space of the factors?")
    last = len(factors) - 1
    pixels = len(plan.points) * len(factors) * last / 2 > MOST_VECTORS
    for row, (below, vertical) in enumerate(factors):
        for column, (left, horizontal) in enumerate(factors[: row + 1]):
            axes: Axes = figure.add_subplot(len(factors), len(factors), row * len(factors) + column + 1)
            _set_ticks(axes.xaxis, horizontal, left if row == last else "")
            axes.set_xlim(-MARGIN, 1 + MARGIN)
            if row == column:
                _draw_distribution(axes, horizontal, columns[column])
            else:
                _set_ticks(axes.yaxis, vertical, below if column == 0 else "")
                axes.set_ylim(-MARGIN, 1 + MARGIN)
                axes.scatter(
                    columns[column], columns[row], s=10, color=COLOUR, linewidths=0, rasterized=pixels
                )
    with replacing(path) as unfinished:
        figure.savefig(unfinished, dpi=150)


def _draw_distribution(axes: Axes, factor: AnyFactor, places: list[float]) -> None:
    bins = len(factor.steps) if isinstance(factor, SteppedFactor) else BINS
    axes.hist(places, bins=bins, range=(0, 1), color=COLOUR, alpha=0.6)
    axes.yaxis.set_major_locator(MaxNLocator(3, integer=True))
    axes.yaxis.tick_right()
    axes.yaxis.set_label_position("right")
    axes.set_ylabel("points")


def _set_ticks(axis: Axis, factor: AnyFactor, name: str) -> None:
    """Ticks at some values of `factor`; only an outer axis, which has a `name`, shows them as text."""
    places = factor.levels() if isinstance(factor, SteppedFactor) else [0.0, 0.5, 1.0]
    values = [factor.value(place) for place in places]
    labels = [f"{value:.3g}" if isinstance(value, float) else str(value) for value in values]
    axis.set_ticks(places, labels if name else [""] * len(places))
    axis.set_label_text(name)
