#!/bin/sh
# Both programs, by the interop runner's contract. They speak HTTP/3 alone.
if [ "$TESTCASE" != http3 ]; then
    echo "unsupported test case: $TESTCASE" >&2
    exit 127
fi
if [ -n "$QLOGDIR" ]; then
    mkdir -p "$QLOGDIR"
    set -- --qlog-dir="$QLOGDIR"
fi
if [ "$ROLE" = server ]; then
    exec gtlsserver --quiet "$@" $SERVER_PARAMS --htdocs=/www '*' 443 /certs/priv.key /certs/cert.pem
fi
server=${REQUESTS#https://}
server=${server%%[:/]*}
exec gtlsclient --quiet "$@" $CLIENT_PARAMS --exit-on-all-streams-close --download=/downloads \
    "$server" 443 $REQUESTS
