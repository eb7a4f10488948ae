#!/usr/bin/env bash
# Whether a fresh machine needs anything by hand: a bare Debian 12 in namespaces of its own, this repository's
# commit cloned into it, and the README's two commands run there. Needs root; takes half an hour and 12 GB of TMPDIR.
#
# usage: tests/fresh.sh [COMMAND…]   by default make demo, then make test; the folder goes at the end
#
# The bare root asks the package registries that this machine asks: it gets their clients' configurations.
set -euo pipefail
cd "$(dirname "$0")/.."

[ "$(id -u)" = 0 ] || { echo "make fresh: needs root, for a root and namespaces of its own" >&2; exit 2; }
root=$(mktemp -d --tmpdir fecbench-fresh-XXXXXX)
trap 'rm -rf --one-file-system "$root" "$root.log"' EXIT
chmod 755 "$root"  # as every / is: endpoints run there that are not root
mirror=$(apt-get indextargets --format '$(REPO_URI)' "Codename: bookworm" | head --lines 1)
debootstrap --variant=minbase --include=git,make,ca-certificates bookworm "$root" ${mirror:+"$mirror"} >"$root.log" ||
    { tail --lines 5 "$root.log" >&2; exit 1; }

rm --force "$root/etc/apt/sources.list"  # those of this machine take its place
for path in /etc/apt /etc/pip.conf /etc/ssl/certs/ca-certificates.crt /etc/resolv.conf /etc/hosts \
    /root/.config/go/env /root/.config/pip /root/.cargo/config.toml; do
    [ ! -e "$path" ] || { mkdir -p "$root$(dirname "$path")" && cp -rL "$path" "$root$(dirname "$path")"; }
done
git clone --quiet . "$root/root/fecbench"

kept=(HOME=/root LANG=C.UTF-8 TERM=dumb PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin)
while read -r variable; do kept+=("$variable"); done < <(env | grep -E '^(PIP_|GOPROXY=|GOFLAGS=|CARGO_|[a-z]+_proxy=)' || true)

# pivot_root, not chroot: what runs there makes mount namespaces of its own, and mnexec leaves a chroot.
inside() {
    unshare --mount --pid --fork --kill-child --propagation private bash -euc '
        mount --bind "$1" "$1" && cd "$1"; shift
        mount -t proc proc proc && mount --rbind /sys sys && mount --rbind /dev dev
        mkdir -p .old && pivot_root . .old && cd /root/fecbench && umount -l /.old
        exec env -i "$@"' - "$root" "${kept[@]}" "$@"
}
if [ $# -gt 0 ]; then
    inside "$@"
else
    inside make demo
    inside make test
fi
