"""The rQUIC endpoint as the harness sees it, over loopback: impl.toml, files, events, exit codes, signals."""

from __future__ import annotations

import csv
import datetime
import json
import os
import shutil
import signal
import socket
import subprocess
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

FOLDER = Path(__file__).parents[2] / "quic-impls" / "rquic"
IMPLEMENTATION = tomllib.loads((FOLDER / "impl.toml").read_text())
DEFAULTS = {name: option["default"] for name, option in IMPLEMENTATION["options"].items()}
COUNTERS = [
    *("packets_sent", "packets_lost", "packets_received", "bytes_sent", "bytes_received", "smoothed_rtt_ms"),
    *("source_sent", "repair_sent", "source_received", "repair_received"),
    *("packets_recovered", "repair_useless", "recovered_late", "spurious_losses"),
    *("generations_sent", "generation_size_min", "generation_size_max", "code_rate_mean", "overhead"),
    *("protected_delivered", "protected_lost", "residual_loss"),
]
CODES = ("xor", "rlc")

pytestmark = pytest.mark.skipif(shutil.which("go") is None, reason="no Go toolchain to build rquic with")


@pytest.fixture(scope="module", autouse=True)
def built() -> None:
    subprocess.run(IMPLEMENTATION["build"], cwd=FOLDER, check=True)


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """A certificate for server.fecbench that is its own authority."""
    folder = tmp_path_factory.mktemp("certificates")
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "server.fecbench")])
    now = datetime.datetime.now(datetime.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("server.fecbench")]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    (folder / "certificate.pem").write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    (folder / "key.pem").write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
    )
    path = str(folder / "certificate.pem")
    return {"certificate": path, "private_key": str(folder / "key.pem"), "authority": path}


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


@pytest.mark.parametrize("workload", ["download", "upload"])
@pytest.mark.parametrize("http", IMPLEMENTATION["options"]["http"]["choices"])
@pytest.mark.parametrize("scheme", IMPLEMENTATION["options"]["scheme"]["choices"])
def test_content_of_any_size_is_transferred_and_metrics_are_complete(
    assignment: dict[str, Any], scheme: str, http: str, workload: str
) -> None:
    for size in (0, 1, 1000, 1_000_000):
        client, server = transfer(
            {
                **assignment,
                "options": {**DEFAULTS, "scheme": scheme, "http": http},
                "workload": {"name": workload, "size_bytes": size},
            }
        )
        assert 0 < client["handshake_s"] <= client["dct_s"]
        for metrics in (client, server):
            assert [name for name in COUNTERS if name not in metrics] == []
            assert scheme in CODES or metrics["source_sent"] == metrics["repair_sent"] == 0
        # A short transfer may travel in the same datagrams as the handshake, which are never protected.
        if size >= 1_000_000 and scheme in CODES:
            assert client["repair_received"] + server["repair_received"] > 0
        assert max(client["bytes_received"], server["bytes_received"]) > size


def test_the_fec_off_options_turn_fec_off(assignment: dict[str, Any]) -> None:
    off = IMPLEMENTATION["fec"]["off"]
    client, server = transfer({**assignment, "options": {**DEFAULTS, **off}})
    assert client["source_received"] == client["repair_received"] == server["repair_sent"] == 0


@pytest.mark.parametrize("stop", [signal.SIGTERM, signal.SIGINT])
def test_a_server_serves_until_a_signal_and_then_reports(
    assignment: dict[str, Any], stop: signal.Signals
) -> None:
    with serving(assignment) as server:
        for _ in range(2):
            Endpoint("client", assignment).metrics()
        server.process.send_signal(stop)
        assert server.metrics()["packets_sent"] > 0


def test_a_server_without_clients_reports_zeros(assignment: dict[str, Any]) -> None:
    with serving(assignment) as server:
        server.process.send_signal(signal.SIGTERM)
        assert set(server.metrics().values()) == {0}


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
        assert "terminated signal received" in failure(client)


def test_a_client_refuses_a_server_whose_certificate_is_not_for_its_name(assignment: dict[str, Any]) -> None:
    with serving(assignment):
        assert "certificate" in failure(Endpoint("client", {**assignment, "server_name": "other.fecbench"}))


def test_a_client_refuses_content_of_another_seed(assignment: dict[str, Any]) -> None:
    with serving(assignment):
        assert "SHA-256" in failure(Endpoint("client", {**assignment, "content_seed": 1}))


def test_a_port_that_is_taken_is_one_line(assignment: dict[str, Any]) -> None:
    with serving(assignment):
        assert "address already in use" in failure(Endpoint("server", assignment))


def test_a_missing_certificate_is_one_line(assignment: dict[str, Any]) -> None:
    assert "/nowhere.pem" in failure(Endpoint("server", {**assignment, "certificate": "/nowhere.pem"}))


@pytest.mark.parametrize("role", ["client", "server"])
def test_an_unsupported_workload_exits_with_127(assignment: dict[str, Any], role: str) -> None:
    code, events, err = Endpoint(role, {**assignment, "workload": {"name": "video"}}).end()
    assert (code, events) == (127, [])
    assert '"video" is not supported' in err


# Options whose limits fit together only with other values than the defaults.
COMPANIONS: dict[str, dict[str, Any]] = {
    "generation_max": {"code_rate": 0.5},
    "overlap": {"code_rate": 0.5},
    "redundancies": {"code_rate": 0.5, "scheme": "rlc"},
}


def option_values() -> Iterator[tuple[str, Any, bool]]:
    """Values of each option at and just beyond the limits in impl.toml, and whether they are right."""
    for name, option in IMPLEMENTATION["options"].items():
        yield name, option["default"], True
        if option["type"] == "string":
            yield from ((name, choice, True) for choice in option["choices"])
            yield name, "nonsense", False
            yield name, 1, False
        else:
            step = 1 if option["type"] == "integer" else 1e-6
            yield name, option["minimum"], True
            yield name, option["maximum"], True
            yield name, option["minimum"] - step, False
            yield name, option["maximum"] + step, False
            yield name, "1", False
        if option["type"] == "integer":
            yield name, option["minimum"] + 0.5, False


@pytest.mark.parametrize(("name", "value", "right"), list(option_values()))
def test_options_are_checked_as_impl_toml_says(
    assignment: dict[str, Any], name: str, value: Any, right: bool
) -> None:
    # The server's port is free and its key is not there: a good option gets it to where that is noticed.
    options = {**DEFAULTS, **COMPANIONS.get(name, {}), name: value}
    document = {**assignment, "private_key": "/nowhere.pem", "options": options}
    code, events, err = Endpoint("server", document).end()
    assert (code, events, err.count("\n")) == (1 if right else 2, [], 1)
    assert ("/nowhere.pem" if right else f"options.{name}: ") in err


@pytest.mark.parametrize("text", ["", "[]", "{", '{"version": 1, "colour": "red"}'])
def test_a_file_that_is_no_assignment_is_refused_with_one_line(tmp_path: Path, text: str) -> None:
    path = tmp_path / "bad.json"
    path.write_text(text)
    run = subprocess.run([FOLDER / "build/rquic", path], capture_output=True, text=True, timeout=10)
    assert (run.returncode, run.stdout, run.stderr.count("\n")) == (2, "", 1)
    assert str(path) in run.stderr


@pytest.mark.parametrize("arguments", [[], ["/nowhere.json"], ["a", "b"]])
def test_a_wrong_call_is_refused_with_one_line(arguments: list[str]) -> None:
    run = subprocess.run([FOLDER / "build/rquic", *arguments], capture_output=True, text=True, timeout=10)
    assert (run.returncode, run.stdout, run.stderr.count("\n")) == (2, "", 1)


@pytest.mark.parametrize("http", IMPLEMENTATION["options"]["http"]["choices"])
def test_key_log_and_qlog_are_written_only_when_asked_for(
    assignment: dict[str, Any], tmp_path: Path, http: str
) -> None:
    assignment = {**assignment, "options": {**DEFAULTS, "scheme": "none", "http": http}}
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
        assert {"transport:packet_sent", "transport:packet_received"} <= names


@pytest.mark.parametrize("rate", IMPLEMENTATION["options"]["rate"]["choices"])
def test_the_code_rate_over_time_is_left_in_the_log_folder(assignment: dict[str, Any], rate: str) -> None:
    options = {**DEFAULTS, "rate": rate, "period_ms": 1}
    workload = {"name": "download", "size_bytes": 5_000_000}
    _, metrics = transfer({**assignment, "options": options, "workload": workload})
    with (Path(assignment["log_folder"]) / "code_rate-server.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    times = [float(row["time_s"]) for row in rows]
    assert times == sorted(times)
    assert float(rows[0]["q"]) == {"constant": 9, "paper": 32, "code2021": 10}[rate]
    assert (len(rows) > 1) == (rate != "constant")
    assert all(0 < float(row["q"]) <= 63 for row in rows)
    assert sum(int(row["delivered"]) for row in rows) <= metrics["protected_delivered"]
