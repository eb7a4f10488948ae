#!/bin/bash
# Builds $1/linux, user-mode Linux whose clock leaps, from Debian's source of its kernel; nothing is installed. It is
# built anew when Debian's source or time-travel.config is another.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
folder=$1

version() { apt-cache show --no-all-versions linux-source 2>/dev/null | awk '$1 == "Version:" { print $2 }'; }
origin() { echo "linux-source $(version), time-travel.config $(sha256sum <"$here/time-travel.config")"; }

[ -n "$(version)" ] || apt-get update -qq
[ -x "$folder/linux" ] && [ "$(cat "$folder/origin")" = "$(origin)" ] && exit

rm -rf "$folder"
mkdir -p "$folder/source"
cd "$folder"
apt-get update -qq
built_from=$(origin)
package=$(apt-cache depends linux-source | awk '$1 == "Depends:" { print $2; exit }')
echo "downloading $package $(version)"
apt-get download -qq -o APT::Sandbox::User=root "$package"
dpkg-deb --fsys-tarfile "$package"_*.deb | tar --extract --to-stdout "./usr/src/$package.tar.xz" |
    tar --extract --xz --directory source --strip-components 1
rm "$package"_*.deb

echo "building user-mode Linux: some 6 minutes of CPU time"
export ARCH=um
make --silent -C source defconfig
(cd source && scripts/kconfig/merge_config.sh -m .config "$here/time-travel.config" >/dev/null)
make --silent -C source olddefconfig
python3 "$here/configuration.py" "$here/time-travel.config" source/.config
make --silent -C source -j "$(nproc)" linux
strip --output-file linux source/linux
mv source/.config configuration
rm -rf source
echo "$built_from" >origin
