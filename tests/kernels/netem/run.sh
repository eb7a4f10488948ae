#!/bin/bash
# Boots two kernels that have netem, with this repository inside, and runs backend.sh in one and comparison.sh in
# the other. Status 0: everything held.
set -euo pipefail
target=test-netem
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=tests/kernels/boot.sh
source "$here/../boot.sh"

debian() { user_mode_linux linux.uml "$1" MODULES=/usr/lib/uml/modules; }

prove "user-mode Linux" "$here/backend.sh" debian
prove "user-mode Linux in virtual time" "$here/comparison.sh" virtual_time
echo "the netem backend holds on both kernels, $SECONDS s"
