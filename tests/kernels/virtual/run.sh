#!/bin/bash
# Runs design.toml with the whole harness in a kernel whose clock leaps, and in process by the virtual engine, and
# compares both. Status 0: all trials are ok, and both agree.
set -euo pipefail
target=test-virtual
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=tests/kernels/boot.sh
source "$here/../boot.sh"

prove "user-mode Linux in virtual time" "$here/trials.sh" virtual_time
cd "$repository"
.venv/bin/fecbench run "$here/design.toml" --engine virtual --db "$scratch/virtual.sqlite" >/dev/null
.venv/bin/python -m tests.kernels.virtual.comparison "$scratch/results/referee.sqlite" "$scratch/virtual.sqlite"
