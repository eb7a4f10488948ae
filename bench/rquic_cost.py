"""Costs of rQUIC's coding: downloads over plain loopback, without losses, a core for each end.

The link sets no limit, so the processors do: the throughput shows what coding costs the busier end, and the
CPU time of both, what it costs at all. Coded packets take their share of both; the rows that leave it out
count them as if they carried content.
"""

import os
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

from pydantic import BaseModel

from bench.table import Row, print_table
from fecbench.runners.implementations.finding import ours
from fecbench.runners.tasks.task import EndpointTask, Role
from fecbench.runners.trial import certificates
from fecbench.runners.trial.assignment import SERVER_NAME, assignment, command

ROUNDS = 5
SIZE_BYTES = 150_000_000
SCHEMES = ("none", "plain", "xor", "rlc")
CODES = ("xor", "rlc")
ROLES: tuple[Role, ...] = ("client", "server")


@dataclass(frozen=True)
class Download:
    """Rate and CPU time of one download."""

    mbps: float
    cpu_us: float  # of both ends, per packet of QUIC's
    sent_to_source: float  # packets sent for each source packet: 1 without coding


class Done(BaseModel):
    metrics: dict[str, float]


def run() -> None:
    """Print a table of throughput and one of CPU time."""
    rounds = [{scheme: download(scheme) for scheme in SCHEMES} for _ in range(ROUNDS)]
    by_scheme = {scheme: [one[scheme] for one in rounds] for scheme in SCHEMES}
    rates = [Row(scheme, [one.mbps for one in by_scheme[scheme]]) for scheme in SCHEMES]
    costs = [Row(scheme, [one.cpu_us for one in by_scheme[scheme]]) for scheme in SCHEMES]
    for scheme in CODES:
        name, downloads = f"{scheme}, coded packets' share off", by_scheme[scheme]
        rates.append(Row(name, [one.mbps * one.sent_to_source for one in downloads]))
        costs.append(Row(name, [one.cpu_us / one.sent_to_source for one in downloads]))
    what = f"rquic, download of {SIZE_BYTES / 1e6:g} MB over loopback, {ROUNDS} rounds"
    print_table(what, "Mbit/s", rates)
    print_table(what, "µs of CPU/packet", costs)


def download(scheme: str) -> Download:
    """Run a download with a scheme and otherwise default options."""
    rquic = ours().find("rquic", "the benchmark")
    rquic.check_built()
    with tempfile.TemporaryDirectory() as path:
        folder = Path(path)
        certificates.write(folder, SERVER_NAME)
        options = rquic.options({"scheme": scheme}, "the benchmark")
        end = EndpointTask(implementation="rquic", options=dict(options))
        documents = {
            role: assignment(
                role,
                end,
                workload={"name": "download", "size_bytes": SIZE_BYTES},
                content_seed=1,
                server_address="127.0.0.1",
                local_addresses=[],
                certificates=folder,
                log_folder=folder,
                deadline_s=120,
            )
            for role in ROLES
        }
        commands = {role: command(rquic.command(role), documents[role], folder) for role in ROLES}
        cores = sorted(os.sched_getaffinity(0))
        before = _children_s()
        with subprocess.Popen(
            _pinned(commands["server"], cores[-1]), stdout=subprocess.PIPE, text=True
        ) as server:
            assert server.stdout
            server.stdout.readline()  # that it is ready
            try:
                client = _done(subprocess.check_output(_pinned(commands["client"], cores[0]), text=True))
            finally:
                server.terminate()
            served = _done(server.stdout.read())
        cpu_s = _children_s() - before
    return Download(
        mbps=SIZE_BYTES * 8 / (client["dct_s"] - client["handshake_s"]) / 1e6,
        cpu_us=cpu_s / served["packets_sent"] * 1e6,
        sent_to_source=1 + served["repair_sent"] / max(served["source_sent"], 1),
    )


def _pinned(command: list[str], core: int) -> list[str]:
    return ["taskset", "--cpu-list", str(core), *command]


def _done(output: str) -> dict[str, float]:
    return Done.model_validate_json(output.splitlines()[-1]).metrics


def _children_s() -> float:
    """The CPU time of all children that have ended, in seconds."""
    times = os.times()
    return times.children_user + times.children_system
