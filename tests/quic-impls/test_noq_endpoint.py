"""The noq-fec endpoint over loopback: what it does beyond the contract."""

import signal
import socket
from pathlib import Path
from typing import Any

import pytest

from fecbench.runners.implementations.finding import ours

DECLARATION = ours().find("noq-fec", "tests").declaration


@pytest.fixture
def name() -> str:
    return "noq-fec"


@pytest.mark.parametrize("scheme", DECLARATION.options["scheme"].choices)
def test_content_of_any_size_is_transferred(endpoints: Any, assignment: dict[str, Any], scheme: str) -> None:
    for workload in ("download", "upload"):
        for size in (0, 1, 1000, 1_000_000):
            content = {"name": workload, "size_bytes": size}
            client, server = endpoints.transfer(
                {**assignment, "options": {"scheme": scheme}, "workload": content}
            )
            assert min(client["packets_received"], server["packets_received"]) > 0
            assert max(client["bytes_received"], server["bytes_received"]) > size


@pytest.mark.parametrize("control", DECLARATION.options["congestion_control"].choices)
def test_each_congestion_control_transfers(endpoints: Any, assignment: dict[str, Any], control: str) -> None:
    content = {"name": "download", "size_bytes": 1_000_000}
    _, server = endpoints.transfer(
        {
            **assignment,
            "options": {"controller": "constant", "congestion_control": control},
            "workload": content,
        }
    )
    assert server["repair_sent"] > 0
    assert server["congestion_window_bytes"] > 0


@pytest.mark.parametrize("address", ["127.0.0.1", "::1"])
def test_no_datagram_exceeds_the_packet_size(
    endpoints: Any, assignment: dict[str, Any], address: str
) -> None:
    sized = {**assignment, "address": address, "options": {"packet_size": 1300}}
    _, server = endpoints.transfer({**sized, "workload": {"name": "download", "size_bytes": 1_000_000}})
    assert 1200 < server["bytes_sent"] / (server["packets_sent"] + server["repair_sent"]) <= 1300


def test_a_server_counts_the_source_packets_of_all_its_clients(
    endpoints: Any, assignment: dict[str, Any]
) -> None:
    with endpoints.serving(assignment) as server:
        for _ in range(2):
            endpoints.start("client", assignment).metrics()
        server.process.send_signal(signal.SIGTERM)
        assert server.metrics()["source_received"] >= 2  # a request of each


def test_a_server_counts_what_arrived_before_the_signal(endpoints: Any, assignment: dict[str, Any]) -> None:
    with (
        endpoints.serving(assignment) as server,
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as peer,
    ):
        server.process.send_signal(signal.SIGSTOP)
        peer.sendto(bytes(100), (assignment["address"], assignment["port"]))
        server.process.send_signal(signal.SIGTERM)
        server.process.send_signal(signal.SIGCONT)
        assert server.metrics()["bytes_received"] == 100


def test_qlog_shows_repair_frames(endpoints: Any, assignment: dict[str, Any], tmp_path: Path) -> None:
    workload = {"name": "download", "size_bytes": 100_000}
    endpoints.transfer({**assignment, "workload": workload}, QLOGDIR=str(tmp_path / "logs"))
    traces = [path.read_text() for path in (tmp_path / "logs").iterdir()]
    assert len(traces) == 2
    for trace in traces:
        assert f'"frame_type_bytes":{0x32A80FEC}' in trace  # qlog has no name for REPAIR
