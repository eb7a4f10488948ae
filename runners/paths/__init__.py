"""The path that a recording was made on: its round-trip time, rate and losses, each with an interval.

A module for each form of file: logs of endpoints, captures, ping, irtt, iperf3, mahimahi, lists of losses.
Values that a file does not have stay None; nothing is guessed.
"""

from fecbench.runners.paths.path import Estimate, Path, exactly
from fecbench.runners.paths.path_recording import measured

__all__ = ["Estimate", "Path", "exactly", "measured"]
