"""noq-fec and quic-go, each as client and as server: FEC is offered, and plain QUIC is what happens."""

from __future__ import annotations

import json
import shutil
import signal
import socket
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest

from runners import certificates as harness
from runners.toolchains import TOOLCHAINS

IMPLEMENTATIONS = Path(__file__).parents[2] / "quic-impls"
OPTIONS = {"noq-fec": {"scheme": "rlc"}, "rquic": {"scheme": "plain", "http": "hq"}}

pytestmark = [
    pytest.mark.skipif(shutil.which("go") is None, reason="no Go toolchain to build rquic with"),
    pytest.mark.skipif(not TOOLCHAINS["rust"].is_recent, reason=f"noq-fec {TOOLCHAINS['rust'].problem}"),
]


def declaration(name: str) -> dict[str, Any]:
    return tomllib.loads((IMPLEMENTATIONS / name / "impl.toml").read_text())


@pytest.fixture(scope="module", autouse=True)
def built() -> None:
    for name in OPTIONS:
        subprocess.run(declaration(name)["build"], cwd=IMPLEMENTATIONS / name, check=True)


def start(name: str, role: str, assignment: dict[str, Any]) -> subprocess.Popen[str]:
    defaults = {option: values["default"] for option, values in declaration(name)["options"].items()}
    document = {**assignment, "role": role, "options": {**defaults, **OPTIONS[name]}}
    path = Path(assignment["log_folder"]) / f"{role}.json"
    path.write_text(json.dumps(document))
    command = [*declaration(name)[role], str(path)]
    folder = IMPLEMENTATIONS / name
    return subprocess.Popen(
        command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, bufsize=1
    )


def metrics(endpoint: subprocess.Popen[str]) -> dict[str, float]:
    out, err = endpoint.communicate(timeout=30)
    assert (endpoint.returncode, err) == (0, "")
    found: dict[str, float] = json.loads(out.splitlines()[-1])["metrics"]
    return found


@pytest.mark.parametrize("workload", ["download", "upload"])
@pytest.mark.parametrize(("client", "server"), [("noq-fec", "rquic"), ("rquic", "noq-fec")])
def test_a_peer_without_fec_is_served_plain_quic(
    tmp_path: Path, client: str, server: str, workload: str
) -> None:
    harness.write(tmp_path, "server.fecbench")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    assignment = {
        "version": 1,
        "address": "127.0.0.1",
        "port": port,
        "server_name": "server.fecbench",
        "workload": {"name": workload, "size_bytes": 3_000_000},
        "content_seed": 5,
        "certificate": str(tmp_path / "server.pem"),
        "private_key": str(tmp_path / "server.key"),
        "authority": str(tmp_path / "authority.pem"),
        "log_folder": str(tmp_path),
        "deadline_s": 20.0,
    }
    serving = start(server, "server", assignment)
    try:
        assert serving.stdout is not None
        assert json.loads(serving.stdout.readline()) == {"event": "ready"}
        ends = {client: metrics(start(client, "client", assignment))}
        serving.send_signal(signal.SIGTERM)
        ends[server] = metrics(serving)
    finally:
        serving.kill()
        serving.communicate()
    for counter in ("source_sent", "repair_sent", "source_received", "repair_received", "packets_recovered"):
        assert ends["noq-fec"][counter] == 0
    assert ends["noq-fec"]["packets_received"] > 0
