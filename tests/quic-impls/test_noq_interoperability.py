"""noq-fec and quic-go, each as client and as server: plain QUIC is what happens, FEC offered or not."""

import signal
from typing import Any

import pytest

OFFERED = [("none", "hq"), ("xor", "hq"), ("rlc", "h3")]


@pytest.mark.parametrize(("client", "server"), [("noq-fec", "rquic"), ("rquic", "noq-fec")])
def test_a_peer_without_fec_is_served_plain_quic(
    endpoints_of: Any, assignment: dict[str, Any], client: str, server: str
) -> None:
    # noq-fec sends the content, which it would protect.
    workload = "upload" if client == "noq-fec" else "download"
    assignment["workload"] = {"name": workload, "size_bytes": 3_000_000}
    for scheme, http in OFFERED:
        options = {"noq-fec": {"scheme": scheme, "http": http}, "rquic": {"scheme": "plain", "http": http}}
        with endpoints_of(server).serving({**assignment, "options": options[server]}) as serving:
            dialing = endpoints_of(client).start("client", {**assignment, "options": options[client]})
            ends = {client: dialing.metrics()}
            serving.process.send_signal(signal.SIGTERM)
            ends[server] = serving.metrics()
        sent = ("source_sent", "repair_sent", "source_received", "repair_received", "packets_recovered")
        assert [ends["noq-fec"].get(counter, 0) for counter in sent] == [0] * len(sent), options
        assert ends["noq-fec"]["packets_received"] > 0
