import io

import numpy as np
from matplotlib.figure import Figure

from fecbench.results.figures.segments import scale_at_once


def drawn(at_once: bool, suffix: str) -> bytes:
    """A figure of intervals, some of which are unknown or end at 0, in these bytes."""
    random = np.random.default_rng(1)
    low = random.lognormal(size=50)
    high = low * random.uniform(1, 2, 50)
    low[3], high[4], low[5] = 0, np.nan, np.nan
    figure = Figure(layout="constrained")
    axes = figure.subplots()
    axes.set_yscale("log")
    lines = axes.vlines(random.lognormal(size=50), low, high, alpha=0.6)
    axes.set_xscale("log")
    if at_once:
        scale_at_once(axes, lines)
    axes.set_ylim(0.1, 10)
    file = io.BytesIO()
    figure.savefig(file, format=suffix, metadata={"Date": None} if suffix == "svg" else None)
    return file.getvalue()


def test_lines_that_are_scaled_at_once_look_the_same() -> None:
    assert drawn(True, "png") == drawn(False, "png")


def test_no_lines_can_be_scaled() -> None:
    axes = Figure().subplots()
    scale_at_once(axes, axes.vlines([], [], []))
