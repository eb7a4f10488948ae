"""The ports at which servers listen, and which the loss model judges."""

OURS = 4433
INTEROP = 443
"""Of a trial in which an endpoint of the interop contract takes part: its servers listen nowhere else."""
