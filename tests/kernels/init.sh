#!/bin/bash
# The first process of a guest on the host's root: mounts, then the checks, then the end of the machine.
# The kernel's command line gives REPOSITORY; CHECKS, what is to be run there; MODULES, a folder of kernel modules, when
# it has any; and RESULTS, a folder of the host that may be written.
export PATH=/usr/sbin:/usr/bin:/sbin:/bin LANG=C.UTF-8
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mountpoint --quiet /dev || mount -t devtmpfs devtmpfs /dev
mount -t tmpfs tmpfs /run
mkdir -p /dev/pts /dev/shm /dev/net /run/scratch /run/results /run/modules/lib
mount -t devpts devpts /dev/pts
mount -t tmpfs shm /dev/shm
mount -t hostfs -o "$RESULTS" results /run/results

# The kernel asks for modules when a program needs them.
if [ -n "$MODULES" ]; then
    ln -s "$MODULES" /run/modules/lib/modules
    printf '#!/bin/sh\nexec /usr/sbin/modprobe -d /run/modules "$@"\n' >/run/modprobe
    chmod +x /run/modprobe
    echo /run/modprobe >/proc/sys/kernel/modprobe
    /run/modprobe tun
fi
[ -e /dev/net/tun ] || mknod /dev/net/tun c 10 200
ln -s /proc/self/fd /dev/fd
ln -s /proc/self/fd/0 /dev/stdin
ip link set lo up

# What endpoints are limited by, and what they may ask for.
mount -t cgroup2 cgroup2 /sys/fs/cgroup && echo "+memory +pids" >/sys/fs/cgroup/cgroup.subtree_control
sysctl --quiet net.core.rmem_max=7340032 net.core.wmem_max=7340032

export TMPDIR=/run/scratch HOME=/run/scratch PYTHONDONTWRITEBYTECODE=1
export HYPOTHESIS_STORAGE_DIRECTORY=/run/scratch/hypothesis MPLCONFIGDIR=/run/scratch
cd "$REPOSITORY" || exit
# Through a pipe: on a terminal programs would draw, with the only CPU of the guest.
"$CHECKS" 2>&1 | cat
echo "${PIPESTATUS[0]}" >/run/results/status
sync
echo o >/proc/sysrq-trigger
exec sleep infinity
