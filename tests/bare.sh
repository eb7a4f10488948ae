#!/usr/bin/env bash
# A bare Debian 12, such as a fresh machine or a container of debian:12, and commands in it. Needs root.
#
# usage: tests/bare.sh make ROOT [PACKAGES]                    PACKAGES: names with commas between
#        tests/bare.sh in ROOT FOLDER [NAME=VALUE…] COMMAND…   as root, in namespaces of its own for mounts and processes
#
# The bare root asks the package registries that this machine asks: it gets their clients' configurations.
set -euo pipefail

make_root() {
    local root=$1 packages=${2:-} mirror path
    mkdir -p "$root"
    chmod 755 "$root"  # as every / is: endpoints run there that are not root
    mirror=$(apt-get indextargets --format '$(REPO_URI)' "Codename: bookworm" | head --lines 1)
    debootstrap --variant=minbase ${packages:+--include="$packages"} bookworm "$root" ${mirror:+"$mirror"} >"$root.log" ||
        { tail --lines 5 "$root.log" >&2; exit 1; }

    rm --force "$root/etc/apt/sources.list"  # those of this machine take its place
    # Authorities of this machine's own remain when the bare root installs ca-certificates itself.
    for path in /etc/apt /etc/pip.conf /etc/ssl/certs/ca-certificates.crt /usr/local/share/ca-certificates \
        /etc/resolv.conf /etc/hosts /root/.config/go/env /root/.config/pip /root/.cargo/config.toml; do
        [ ! -e "$path" ] || { mkdir -p "$root$(dirname "$path")" && cp -rL "$path" "$root$(dirname "$path")"; }
    done
}

# pivot_root, not chroot: what runs there makes mount namespaces of its own, and mnexec leaves a chroot.
run_inside() {
    local root=$1 folder=$2 variable
    shift 2
    local kept=(HOME=/root LANG=C.UTF-8 TERM=dumb PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin)
    while read -r variable; do kept+=("$variable"); done < <(env | grep -E '^(PIP_|GOPROXY=|GOFLAGS=|CARGO_|[a-z]+_proxy=)' || true)
    # Whoever ends this process ends all that runs there.
    exec unshare --mount --pid --fork --kill-child --propagation private bash -euc '
        mount --rbind "$1" "$1" && cd "$1"
        mount -t proc proc proc && mount --rbind /sys sys && mount --rbind /dev dev
        mkdir -p .old && pivot_root . .old && cd "$2" && umount -l /.old
        shift 2
        exec env -i "$@"' - "$root" "$folder" "${kept[@]}" "$@"
}

[ "$(id -u)" = 0 ] || { echo "$0: needs root, for a root and namespaces of its own" >&2; exit 2; }
verb=${1:-}
shift || true
case $verb in
    make) make_root "$@" ;;
    in) run_inside "$@" ;;
    *) echo "$0: '$verb': must be make or in" >&2; exit 2 ;;
esac
