"""The ports at which servers listen, and which the loss model judges."""

OURS = 4433
INTEROP = 443
"""Port of a trial that has an endpoint of the interop contract: its servers listen nowhere else."""
