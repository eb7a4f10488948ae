#!/bin/busybox sh
# The first process of the virtual machine, in its memory: makes the host's root its own, read-only. The kernel's
# command line gives INIT, the program that goes on there.
export PATH=/bin
busybox mount -t proc proc /proc
while read -r module; do busybox insmod "/$module"; done </modules
busybox mount -t 9p -o trans=virtio,version=9p2000.L,msize=524288,cache=loose,ro host /root
busybox umount /proc
exec busybox switch_root /root "$INIT"
