"""Costs of fecbench's own parts, next to the kernel's. `python -m bench` prints tables; needs root."""
