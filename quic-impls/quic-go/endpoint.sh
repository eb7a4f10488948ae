#!/bin/sh
# One of the two programs, as the run_endpoint.sh of their own image starts them.
if [ "$ECN" = false ]; then
    export QUIC_GO_DISABLE_ECN=true
fi
if [ "$ROLE" = server ]; then
    exec "${0%/*}/build/server" $SERVER_PARAMS
fi
exec "${0%/*}/build/client" $CLIENT_PARAMS $REQUESTS
