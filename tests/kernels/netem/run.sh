#!/bin/bash
# Boots two kernels that have netem, with this repository inside, and runs backend.sh in one and comparison.sh in
# the other. Status 0: everything held.
set -euo pipefail
target=test-netem
limit_s=600
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=tests/kernels/boot.sh
source "$here/../boot.sh"
kernel=$repository/.build/netem-kernel

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
        -append "console=ttyS0 quiet panic=-1 tsc=reliable mitigations=off nokaslr INIT=$kernels/init.sh \
REPOSITORY=$repository CHECKS=$1 MODULES=$kernel/root/lib/modules RESULTS=9p" </dev/null
}

"$here/kernel.sh" "$kernel"
prove "user-mode Linux" "$here/backend.sh" \
    user_mode_linux linux.uml "$here/backend.sh" MODULES=/usr/lib/uml/modules
prove "QEMU in virtual time" "$here/comparison.sh" virtual_time "$here/comparison.sh"
echo "the netem backend holds on both kernels, $SECONDS s"
