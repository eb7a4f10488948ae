"""Imports of notebooks and scripts: `fecbench.open("campaigns.sqlite")` reads a results database.

The folders of the checkout are its packages, by links in this folder: `fecbench.designs` and so on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fecbench.results import open

__all__ = ["__version__", "open"]


def __getattr__(name: str) -> Any:
    # Imported when it is asked for: a part of fecbench loads no other, and looking for a version takes long.
    if name == "open":
        from fecbench.results import open

        return open
    if name == "__version__":
        from importlib import metadata

        return metadata.version("fecbench")
    raise AttributeError(f"module 'fecbench' has no attribute {name!r}")
