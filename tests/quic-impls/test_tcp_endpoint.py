"""tcp over loopback: the contract as far as it is not of QUIC and FEC, and what the kernel has to give."""

import json
import os
import signal
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from fecbench.runners.implementations.finding import ours
from fecbench.topologies import tcp
from tests import ordinary

NAME = "tcp"

CONTROLLERS = ["reno", "cubic", "bbr"]
ALLOWED = Path("/proc/sys/net/ipv4/tcp_allowed_congestion_control")


def choosable() -> list[str]:
    """The controllers of the kernel that this user may choose."""
    return [
        name
        for name in tcp.controllers()
        if name in CONTROLLERS and (os.geteuid() == 0 or name in ALLOWED.read_text().split())
    ]


@pytest.fixture
def assignment(assignment: dict[str, Any]) -> dict[str, Any]:
    """The assignment with a controller that any user may choose, and two addresses of the machine."""
    addresses = {"local_addresses": ["127.0.0.1", "127.0.0.2"]}
    return {**assignment, **addresses, "options": {"congestion_control": "reno"}}


def test_content_of_any_size_arrives_and_is_counted(endpoints: Any, assignment: dict[str, Any]) -> None:
    for workload, size_bytes in product(("download", "upload"), (0, 1, 3_000_000)):
        assignment["workload"] = {"name": workload, "size_bytes": size_bytes}
        client, server = endpoints.transfer(assignment)
        sender, receiver = (server, client) if workload == "download" else (client, server)
        for sent, received in ((sender, receiver), (receiver, sender)):
            # The SYN-ACK is not among those sent; what closes it comes after a client's last look.
            assert sent["bytes_sent"] + 100 >= received["bytes_received"] > 0
            assert abs(sent["packets_sent"] - received["packets_received"]) <= 8
        assert size_bytes < receiver["bytes_received"] < 1.01 * size_bytes + 5000
        assert sender["packets_sent"] >= size_bytes / 65_536, "a segment of loopback has 64 KiB at most"


@pytest.mark.parametrize("controller", CONTROLLERS)
def test_each_controller_that_the_kernel_has_is_used(
    endpoints: Any, assignment: dict[str, Any], controller: str
) -> None:
    if controller not in choosable():
        who = "this user may not choose" if controller in tcp.controllers() else "this kernel has no"
        pytest.skip(f"{who} {controller}")
    endpoints.transfer({**assignment, "options": {"congestion_control": controller}})


@pytest.fixture
def for_all() -> Iterator[Path]:
    """A folder that every user can read."""
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


@pytest.mark.usefixtures("endpoints")
def test_a_controller_that_the_user_may_not_choose_is_unsupported_with_one_line(
    assignment: dict[str, Any], for_all: Path
) -> None:
    refusal = [controller for controller in CONTROLLERS if controller not in ALLOWED.read_text().split()]
    if os.geteuid() != 0:
        pytest.skip("needs root: becomes another user")
    if not refusal:
        pytest.skip("this kernel has no controller that other users may not choose")
    (program,) = ours().find("tcp", "tests").command("client")
    authority, document = for_all / "authority.pem", for_all / "client.json"
    authority.write_bytes(Path(assignment["authority"]).read_bytes())
    options = {"congestion_control": refusal[0], "paths": 1}
    client = {**assignment, "role": "client", "options": options, "authority": str(authority)}
    document.write_text(json.dumps(client))
    with socket.create_server((assignment["address"], assignment["port"])):
        result = subprocess.run(
            [*ordinary.command(), program, document], capture_output=True, text=True, timeout=30
        )
    assert (result.returncode, result.stdout, result.stderr.count("\n")) == (127, "", 1)
    assert f'congestion_control = "{refusal[0]}": the connection got' in result.stderr
    assert ALLOWED.read_text().strip() in result.stderr


def test_multipath_tcp_is_counted_by_path(endpoints: Any, assignment: dict[str, Any]) -> None:
    """The path manager knows no second address: there is one subflow."""
    assignment["workload"] = {"name": "download", "size_bytes": 1_000_000}
    assignment["options"]["paths"] = 2
    client, server = endpoints.transfer(assignment)
    for metrics in (client, server):
        counted = ("packets_sent", "packets_lost", "bytes_sent")
        assert all(metrics[f"path1.{name}"] == metrics[name] for name in (*counted, "smoothed_rtt_ms"))
        assert all(metrics[f"path2.{name}"] == 0 for name in counted)
        assert "path2.smoothed_rtt_ms" not in metrics
    assert client["bytes_received"] >= 1_000_000


def test_paths_that_there_are_not_are_unsupported_with_one_line(
    endpoints: Any, assignment: dict[str, Any]
) -> None:
    for of_client, of_server in ((2, 1), (3, 3)):
        of_paths = [{"congestion_control": "reno", "paths": paths} for paths in (of_client, of_server)]
        with endpoints.serving({**assignment, "options": of_paths[1]}):
            client = endpoints.start("client", {**assignment, "options": of_paths[0]})
            code, events, err = client.end()
        assert (code, events, err.count("\n")) == (127, [], 1)
        assert f"paths = {of_client}: " in err


def test_a_server_serves_until_a_signal_and_then_reports_on_all_its_clients(
    endpoints: Any, assignment: dict[str, Any]
) -> None:
    for stop in (signal.SIGTERM, signal.SIGINT):
        with endpoints.serving(assignment) as server:
            clients = [endpoints.start("client", assignment).metrics() for _ in range(2)]
            server.process.send_signal(stop)
            assert server.metrics()["bytes_received"] >= sum(client["bytes_sent"] for client in clients)


def test_a_server_outlives_a_client_that_goes_and_one_that_speaks_no_tls(
    endpoints: Any, assignment: dict[str, Any]
) -> None:
    with endpoints.serving(assignment) as server:
        for request_bytes in (b"", b"GET /1000\r\n"):
            with socket.create_connection((assignment["address"], assignment["port"])) as client:
                client.sendall(request_bytes)
        endpoints.start("client", assignment).metrics()
        server.process.send_signal(signal.SIGTERM)
        assert server.end()[0] == 0


def test_options_are_checked_as_impl_toml_says(endpoints: Any) -> None:
    checked: list[tuple[dict[str, Any], bool]] = [
        *(({"congestion_control": controller, "paths": 8}, True) for controller in CONTROLLERS),
        *(({"congestion_control": wrong}, False) for wrong in ("newreno", 1, None)),
        *(({"paths": wrong}, False) for wrong in (0, 9, 1.5, "2", None)),
        ({"scheme": "none"}, False),
    ]
    for options, right in checked:
        code, events, err = endpoints.check(options).end()
        assert (code, events, err.count("\n")) == ((0, [], 0) if right else (2, [], 1)), options
        assert right or f"options.{next(iter(options))}: " in err


def test_key_log_is_written_only_when_asked_for(
    endpoints: Any, assignment: dict[str, Any], tmp_path: Path
) -> None:
    endpoints.transfer(assignment)
    assert {path.name for path in tmp_path.rglob("*")} == {"client", "client.json", "server", "server.json"}
    keys = tmp_path / "keys"
    endpoints.transfer(assignment, SSLKEYLOGFILE=str(keys), QLOGDIR=str(tmp_path / "logs"))
    assert sum(line.startswith("CLIENT_TRAFFIC_SECRET_0 ") for line in keys.read_text().splitlines()) == 2


def test_the_window_over_time_is_that_of_the_connections_in_their_order(
    endpoints: Any, assignment: dict[str, Any], rows_of: Any
) -> None:
    assignment |= {"series": ["cwnd"], "workload": {"name": "download", "size_bytes": 1_000_000}}
    with endpoints.serving(assignment) as server:
        for _ in range(2):
            client = endpoints.start("client", assignment).metrics()
        server.process.send_signal(signal.SIGTERM)
        server.metrics()
    rows = rows_of("server", "cwnd")
    assert [row["t_s"] for row in rows] == sorted(row["t_s"] for row in rows)
    assert 0 <= rows[0]["t_s"] < 1
    assert [row["connection"] for row in rows] == sorted(row["connection"] for row in rows)
    assert {row["connection"] for row in rows} == {0, 1}
    assert all(row["congestion_window_bytes"] > 0 for row in rows)
    last = rows_of("client", "cwnd")[-1]
    assert last["smoothed_rtt_ms"] == pytest.approx(client["smoothed_rtt_ms"], abs=0.001)


def test_a_series_without_a_connection_has_no_rows(
    endpoints: Any, assignment: dict[str, Any], tmp_path: Path
) -> None:
    with endpoints.serving({**assignment, "series": ["cwnd"]}) as server:
        server.process.send_signal(signal.SIGTERM)
        server.metrics(unmeasured={"smoothed_rtt_ms"})
    assert len((tmp_path / "server" / "cwnd.series.csv").read_text().splitlines()) == 1


def test_a_signal_ends_a_client_with_one_line(endpoints: Any, assignment: dict[str, Any]) -> None:
    with socket.create_server((assignment["address"], assignment["port"])) as silent:
        client = endpoints.start("client", assignment)
        connection, _ = silent.accept()
        client.process.send_signal(signal.SIGTERM)
        assert "terminated signal received" in client.failure()
        connection.close()
