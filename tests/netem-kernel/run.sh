#!/bin/bash
# Boots two kernels that have netem, with this repository inside, and runs backend.sh in one and comparison.sh in
# the other. Status 0: everything held.
set -euo pipefail
limit_s=600
here=$(cd "$(dirname "$0")" && pwd)
repository=$(cd "$here/../.." && pwd)
kernel=$repository/.build/netem-kernel

refuse() {
    echo "test-netem: $1" >&2
    exit 1
}

# Of both, the root is the host's, read-only. A guest ends with this script.
user_mode_linux() {
    cc -O2 -Wall -Wextra -Werror -D_GNU_SOURCE -shared -fPIC -o "$scratch/shim.so" "$here/xstate_shim.c"
    # In a PID namespace, so that no process of the guest outlives it.
    TMPDIR=$scratch timeout --foreground --kill-after=5 $limit_s \
        setpriv --pdeathsig KILL unshare --pid --fork --kill-child=KILL \
        env LD_PRELOAD="$scratch/shim.so" \
        linux.uml mem=1G uml_dir="$scratch" root=/dev/root rootfstype=hostfs rootflags=/ ro quiet \
        con=null con0=null,fd:1 init="$here/init.sh" \
        REPOSITORY="$repository" CHECKS="$1" MODULES=/usr/lib/uml/modules RESULTS="$scratch/results" </dev/null
}

# The clock of the guest counts its instructions, 1 ns each, and leaps to the next timer when nothing is to be done.
virtual_time() {
    share=security_model=none,multidevs=remap
    timeout --foreground --kill-after=5 $limit_s setpriv --pdeathsig KILL \
        qemu-system-x86_64 -accel tcg,thread=single -icount shift=0,align=off,sleep=off \
        -machine q35 -cpu max -smp 1 -m 2G -nodefaults -no-user-config -no-reboot -display none -serial stdio \
        -kernel "$kernel/vmlinuz" -initrd "$kernel/initramfs" \
        -fsdev "local,id=host,path=/,readonly=on,$share" -device virtio-9p-pci,fsdev=host,mount_tag=host \
        -fsdev "local,id=results,path=$scratch/results,$share" \
        -device virtio-9p-pci,fsdev=results,mount_tag=results \
        -append "console=ttyS0 quiet panic=-1 tsc=reliable mitigations=off nokaslr INIT=$here/init.sh \
REPOSITORY=$repository CHECKS=$1 MODULES=$kernel/root/lib/modules RESULTS=9p" </dev/null
}

# What boots, the checks, and the name of the machine.
prove() {
    echo "== $3: $(basename "$2")"
    started=$SECONDS
    rm -f "$scratch/results/status"
    "$1" "$2" || refuse "$3 ended with status $? (124: not done within $limit_s s)"
    [ -s "$scratch/results/status" ] || refuse "$3 halted without a result"
    [ "$(cat "$scratch/results/status")" = 0 ] || refuse "$(basename "$2") failed on $3"
    echo "== held, $((SECONDS - started)) s"
}

[ "$(uname -m)" = x86_64 ] || refuse "needs x86-64, as Debian's user-mode Linux does"
[ "$(id -u)" = 0 ] || refuse "must be root"
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
mkdir "$scratch/results"
"$here/kernel.sh" "$kernel"
prove user_mode_linux "$here/backend.sh" "user-mode Linux"
prove virtual_time "$here/comparison.sh" "QEMU in virtual time"
echo "the netem backend holds on both kernels, $SECONDS s"
