"""Seaborn without packages of SciPy that take longer to load than all else that a figure needs: estimates of
densities and trees of clusters load them."""

from matplotlib.axes import Axes

from fecbench.lazy import standing_aside

with standing_aside("scipy.stats", "scipy.cluster", "scipy.spatial"):
    import seaborn as sns

__all__ = ["blank_labels", "sns"]


def blank_labels(axes: Axes) -> None:
    """Label both axes with a blank, until they have labels of ours. To label an axis without one, seaborn
    looks at each of its ticks first, which takes as long as to place the marks."""
    axes.set(xlabel=" ", ylabel=" ")
