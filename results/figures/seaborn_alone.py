"""Seaborn without packages of SciPy that take longer to load than all else that a figure needs: estimates of
densities and trees of clusters load them."""

from fecbench.lazy import standing_aside

with standing_aside("scipy.stats", "scipy.cluster", "scipy.spatial"):
    import seaborn as sns

__all__ = ["sns"]
