# shellcheck shell=bash
# Sourced by run.sh of the folders here, which has set `target`, its target of make. Gives it $kernels (this folder),
# $repository, $scratch (a temporary folder), `refuse`, the machines `user_mode_linux` and `virtual_time`, and `prove`.
kernels=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
repository=$(cd "$kernels/../.." && pwd)
# A guest that hangs is ended then. Load makes a guest slow, and changes nothing else.
limit_s=3600

refuse() {
    echo "$target: $1" >&2
    exit 1
}

[ "$(uname -m)" = x86_64 ] || refuse "needs x86-64, as user-mode Linux does"
[ "$(id -u)" = 0 ] || refuse "must be root"
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
mkdir "$scratch/results"
cc -O2 -Wall -Wextra -Werror -D_GNU_SOURCE -shared -fPIC -o "$scratch/shim.so" "$kernels/xstate_shim.c"

# The kernel $1, with the checks $2 and more words for its command line. Its root is the host's, read-only. It ends with
# this script, and no process of it goes on, since it has a PID namespace of its own.
user_mode_linux() {
    TMPDIR=$scratch timeout --foreground --kill-after=5 "$limit_s" \
        setpriv --pdeathsig KILL unshare --pid --fork --kill-child=KILL \
        env LD_PRELOAD="$scratch/shim.so" \
        "$1" mem=1G uml_dir="$scratch" root=/dev/root rootfstype=hostfs rootflags=/ ro quiet \
        con=null con0=null,fd:1 init="$kernels/init.sh" \
        REPOSITORY="$repository" CHECKS="$2" RESULTS="$scratch/results" "${@:3}" </dev/null
}

# With the checks $1, where programs take no time and the clock leaps to the next timer.
virtual_time() {
    "$kernels/time-travel.sh" "$repository/.build/time-travel-kernel" || refuse "that kernel cannot be built"
    user_mode_linux "$repository/.build/time-travel-kernel/linux" "$1" time-travel=inf-cpu
}

# The name of a machine, the checks, and the function that boots it with them.
prove() {
    echo "== $1: $(basename "$2")"
    local started=$SECONDS
    rm -f "$scratch/results/status"
    "$3" "$2" || refuse "$1 ended with status $? (124: not done within $limit_s s)"
    [ -s "$scratch/results/status" ] || refuse "$1 halted without a result"
    [ "$(cat "$scratch/results/status")" = 0 ] || refuse "$(basename "$2") failed on $1"
    echo "== held, $((SECONDS - started)) s"
}
