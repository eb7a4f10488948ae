"""The path that a recording was made on: its round-trip time, rate and losses, each with an interval.

A module for each form of file: logs of endpoints, captures, ping, irtt, iperf3, mahimahi, lists of losses.
Values that a file does not have stay None; nothing is guessed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fecbench.lazy import names_of

if TYPE_CHECKING:
    from fecbench.runners.paths.path import LONGEST as LONGEST
    from fecbench.runners.paths.path import Estimate as Estimate
    from fecbench.runners.paths.path import Path as Path
    from fecbench.runners.paths.path import exactly as exactly
    from fecbench.runners.paths.path_recording import measured as measured

__all__, __getattr__ = names_of(__name__, __file__)
