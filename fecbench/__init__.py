"""What notebooks and scripts import: `fecbench.open("campaigns.sqlite")` reads a results database.

The parts of fecbench are packages of their own beside this one, in the folders of the checkout.
"""

from __future__ import annotations

from typing import Any

from results import open

__all__ = ["__version__", "open"]


def __getattr__(name: str) -> Any:
    if name != "__version__":
        raise AttributeError(f"module 'fecbench' has no attribute {name!r}")
    # Imported here: to look for an installed version takes as long as all else together.
    from importlib import metadata

    return metadata.version("fecbench")
