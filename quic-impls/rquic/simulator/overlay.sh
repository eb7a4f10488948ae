#!/usr/bin/env bash
# overlay.sh FOLDER: makes FOLDER/overlay.json, with which `go build -overlay` takes Go's runtime with five of its lines
# changed, and the files of _runtime.
#
# Within one instant of a simulated trial, the order in which goroutines run decides what they send. With one
# processor it is always the same, but for this:
#   - a goroutine that runs for 10 ms of real time, as any does when other programs take the CPU, loses its turn;
#   - timers of one instant fire in an order that is drawn at random, and so does select look at its cases;
#   - of more than 256 goroutines that wait, some run earlier, depending on how many ran before in the process.
# The fifth line lets memory grow with every trial.
set -euo pipefail

folder=$(realpath -m "$1")
runtime=$(go env GOROOT)/src/runtime
mkdir -p "$folder"
exec 9>"$folder/lock" && flock 9  # tests that run at once build at once
ours=$(realpath "$(dirname "$0")")/_runtime
replaced="\"$runtime/draws_in_bubble.go\": \"$ours/draws.go\", \"$runtime/associations_in_bubble.go\": \"$ours/associations.go\""

# change FILE LINE REPLACEMENT: the one line of a file of the runtime that is LINE, apart from how far it is indented.
change() {
    local file=$folder/$1
    [ -e "$file.new" ] || { cp "$runtime/$1" "$file.new"; replaced="$replaced, \"$runtime/$1\": \"$file\""; }
    LINE=$2 REPLACEMENT=$3 awk '
        { match($0, /^[ \t]*/); indented = substr($0, 1, RLENGTH); line = substr($0, RLENGTH + 1) }
        line == ENVIRON["LINE"] { print indented ENVIRON["REPLACEMENT"]; changed++; next }
        { print }
        END { exit changed != 1 }' "$file.new" > "$file.changed" || {
        echo "$(go version): $runtime/$1 has no line, or more than one, that is: $2" >&2
        echo "The simulator has to be brought up to date with this version of Go: $0" >&2
        exit 1
    }
    mv "$file.changed" "$file.new"
}

rm -f "$folder"/*.new
change proc.go 'const forcePreemptNS = 10 * 1000 * 1000 // 10ms' 'const forcePreemptNS = 1 << 60'
change proc.go 'if pp.schedtick%61 == 0 && !sched.runq.empty() {' 'if false {'
change time.go 't.rand = cheaprand()' 't.rand = drawInBubble()'
change select.go 'j := cheaprandn(uint32(norder + 1))' 'j := drawBelowInBubble(uint32(norder + 1))'
change synctest.go 'removespecial(p, _KindSpecialBubble)' 'freeAssociation(removespecial(p, _KindSpecialBubble))'
for file in "$folder"/*.new; do mv "$file" "${file%.new}"; done
echo "{\"Replace\": {$replaced}}" > "$folder/overlay.json"
