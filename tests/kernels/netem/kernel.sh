#!/bin/bash
# Downloads Debian's kernel and unpacks it in the folder $1, nothing is installed: $1/vmlinuz, $1/initramfs,
# $1/root/lib/modules. What is there is kept.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
folder=$1
[ -e "$folder/initramfs" ] && exit

mkdir -p "$folder"
cd "$folder"
rm -rf root memory ./*.deb
apt-get update -qq
package=$(apt-cache depends linux-image-amd64 | awk '$1 == "Depends:" { print $2; exit }')
echo "downloading $package"
apt-get download -qq -o APT::Sandbox::User=root "$package" busybox-static
for archive in *.deb; do dpkg-deb --extract "$archive" root; done
rm ./*.deb
release=${package#linux-image-}
mv "root/boot/vmlinuz-$release" vmlinuz
depmod --basedir root "$release"

# What the host's root needs to be mounted; all other modules are then loaded from there.
mkdir -p memory/bin memory/dev memory/lib memory/proc memory/root
cp root/bin/busybox memory/bin/
for module in virtio_pci 9pnet_virtio 9p; do
    modprobe --dirname root --set-version "$release" --show-depends "$module"
done | awk '$1 == "insmod" && !seen[$2]++ { print $2 }' >needed
while read -r module; do
    cp "$module" memory/lib/
    echo "lib/${module##*/}"
done <needed >memory/modules
cp "$here/initramfs.sh" memory/init
(cd memory && find . | ./bin/busybox cpio -o -H newc) | gzip -1 >initramfs.partial
mv initramfs.partial initramfs
