#!/bin/bash
# The first process of the guest: mounts, then the checks, then the end of the machine.
# The kernel's command line gives REPOSITORY, and RESULTS, a folder of the host that may be written.
export PATH=/usr/sbin:/usr/bin:/sbin:/bin LANG=C.UTF-8
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t tmpfs tmpfs /run
mkdir -p /dev/pts /dev/shm /dev/net /run/scratch /run/results /run/modules/lib
mount -t devpts devpts /dev/pts
mount -t tmpfs shm /dev/shm
mount -t hostfs -o "$RESULTS" results /run/results

# The kernel asks for modules when a program needs them; they lie where Debian puts those of user-mode Linux.
ln -s /usr/lib/uml/modules /run/modules/lib/modules
printf '#!/bin/sh\nexec /usr/sbin/modprobe -d /run/modules "$@"\n' >/run/modprobe
chmod +x /run/modprobe
echo /run/modprobe >/proc/sys/kernel/modprobe
# IPv6 is a module here. Loaded by the first program that asks for it, it would come after a topology has
# switched it off for the kernel that it found.
/run/modprobe -a tun ipv6
[ -e /dev/net/tun ] || mknod /dev/net/tun c 10 200
ln -s /proc/self/fd /dev/fd
ln -s /proc/self/fd/0 /dev/stdin
ip link set lo up

export TMPDIR=/run/scratch HOME=/run/scratch PYTHONDONTWRITEBYTECODE=1
export HYPOTHESIS_STORAGE_DIRECTORY=/run/scratch/hypothesis MPLCONFIGDIR=/run/scratch
cd "$REPOSITORY"
# Through a pipe: on a terminal programs would draw, with the only CPU of the guest.
tests/netem-kernel/checks.sh 2>&1 | cat
echo "${PIPESTATUS[0]}" >/run/results/status
sync
echo o >/proc/sysrq-trigger
exec sleep infinity
