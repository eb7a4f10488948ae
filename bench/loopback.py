"""Downloads over plain loopback, without losses, a core for each end.

The link sets no limit, so the processors do: the throughput shows what a stack costs the busier end, and
the CPU time of both, what it costs at all.
"""

import os
import resource
import subprocess
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from pydantic import BaseModel

from fecbench.runners.implementations.finding import ours
from fecbench.runners.tasks.task import EndpointTask, Role
from fecbench.runners.trial import certificates
from fecbench.runners.trial.assignment import SERVER_NAME, assignment, command

ROLES: tuple[Role, ...] = ("client", "server")


@dataclass(frozen=True)
class Download:
    """Rate and CPU time of one download."""

    mbps: float
    cpu_us: float  # of both ends, per packet of QUIC's that the server sent, repair symbols left out
    sent_to_source: float  # packets sent for each source packet: 1 without coding


class Report(BaseModel):
    metrics: dict[str, float]


def download(name: str, options: Mapping[str, object], size_bytes: int) -> Download:
    """Run a download with an implementation and options; those that are left out have their defaults."""
    implementation = ours().find(name, "the benchmark")
    implementation.check_built()
    with tempfile.TemporaryDirectory() as path:
        folder = Path(path)
        certificates.write(folder, SERVER_NAME)
        end = EndpointTask(
            implementation=name, options=dict(implementation.options(options, "the benchmark"))
        )
        documents = {
            role: assignment(
                role,
                end,
                workload={"name": "download", "size_bytes": size_bytes},
                content_seed=1,
                server_address="127.0.0.1",
                local_addresses=[],
                certificates=folder,
                log_folder=folder,
                deadline_s=120,
            )
            for role in ROLES
        }
        commands = {role: command(implementation.command(role), documents[role], folder) for role in ROLES}
        cores = sorted(os.sched_getaffinity(0))
        before = _children_s()
        with subprocess.Popen(
            _pinned(commands["server"], cores[-1]), stdout=subprocess.PIPE, text=True
        ) as server:
            assert server.stdout
            server.stdout.readline()  # that it is ready
            try:
                client_metrics = _metrics_of(
                    subprocess.check_output(_pinned(commands["client"], cores[0]), text=True)
                )
            finally:
                server.terminate()
            server_metrics = _metrics_of(server.stdout.read())
        cpu_s = _children_s() - before
    return Download(
        mbps=size_bytes * 8 / (client_metrics["dct_s"] - client_metrics["handshake_s"]) / 1e6,
        cpu_us=cpu_s / server_metrics["packets_sent"] * 1e6,
        sent_to_source=1
        + server_metrics.get("repair_sent", 0) / max(server_metrics.get("source_sent", 0), 1),
    )


def _pinned(command: list[str], core: int) -> list[str]:
    return ["taskset", "--cpu-list", str(core), *command]


def _metrics_of(output: str) -> dict[str, float]:
    return Report.model_validate_json(output.splitlines()[-1]).metrics


def _children_s() -> float:
    """The CPU time of all children that have ended, in seconds."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
