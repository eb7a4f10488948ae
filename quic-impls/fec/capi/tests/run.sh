#!/bin/bash
# run.sh PREFIX: builds the programs in C with what is installed below PREFIX, as pkg-config says, and runs them.
set -euo pipefail
prefix=$1
here=$(dirname "$0")/..
export PKG_CONFIG_PATH=$prefix/lib/pkgconfig LD_LIBRARY_PATH=$prefix/lib
flags="-Wall -Wextra -Wpedantic -Werror -O1 -g $(pkg-config --cflags fec)"
built=$prefix/bin
mkdir -p "$built"

# Sanitizers see what the program in C gets: what is written beyond a buffer, or is never freed.
gcc -std=gnu11 $flags -fsanitize=address,undefined -fno-sanitize-recover "$here/tests/laws.c" $(pkg-config --libs fec) -o "$built/laws"
gcc -std=gnu11 $flags "$here/tests/laws.c" -Wl,-Bstatic $(pkg-config --libs fec) -Wl,-Bdynamic $(pkg-config --libs --static fec | sed 's/-lfec//') \
    -o "$built/laws-static"
gcc -std=gnu11 $flags "$here/examples/datagrams.c" $(pkg-config --libs fec) -o "$built/datagrams"
if command -v g++ >/dev/null; then
    echo '#include <fec.h>' | g++ -std=c++17 $flags -fsyntax-only -x c++ -
fi

needs() {
    readelf --dynamic "$1" | grep 'NEEDED.*libfec.so.0' >/dev/null
}
needs "$built/laws" || { echo "laws does not load libfec.so.0" >&2; exit 1; }
! needs "$built/laws-static" || { echo "laws-static loads libfec.so.0" >&2; exit 1; }

"$built/laws"
env --unset=LD_LIBRARY_PATH "$built/laws-static"

# messages LOSS SEED: how many arrive complete, without what was recovered and with it.
messages() {
    "$built/datagrams" "$@" | awk '$1 == "complete" { printf "%s ", $2 } END { print "" }'
}
read -r without with < <(messages 0 1)
((without == 500 && with == 500)) || { echo "no loss: $without and $with of 500 messages are complete" >&2; exit 1; }
# 0.95 to the power of 10 is 59.9 % of messages, give or take 2.2 %; `safe` wants 98 %.
for seed in 1 2 3; do
    read -r without with < <(messages 0.05 $seed)
    ((without > 250 && without < 350 && with >= 485)) ||
        { echo "seed $seed: $without and $with of 500 messages are complete" >&2; exit 1; }
done
! "$built/datagrams" 1.5 2>/dev/null || { echo "a loss of 1.5 is taken" >&2; exit 1; }
