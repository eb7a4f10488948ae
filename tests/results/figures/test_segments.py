import io

import numpy as np
from matplotlib.figure import Figure

from fecbench.results.figures.segments import vertical_lines


def drawn(as_one: bool) -> bytes:
    """A picture of intervals that do not touch; some are unknown, end at 0, or end beyond the axes."""
    random = np.random.default_rng(1)
    at, low = np.geomspace(0.1, 10, 50), random.lognormal(size=50)
    high = low * random.uniform(1, 2, 50)
    low[3], high[4], low[5], high[6] = 0, np.nan, np.nan, np.inf
    figure = Figure(layout="constrained")
    axes = figure.subplots()
    if as_one:
        vertical_lines(axes, at, low, high, color="C0", linewidth=1.5, alpha=0.6)
    else:
        axes.vlines(at, low, high, color="C0", linewidth=1.5, alpha=0.6)
    axes.set(xscale="log", yscale="log", xlim=(0.05, 20), ylim=(0.1, 10))
    file = io.BytesIO()
    figure.savefig(file, format="png")
    return file.getvalue()


def test_lines_that_are_one_look_as_lines_apart() -> None:
    assert drawn(True) == drawn(False)


def test_no_lines_can_be_drawn() -> None:
    vertical_lines(Figure().subplots(), [], [], [])
