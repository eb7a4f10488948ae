#!/bin/bash
# Run in virtual time, in the repository. Status 0: all held.
set -euo pipefail
.venv/bin/python -m tests.kernels.netem.comparison
