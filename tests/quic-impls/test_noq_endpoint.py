"""The noq-fec endpoint as the harness sees it, over loopback: files, events, exit codes, signals."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from runners import certificates as harness
from runners.toolchains import TOOLCHAINS

FOLDER = Path(__file__).parents[2] / "quic-impls" / "noq-fec"
IMPLEMENTATION = tomllib.loads((FOLDER / "impl.toml").read_text())
OFF = IMPLEMENTATION["fec"]["off"]
DEFAULTS = {name: option["default"] for name, option in IMPLEMENTATION["options"].items()}
FEC_COUNTERS = [
    *("source_sent", "repair_sent", "source_received", "repair_received"),
    *("packets_recovered", "repair_useless", "recovered_late"),
]
COUNTERS = [
    *("packets_sent", "packets_lost", "packets_received", "bytes_sent", "bytes_received", "smoothed_rtt_ms"),
    *("spurious_losses", *FEC_COUNTERS),
]

pytestmark = pytest.mark.skipif(
    not TOOLCHAINS["rust"].is_recent, reason=f"noq-fec {TOOLCHAINS['rust'].problem}"
)


@pytest.fixture(scope="module", autouse=True)
def built() -> None:
    subprocess.run(IMPLEMENTATION["build"], cwd=FOLDER, check=True)


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    folder = tmp_path_factory.mktemp("certificates")
    harness.write(folder, "server.fecbench")
    names = {"certificate": "server.pem", "private_key": "server.key", "authority": "authority.pem"}
    return {key: str(folder / name) for key, name in names.items()}


@pytest.fixture
def assignment(certificates: dict[str, str], tmp_path: Path) -> dict[str, Any]:
    """What a client and a server are told alike: a download of 1000 bytes with default options."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    return {
        "version": 1,
        "address": "127.0.0.1",
        "port": port,
        "server_name": "server.fecbench",
        "workload": {"name": "download", "size_bytes": 1000},
        "content_seed": 2**64 - 1,
        "options": DEFAULTS,
        "log_folder": str(tmp_path),
        "deadline_s": 20.0,
        **certificates,
    }


class Endpoint:
    """A running endpoint."""

    def __init__(self, role: str, assignment: dict[str, Any], **environment: str) -> None:
        path = Path(assignment["log_folder"]) / f"{role}.json"
        path.write_text(json.dumps({**assignment, "role": role}))
        self.process = subprocess.Popen(
            [*IMPLEMENTATION[role], str(path)],
            cwd=FOLDER,
            env={**os.environ, **environment},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def event(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        event: dict[str, Any] = json.loads(self.process.stdout.readline())
        return event

    def end(self) -> tuple[int, list[dict[str, Any]], str]:
        """Exit code, remaining events and standard error."""
        out, err = self.process.communicate(timeout=30)
        return self.process.returncode, [json.loads(line) for line in out.splitlines()], err

    def metrics(self) -> dict[str, float]:
        """The metrics of an endpoint that has to succeed."""
        code, events, err = self.end()
        assert (code, err) == (0, "")
        assert [event["event"] for event in events] == ["done"]
        metrics: dict[str, float] = events[0]["metrics"]
        return metrics


@contextmanager
def serving(assignment: dict[str, Any], **environment: str) -> Iterator[Endpoint]:
    server = Endpoint("server", assignment, **environment)
    try:
        assert server.event() == {"event": "ready"}
        yield server
    finally:
        server.process.kill()
        server.process.communicate()


def transfer(assignment: dict[str, Any], **environment: str) -> tuple[dict[str, float], dict[str, float]]:
    """Metrics of a client and a server that both succeed."""
    with serving(assignment, **environment) as server:
        client = Endpoint("client", assignment, **environment).metrics()
        server.process.send_signal(signal.SIGTERM)
        return client, server.metrics()


@pytest.mark.parametrize("workload", IMPLEMENTATION["workloads"])
@pytest.mark.parametrize("scheme", IMPLEMENTATION["options"]["scheme"]["choices"])
def test_content_of_any_size_is_transferred_and_metrics_are_complete(
    assignment: dict[str, Any], scheme: str, workload: str
) -> None:
    for size in (0, 1, 1000, 1_000_000):
        client, server = transfer(
            {
                **assignment,
                "options": {**DEFAULTS, "scheme": scheme},
                "workload": {"name": workload, "size_bytes": size},
            }
        )
        assert 0 < client["handshake_s"] <= client["dct_s"]
        for metrics in (client, server):
            assert [name for name in COUNTERS if name not in metrics] == []
            assert metrics["packets_received"] > 0
        assert max(client["bytes_received"], server["bytes_received"]) > size


def test_the_fec_off_options_turn_fec_off(assignment: dict[str, Any]) -> None:
    for metrics in transfer({**assignment, "options": {**DEFAULTS, **OFF}}):
        assert {name: metrics[name] for name in FEC_COUNTERS} == dict.fromkeys(FEC_COUNTERS, 0)


@pytest.mark.parametrize("address", ["127.0.0.1", "::1"])
def test_no_datagram_exceeds_the_packet_size(assignment: dict[str, Any], address: str) -> None:
    options = {**DEFAULTS, "packet_size": 1300}
    sized = {**assignment, "address": address, "options": options}
    _, server = transfer({**sized, "workload": {"name": "download", "size_bytes": 1_000_000}})
    assert 1200 < server["bytes_sent"] / server["packets_sent"] <= 1300


@pytest.mark.parametrize("stop", [signal.SIGTERM, signal.SIGINT])
def test_a_server_serves_until_a_signal_and_then_reports(
    assignment: dict[str, Any], stop: signal.Signals
) -> None:
    with serving(assignment) as server:
        for _ in range(2):
            Endpoint("client", assignment).metrics()
        server.process.send_signal(stop)
        assert server.metrics()["source_received"] >= 2  # a request of each


def test_a_server_without_clients_reports_zeros(assignment: dict[str, Any]) -> None:
    with serving(assignment) as server:
        server.process.send_signal(signal.SIGTERM)
        assert set(server.metrics().values()) == {0}


def test_a_server_counts_what_arrived_before_the_signal(assignment: dict[str, Any]) -> None:
    with serving(assignment) as server, socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as peer:
        server.process.send_signal(signal.SIGSTOP)
        peer.sendto(bytes(100), (assignment["address"], assignment["port"]))
        server.process.send_signal(signal.SIGTERM)
        server.process.send_signal(signal.SIGCONT)
        assert server.metrics()["bytes_received"] == 100


def failure(endpoint: Endpoint) -> str:
    """Standard error, one line, of an endpoint that has to fail."""
    code, events, err = endpoint.end()
    assert (code, events, err.count("\n")) == (1, [], 1)
    return err


def test_the_deadline_ends_a_client_with_one_line(assignment: dict[str, Any]) -> None:
    err = failure(Endpoint("client", {**assignment, "deadline_s": 0.3}))
    assert "not done within the deadline of 0.3 s" in err


def test_a_signal_ends_a_client_with_one_line(assignment: dict[str, Any]) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as silent:
        silent.bind(("127.0.0.1", assignment["port"]))
        silent.settimeout(10)
        client = Endpoint("client", assignment)
        silent.recv(2000)  # it dials
        client.process.send_signal(signal.SIGTERM)
        assert "ended by a signal" in failure(client)


def test_a_client_refuses_a_server_whose_certificate_is_not_for_its_name(assignment: dict[str, Any]) -> None:
    with serving(assignment):
        assert "certificate" in failure(Endpoint("client", {**assignment, "server_name": "other.fecbench"}))


@pytest.mark.parametrize("workload", IMPLEMENTATION["workloads"])
def test_a_client_refuses_content_of_another_seed(assignment: dict[str, Any], workload: str) -> None:
    with serving(assignment):
        other = {**assignment, "content_seed": 1, "workload": {"name": workload, "size_bytes": 1000}}
        if workload == "download":
            assert "SHA-256" in failure(Endpoint("client", other))
        else:
            Endpoint("client", other).metrics()  # a server takes any content and confirms its hash


def test_a_port_that_is_taken_is_one_line(assignment: dict[str, Any]) -> None:
    with serving(assignment):
        assert "Address already in use" in failure(Endpoint("server", assignment))


def test_a_missing_certificate_is_one_line(assignment: dict[str, Any]) -> None:
    assert "/nowhere.pem" in failure(Endpoint("server", {**assignment, "certificate": "/nowhere.pem"}))


@pytest.mark.parametrize("role", ["client", "server"])
def test_an_unsupported_workload_exits_with_127(assignment: dict[str, Any], role: str) -> None:
    code, events, err = Endpoint(role, {**assignment, "workload": {"name": "video"}}).end()
    assert (code, events) == (127, [])
    assert '"video" is not supported' in err


def option_values() -> Iterator[tuple[str, Any, bool]]:
    """Values of each option at and just beyond the limits in impl.toml, and whether they are right."""
    for name, option in IMPLEMENTATION["options"].items():
        yield name, option["default"], True
        if option["type"] == "string":
            yield from ((name, choice, True) for choice in option["choices"])
            yield name, "nonsense", False
            yield name, 1, False
        else:
            yield name, option["minimum"], True
            yield name, option["maximum"], True
            yield name, option["minimum"] - 1, False
            yield name, option["maximum"] + 1, False
            yield name, option["minimum"] + 0.5, False
            yield name, "1", False
        yield name, None, False


@pytest.mark.parametrize(("name", "value", "right"), list(option_values()))
def test_options_are_checked_as_impl_toml_says(
    assignment: dict[str, Any], name: str, value: Any, right: bool
) -> None:
    # The server's port is free and its key is not there: a good option gets it to where that is noticed.
    document = {**assignment, "private_key": "/nowhere.pem", "options": {**DEFAULTS, **OFF, name: value}}
    code, events, err = Endpoint("server", document).end()
    assert (code, events, err.count("\n")) == (1 if right else 2, [], 1)
    assert ("/nowhere.pem" if right else f"options.{name}: ") in err


@pytest.mark.parametrize("text", ["", "[]", "{", '{"version": 1, "colour": "red"}'])
def test_a_file_that_is_no_assignment_is_refused_with_one_line(tmp_path: Path, text: str) -> None:
    path = tmp_path / "bad.json"
    path.write_text(text)
    run = subprocess.run([FOLDER / "build/noq-fec", path], capture_output=True, text=True, timeout=10)
    assert (run.returncode, run.stdout, run.stderr.count("\n")) == (2, "", 1)
    assert str(path) in run.stderr


@pytest.mark.parametrize("arguments", [[], ["/nowhere.json"], ["a", "b"]])
def test_a_wrong_call_is_refused_with_one_line(arguments: list[str]) -> None:
    run = subprocess.run([FOLDER / "build/noq-fec", *arguments], capture_output=True, text=True, timeout=10)
    assert (run.returncode, run.stdout, run.stderr.count("\n")) == (2, "", 1)


def test_key_log_and_qlog_are_written_only_when_asked_for(assignment: dict[str, Any], tmp_path: Path) -> None:
    assignment = {**assignment, "workload": {"name": "download", "size_bytes": 100_000}}
    before = set(tmp_path.iterdir())
    transfer(assignment)
    assert {path.name for path in set(tmp_path.iterdir()) - before} == {"client.json", "server.json"}
    keys, logs = tmp_path / "keys", tmp_path / "logs"
    transfer(assignment, SSLKEYLOGFILE=str(keys), QLOGDIR=str(logs))
    assert sum(line.startswith("CLIENT_TRAFFIC_SECRET_0 ") for line in keys.read_text().splitlines()) == 2
    traces = [path.read_text() for path in logs.iterdir()]
    assert len(traces) == 2
    for trace in traces:
        records = [json.loads(record) for record in trace.split("\x1e")[1:]]
        names = {record.get("name") for record in records}
        assert any(str(name).endswith(":packet_sent") for name in names)
        assert any(str(name).endswith(":packet_received") for name in names)
        assert f'"frame_type_bytes":{0x32A80FEC}' in trace  # qlog has no name for REPAIR
