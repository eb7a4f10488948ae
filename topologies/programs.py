"""The programs that `make build` makes here."""

from fecbench.checkout import REPOSITORY

WIRE = REPOSITORY / "topologies" / "wire" / "build" / "wire"
"""The emulator of a link."""

PROBER = REPOSITORY / "topologies" / "prober" / "build" / "prober"
"""Sends known traffic, to measure a link from outside."""
