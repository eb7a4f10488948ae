#!/bin/sh
# The noq-proto that the endpoint is built with: the published crate, pinned by its checksum, and our patches.
#
#   noq-proto.sh apply     make build/noq-proto: a git repository whose first commit is the crate, and then one
#                          commit for each patch; does nothing when that is what is there. If a patch doesn't
#                          apply, the tree is left with those before it, in the midst of git am
#   noq-proto.sh refresh   make patches/ from the commits in build/noq-proto
#
# Neither throws work away: apply makes no tree anew that isn't as it has left it, and refresh puts a new series in
# the place of the old one only when it has it, of all that is in the tree.
set -eu
cd "$(dirname "$0")"

VERSION=1.4.0
SHA256=c01a35be3ed37558c8db69554419f24eff8a63599b54f711bbe3863ec727c47d
TREE=build/noq-proto
NEW=build/noq-proto.new

# Where a tree has no repository, git must not take the one that this folder is in.
export GIT_CEILING_DIRECTORIES="$PWD/build"

fail() { echo "noq-proto.sh: $1" >&2; exit 1; }

git_in() {
    folder=$1
    shift
    git -C "$folder" -c user.name=fecbench -c user.email=fecbench@localhost -c commit.gpgsign=false "$@"
}

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

# What a tree is made of.
recipe() { { echo "$SHA256" && cat patches/*.patch; } | sha256sum; }

# Notes in a tree's .git what it is made of, and the commit at which it is left.
sign() { { echo "$2" && git_in "$1" rev-parse HEAD; } >"$1/.git/made-from"; }

# Refuses a tree that is none of ours, or that has what is in no commit.
check_committed() {
    [ -f "$TREE/.git/made-from" ] || fail "$TREE was not made by noq-proto.sh apply: remove it, and run that"
    edits=$(git_in "$TREE" status --porcelain)
    [ -z "$edits" ] || fail "$TREE has edits that are not committed: commit them and run make refresh, or remove it"
}

# Refuses a tree with commits, on any branch, that are not this script's, or without some that are.
check_as_left() {
    left=$(tail -n 1 "$TREE/.git/made-from")
    head=$(git_in "$TREE" rev-parse HEAD)
    others=$(git_in "$TREE" for-each-ref --no-merged "$left" refs/heads refs/stash)
    [ "$head" = "$left" ] && [ -z "$others" ] ||
        fail "$TREE has other commits than those of patches/: run make refresh, or remove it"
}

apply() {
    if [ -e "$TREE" ]; then
        check_committed
        check_as_left
        [ "$(recipe)" != "$(head -n 1 "$TREE/.git/made-from")" ] || return 0
    fi
    [ -n "$(find patches -name '*.patch')" ] || fail "patches/ has no patches"
    crate=$(published)
    echo "$SHA256  $crate" | sha256sum --check --status - || fail "$crate is not noq-proto $VERSION as published"
    rm -rf "$NEW"
    mkdir "$NEW"
    tar -xzf "$crate" -C "$NEW" --strip-components 1
    git_in "$NEW" init --quiet --initial-branch fecbench
    git_in "$NEW" config core.autocrlf false
    printf 'Cargo.lock\ntarget/\n' >"$NEW/.git/info/exclude"
    git_in "$NEW" add --all
    git_in "$NEW" commit --quiet --message "noq-proto $VERSION as published"
    git_in "$NEW" tag published
    if git_in "$NEW" am --quiet --committer-date-is-author-date "$PWD"/patches/*.patch >/dev/null 2>&1; then
        sign "$NEW" "$(recipe)"
    else
        sign "$NEW" incomplete
    fi
    rm -rf "$TREE"
    mv "$NEW" "$TREE"
    [ "$(head -n 1 "$TREE/.git/made-from")" != incomplete ] ||
        fail "patch $(cat "$TREE/.git/rebase-apply/next") of patches/ does not apply: go on with git am in $TREE"
}

refresh() {
    check_committed
    [ ! -d "$TREE/.git/rebase-apply" ] && [ ! -d "$TREE/.git/rebase-merge" ] ||
        fail "$TREE is in the midst of git am or git rebase: end that first"
    rm -rf build/patches
    git_in "$TREE" format-patch --quiet --no-numbered --zero-commit --no-signature --no-stat --no-renames --full-index \
        --output-directory "$PWD/build/patches" published..HEAD
    [ -n "$(find build/patches -name '*.patch')" ] || fail "$TREE has no commits after the crate as published"
    rm -f patches/*.patch
    mv build/patches/*.patch patches/
    sign "$TREE" "$(recipe)"
}

case "${1:-}" in
apply) apply ;;
refresh) refresh ;;
*) fail "usage: noq-proto.sh apply | refresh" ;;
esac
