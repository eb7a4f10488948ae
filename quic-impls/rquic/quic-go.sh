#!/bin/sh
# quic-go.sh: makes build/quic-go, the quic-go that rquic is built with (see replace in go.mod): the published module, of which
# go.mod has the version and go.sum the hash, and quic-go.patch. Does nothing when that is what is there.
set -eu
cd "$(dirname "$0")"

MODULE=github.com/quic-go/quic-go
TREE=build/quic-go
NEW=build/quic-go.new
PUBLISHED=build/published.mod # go.mod as it would be without the patch

recipe=$(cat go.mod go.sum quic-go.patch | sha256sum)
if [ -e "$TREE/made-from" ] && [ "$(cat "$TREE/made-from")" = "$recipe" ]; then
    exit 0
fi
mkdir -p build
grep --invert-match --regexp='^replace ' --regexp=/host-go go.mod >"$PUBLISHED"
cp go.sum build/published.sum
go mod download -modfile="$PUBLISHED" "$MODULE"
published=$(go list -modfile="$PUBLISHED" -m -f '{{.Dir}}' "$MODULE")
rm -rf "$NEW"
cp -R "$published" "$NEW"
chmod -R u+w "$NEW"
# Where a tree has no repository, git must not take the one that this folder is in.
GIT_CEILING_DIRECTORIES="$PWD/build" git -C "$NEW" apply --whitespace=nowarn "$PWD/quic-go.patch" || {
    echo "quic-go.sh: quic-go.patch does not apply to $published" >&2
    exit 1
}
echo "$recipe" >"$NEW/made-from"
rm -rf "$TREE"
mv "$NEW" "$TREE"
