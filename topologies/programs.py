"""The programs that `make build` makes here."""

from fecbench.checkout import REPOSITORY

WIRE = REPOSITORY / "topologies" / "wire" / "build" / "wire"
"""The emulator of a link."""

CLOCK = REPOSITORY / "topologies" / "clock" / "build" / "clock"
"""The program that measures how late frames left a netem link."""

PROBER = REPOSITORY / "topologies" / "prober" / "build" / "prober"
"""Sends known traffic, to measure a link from outside."""
