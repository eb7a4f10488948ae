#!/bin/sh
# The noq-proto that the endpoint is built with: the published crate, pinned by its checksum, and our patches.
#
#   noq-proto.sh apply     make build/noq-proto: a git repository whose first commit is the crate, and then one
#                          commit for each patch; does nothing when that is what is there
#   noq-proto.sh refresh   make patches/ from the commits in build/noq-proto
#
# Neither throws work away: apply refuses when build/noq-proto has edits that are not in patches/, and refresh
# when it has edits that are not committed.
set -eu
cd "$(dirname "$0")"

VERSION=1.4.0
SHA256=c01a35be3ed37558c8db69554419f24eff8a63599b54f711bbe3863ec727c47d
TREE=build/noq-proto

fail() { echo "noq-proto.sh: $1" >&2; exit 1; }

in_tree() { git -C "$TREE" -c user.name=fecbench -c user.email=fecbench@localhost -c commit.gpgsign=false "$@"; }

# Cargo fetches the crate for a throw-away package that depends on it, and tells where it is.
published() {
    mkdir -p build/upstream/src
    : >build/upstream/src/lib.rs
    cat >build/upstream/Cargo.toml <<END
[package]
name = "upstream"
version = "0.0.0"
[dependencies]
noq-proto = { version = "=$VERSION", default-features = false }
[workspace]
END
    cargo metadata --quiet --format-version 1 --manifest-path build/upstream/Cargo.toml >build/upstream/metadata.json
    /usr/bin/python3 - <<END
import json, pathlib
packages = json.load(open("build/upstream/metadata.json"))["packages"]
[manifest] = [pathlib.Path(p["manifest_path"]) for p in packages if p["name"] == "noq-proto"]
registry = manifest.parents[3]
print(registry / "cache" / manifest.parts[-3] / f"{manifest.parts[-2]}.crate")
END
}

series() { cat patches/*.patch 2>/dev/null | sha256sum; }

is_committed() { [ -z "$(in_tree status --porcelain)" ]; }

# What build/noq-proto was made from, and its last commit: kept in its own .git.
state() { series; in_tree rev-parse HEAD; }

apply() {
    if [ -f "$TREE/.git/made-from" ]; then
        is_committed || fail "$TREE has edits: commit them there and run make refresh, or remove it"
        [ "$(state)" != "$(cat "$TREE/.git/made-from")" ] || return 0
        [ "$(in_tree rev-parse HEAD)" = "$(tail -n 1 "$TREE/.git/made-from")" ] ||
            fail "$TREE has commits that are not in patches/: run make refresh, or remove it"
    fi
    crate=$(published)
    echo "$SHA256  $crate" | sha256sum --check --status - || fail "$crate is not noq-proto $VERSION as published"
    rm -rf "$TREE"
    mkdir -p "$TREE"
    tar -xzf "$crate" -C "$TREE" --strip-components 1
    in_tree init --quiet --initial-branch fecbench
    in_tree config core.autocrlf false
    printf 'Cargo.lock\ntarget/\n' >"$TREE/.git/info/exclude"
    in_tree add --all
    in_tree commit --quiet --message "noq-proto $VERSION as published"
    in_tree tag published
    for patch in patches/*.patch; do
        [ -e "$patch" ] || break
        in_tree am --quiet --committer-date-is-author-date "$PWD/$patch" || fail "$patch does not apply"
    done
    state >"$TREE/.git/made-from"
}

refresh() {
    is_committed || fail "$TREE has edits that are not committed"
    rm -f patches/*.patch
    in_tree format-patch --quiet --zero-commit --no-signature --no-stat --no-renames --full-index \
        --output-directory "$PWD/patches" published..HEAD
    state >"$TREE/.git/made-from"
}

case "${1:-}" in
apply) apply ;;
refresh) refresh ;;
*) fail "usage: noq-proto.sh apply | refresh" ;;
esac
