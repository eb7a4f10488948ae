#!/bin/bash
# Run in virtual time, in the repository. Status 0: the machine has what trials need, and each trial is ok.
set -euo pipefail
.venv/bin/fecbench doctor
.venv/bin/fecbench run tests/kernels/virtual/design.toml --link wire --db /run/scratch/referee.sqlite
cp /run/scratch/referee.sqlite /run/results/
