"""The noq-fec endpoint over loopback: what it does beyond the contract."""

import signal
import socket
from pathlib import Path
from typing import Any

from fecbench.runners.implementations.finding import ours

NAME = "noq-fec"

DECLARATION = ours().find("noq-fec", "tests").declaration


def test_content_is_transferred_with_each_scheme_and_congestion_control(
    endpoints: Any, assignment: dict[str, Any]
) -> None:
    schemes, controls = (DECLARATION.options[name].choices for name in ("scheme", "congestion_control"))
    for workload, size_bytes in (("download", 0), ("upload", 1)):
        endpoints.transfer({**assignment, "workload": {"name": workload, "size_bytes": size_bytes}})
    for options, workload in (
        *(({"scheme": scheme}, workload) for scheme in schemes for workload in ("download", "upload")),
        *(({"congestion_control": control}, "download") for control in controls),
    ):
        content = {"name": workload, "size_bytes": 1_000_000}
        choice = {"controller": "constant", **options}
        client, server = endpoints.transfer({**assignment, "options": choice, "workload": content})
        sender, receiver = (server, client) if workload == "download" else (client, server)
        assert receiver["bytes_received"] > 1_000_000
        assert (sender["repair_sent"] > 0) == (options.get("scheme") != "none")
        assert sender["congestion_window_bytes"] > 0


def test_no_datagram_exceeds_the_packet_size(endpoints: Any, assignment: dict[str, Any]) -> None:
    content = {"workload": {"name": "download", "size_bytes": 1_000_000}, "options": {"packet_size": 1300}}
    for address in ("127.0.0.1", "::1"):
        _, server = endpoints.transfer({**assignment, "address": address, **content})
        assert 1200 < server["bytes_sent"] / (server["packets_sent"] + server["repair_sent"]) <= 1300


def test_a_server_counts_the_source_packets_of_all_its_clients(
    endpoints: Any, assignment: dict[str, Any]
) -> None:
    protected = {**assignment, "options": {"controller": "tail"}}
    with endpoints.serving(protected) as server:
        for _ in range(2):
            endpoints.start("client", protected).metrics()
        server.process.send_signal(signal.SIGTERM)
        assert server.metrics()["source_received"] >= 2  # a request of each


def test_a_server_counts_what_arrived_before_the_signal(endpoints: Any, assignment: dict[str, Any]) -> None:
    with endpoints.serving(assignment) as server, socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as peer:
        server.process.send_signal(signal.SIGSTOP)
        peer.sendto(bytes(100), (assignment["address"], assignment["port"]))
        server.process.send_signal(signal.SIGTERM)
        server.process.send_signal(signal.SIGCONT)
        assert server.metrics(unmeasured={"smoothed_rtt_ms"})["bytes_received"] == 100


def test_qlog_shows_repair_frames(endpoints: Any, assignment: dict[str, Any], tmp_path: Path) -> None:
    workload = {"name": "download", "size_bytes": 100_000}
    for controller, frame_type in (("tail", 0x32A80FEC), ("safe", 0x0FEC)):
        folder, options = tmp_path / controller, {"controller": controller}
        endpoints.transfer({**assignment, "workload": workload, "options": options}, QLOGDIR=str(folder))
        traces = [path.read_text() for path in folder.iterdir()]
        assert len(traces) == 2
        for trace in traces:
            assert f'"frame_type_bytes":{frame_type}' in trace  # qlog has no name for repair
