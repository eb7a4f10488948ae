"""The pair plot of a plan: every two factors against each other, and how each one is distributed.

Each factor is drawn over the axis on which it was planned, so a logarithmic factor has a logarithmic axis and
choices stand in equal steps; the ticks show the values.
"""

from pathlib import Path

import matplotlib as mpl
import pandas as pd
import seaborn as sns
from matplotlib import pyplot as plt
from matplotlib.axis import Axis
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.ticker import MaxNLocator

from fecbench.designs.design import Design
from fecbench.designs.factor import AnyFactor, SteppedFactor
from fecbench.designs.planner import Plan
from fecbench.whole_files import replacing

CELL_INCHES = 2.0
BINS = 10
MARGIN = 0.05
MOST_VECTORS = 2000  # marks: more of them, as vectors, make a file that programs open slowly
COLOUR = "#1c3f66"  # the blue of the figures of results, safe for colour-blind readers


# A "$" in the name of a choice is a dollar sign, not the beginning of a formula.
@mpl.rc_context({"text.parse_math": False, "pdf.fonttype": 42, "svg.fonttype": "none"})
def draw_pair_plot(design: Design, plan: Plan, path: Path) -> None:
    """Draws the points into `path`, an image of the format that its suffix names.

    Raises OSError for a file that cannot be written, ValueError for a suffix that is no format.
    """
    factors = dict(design.factors.items())
    places = pd.DataFrame(
        {name: [factor.place(point[name]) for point in plan.points] for name, factor in factors.items()}
    )
    size = max(CELL_INCHES, 5.0 / len(factors))
    grid = sns.PairGrid(places, corner=True, diag_sharey=False, despine=False, height=size)
    plt.close(grid.figure)  # it is saved as a file, and not shown
    FigureCanvasAgg(grid.figure)
    grid.figure.set_layout_engine("constrained")
    pixels = len(places) * len(factors) * (len(factors) - 1) / 2 > MOST_VECTORS
    grid.map_lower(sns.scatterplot, s=10, color=COLOUR, linewidth=0, rasterized=pixels)
    grid.map_diag(sns.histplot, bins=BINS, binrange=(0, 1), color=COLOUR, alpha=0.6)
    for axes in grid.diag_axes:
        axes.set_axis_on()
        axes.yaxis.set_major_locator(MaxNLocator(3, integer=True))
        axes.set_ylabel("points")
    for row in grid.axes:  # the panels of a row, or of a column, share their ticks
        for axes in filter(None, row):
            axes.set(xlim=(-MARGIN, 1 + MARGIN), ylim=(-MARGIN, 1 + MARGIN))
            axes.tick_params(labelleft=axes in grid.axes[1:, 0], labelbottom=axes in grid.axes[-1])
    for axes, (name, factor) in zip(grid.axes[-1], factors.items(), strict=True):
        _set_ticks(axes.xaxis, factor, name)
    for axes, (name, factor) in list(zip(grid.axes[:, 0], factors.items(), strict=True))[1:]:
        _set_ticks(axes.yaxis, factor, name)
    grid.figure.suptitle(
        f"{design.name}: how do its {len(plan.points)} points fill the space of the factors?"
    )
    with replacing(path) as unfinished:
        grid.figure.savefig(unfinished, dpi=150)


def _set_ticks(axis: Axis, factor: AnyFactor, name: str) -> None:
    """The name of a factor, and ticks at some of its values."""
    places = factor.levels() if isinstance(factor, SteppedFactor) else [0.0, 0.5, 1.0]
    values = [factor.value(place) for place in places]
    axis.set_ticks(places, [f"{value:.3g}" if isinstance(value, float) else str(value) for value in values])
    axis.set_label_text(name)
