#!/usr/bin/env bash
# Whether a fresh machine needs anything by hand: a bare Debian 12, this repository's commit cloned into it, and the
# README's two commands run there. Needs root; takes half an hour and 12 GB of TMPDIR.
#
# usage: tests/fresh.sh [COMMAND…]   by default make demo, then make test; the folder goes at the end
set -euo pipefail
cd "$(dirname "$0")/.."

root=$(mktemp -d --tmpdir fecbench-fresh-XXXXXX)
trap 'rm -rf --one-file-system "$root" "$root.log"' EXIT
tests/bare.sh make "$root" git,make,ca-certificates
git clone --quiet . "$root/root/fecbench"

inside() { tests/bare.sh in "$root" /root/fecbench "$@"; }
if [ $# -gt 0 ]; then
    inside "$@"
else
    inside make demo
    inside make test
fi
