#!/bin/bash
# Runs design.toml with the whole harness in a kernel whose clock leaps, and in process by the virtual engine, and
# compares both. Status 0: all trials are ok, and both agree.
set -euo pipefail
target=test-virtual
limit_s=900
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=tests/kernels/boot.sh
source "$here/../boot.sh"
kernel=$repository/.build/time-travel-kernel

"$kernels/time-travel.sh" "$kernel"
prove "user-mode Linux in virtual time" "$here/trials.sh" \
    user_mode_linux "$kernel/linux" "$here/trials.sh" time-travel=inf-cpu
cd "$repository"
.venv/bin/fecbench run "$here/design.toml" --engine virtual --db "$scratch/virtual.sqlite" >/dev/null
.venv/bin/python -m tests.kernels.virtual.comparison "$scratch/results/referee.sqlite" "$scratch/virtual.sqlite"
