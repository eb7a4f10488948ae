#!/bin/bash
# Boots user-mode Linux with this repository inside and runs checks.sh there. Status 0: everything held.
set -euo pipefail
limit_s=300
here=$(cd "$(dirname "$0")" && pwd)
repository=$(cd "$here/../.." && pwd)

refuse() {
    echo "test-netem: $1" >&2
    exit 1
}

[ "$(uname -m)" = x86_64 ] || refuse "needs x86-64, as Debian's user-mode Linux does"
[ "$(id -u)" = 0 ] || refuse "must be root"

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
mkdir "$scratch/results"
cc -O2 -Wall -Wextra -Werror -D_GNU_SOURCE -shared -fPIC -o "$scratch/shim.so" "$here/xstate_shim.c"

# In a PID namespace that ends with `timeout`, so that no process of the guest outlives it.
TMPDIR=$scratch timeout --foreground --kill-after=5 $limit_s \
    setpriv --pdeathsig KILL unshare --pid --fork --kill-child=KILL \
    env LD_PRELOAD="$scratch/shim.so" \
    linux.uml mem=1G uml_dir="$scratch" root=/dev/root rootfstype=hostfs rootflags=/ ro quiet \
    con=null con0=null,fd:1 init="$here/init.sh" REPOSITORY="$repository" RESULTS="$scratch/results" \
    </dev/null || refuse "user-mode Linux ended with status $? (124: not done within $limit_s s)"

[ -s "$scratch/results/status" ] || refuse "user-mode Linux halted without a result"
[ "$(cat "$scratch/results/status")" = 0 ] || refuse "a check failed on the kernel with netem"
