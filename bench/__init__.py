"""What fecbench's own parts cost, next to the kernel's. `python -m bench` prints tables; needs root."""
