"""A simulator of an implementation as a process, and tasks for it (quic-impls/contract/simulators.md)."""

import json
import os
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, Self

from fecbench.dropper.loss_model import LossModel
from fecbench.dropper.model import Uniform
from fecbench.runners.implementations.finding import ours
from fecbench.runners.implementations.implementation import Implementation
from fecbench.runners.trial.competition import FULL_SHARE, INTERVAL_S

NOTHING = Uniform(0.0)
FILLING = {"full_share": FULL_SHARE, "window_s": 1.0, "interval_s": INTERVAL_S}
"""Waiting of a transfer until those that compete have filled the link."""
OVERHEAD_BYTES = 42
"""Bytes that Ethernet, IPv4 and UDP add to a datagram."""
SEEDS = {"up": 2**64 - 1, "down": 4}
"""Seeds of the losses."""
TIMEOUT_S = 60.0
QUEUE: Mapping[str, object] = MappingProxyType({"queue_packets": 100})
OF_SERVERS = ("certificate", "private_key")

Task = dict[str, Any]
Answer = dict[str, Any]


class Simulator:
    """A running one."""

    def __init__(self, name: str, *machine: str, **environment: str) -> None:
        """`machine` is a program that runs it, with its options."""
        implementation = ours().find(name, "tests")
        command = implementation.declaration.simulator
        assert command is not None
        self.process = subprocess.Popen(
            [*machine, *command],
            cwd=implementation.folder,
            env={**os.environ, **environment},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )

    def line(self, task: Task | bytes) -> bytes:
        """The answer to a task as it is."""
        assert self.process.stdin is not None and self.process.stdout is not None
        self.process.stdin.write(task if isinstance(task, bytes) else json.dumps(task).encode() + b"\n")
        self.process.stdin.flush()
        return self.process.stdout.readline()

    def answer(self, task: Task) -> Answer:
        """The answer to a task that can be carried out."""
        answer: Answer = json.loads(self.line(task))
        assert "error" not in answer, answer
        return answer

    def error(self, task: Task | bytes) -> str:
        """Return why a task cannot be carried out."""
        answer: Answer = json.loads(self.line(task))
        assert answer.keys() <= {"number", "error"}
        error: str = answer["error"]
        assert "\n" not in error
        return error

    def memory_kb(self) -> int:
        status = Path(f"/proc/{self.process.pid}/status").read_text().splitlines()
        (line,) = (line for line in status if line.startswith("VmRSS:"))
        return int(line.split()[1])

    def __enter__(self) -> Self:
        return self

    def __exit__(self, failed: object, *_: object) -> None:
        """End its input; it ends as a success, and says no more."""
        if failed:
            self.process.kill()
        rest, _ = self.process.communicate(timeout=60)
        assert failed or (rest, self.process.returncode) == (b"", 0)


def with_changes(task: Task, **changes: Any) -> Task:
    """The task with other values in all assignments; options are merged."""
    options = changes.pop("options", {})

    def of(assignment: dict[str, Any]) -> dict[str, Any]:
        return {**assignment, **changes, "options": {**assignment["options"], **options}}

    return {**task, "pairs": [{role: of(end) for role, end in pair.items()} for pair in task["pairs"]]}


def way(mbps: float, owd_ms: float, model: LossModel = NOTHING, seed: int = 0, **changes: object) -> str:
    """The text of a direction of a link."""
    lines = {"rate_bps": round(mbps * 1e6), "delay_ns": round(owd_ms * 1e6), **(changes or QUEUE)}
    return "".join(f"{name} {value}\n" for name, value in lines.items()) + model.written(seed)


@dataclass
class Tasks:
    """Makes tasks; each has a number of its own."""

    name: str
    identity: Mapping[str, str]
    logs: Path
    made: int = 0

    @property
    def implementation(self) -> Implementation:
        return ours().find(self.name, "tests")

    def __call__(
        self,
        workload: Mapping[str, Any] | None = None,
        *,
        mbps: float = 10.0,
        owd_ms: float = 20.0,
        up: LossModel = NOTHING,
        down: LossModel = NOTHING,
        seeds: Mapping[str, int] = SEEDS,
        queue: Mapping[str, object] = QUEUE,
        seed: int = 1,
        timeout_s: float = TIMEOUT_S,
        series: Sequence[str] = (),
        capture: bool = False,
        **options: Any,
    ) -> Task:
        """A download of 50 kB, unless it is said otherwise."""
        self.made += 1
        pair = self.pair(workload or download(50_000), timeout_s=timeout_s, series=series, **options)
        models = {"up": up, "down": down}
        return {
            "version": 2,
            "number": self.made,
            "pairs": [pair],
            "links": {"internet": {n: way(mbps, owd_ms, models[n], seeds[n], **queue) for n in models}},
            "completion": "dct_s",
            "timeout_s": timeout_s,
            "seed": seed,
            "filling": None,
            "processor": {"handshake_ns": 0, "datagram_ns": 0},
            "capture": str(self.logs) if capture else None,
        }

    def pair(
        self,
        workload: Mapping[str, Any],
        *,
        address: str = "10.0.2.2",
        timeout_s: float = TIMEOUT_S,
        series: Sequence[str] = (),
        **options: Any,
    ) -> dict[str, dict[str, Any]]:
        """Return the assignments of both ends."""
        assignment = {
            "version": 1,
            "address": address,
            "port": 4433,
            "workload": workload,
            "content_seed": 7,
            "options": {**self.implementation.options({}, "defaults"), **options},
            "deadline_s": timeout_s,
            "series": list(series),
            **self.identity,
        }
        client = {key: value for key, value in assignment.items() if key not in OF_SERVERS}
        of_ends = {"client": client, "server": assignment}
        return {
            role: {**end, "role": role, "log_folder": str(self.logs / role)} for role, end in of_ends.items()
        }


def download(size_bytes: int) -> dict[str, Any]:
    return {"name": "download", "size_bytes": size_bytes}


def upload(size_bytes: int) -> dict[str, Any]:
    return {"name": "upload", "size_bytes": size_bytes}


def metrics(answer: Answer, endpoint: str = "client") -> dict[str, float]:
    measured: dict[str, float] = answer["endpoints"][endpoint]["metrics"]
    return measured


def exits(answer: Answer) -> dict[str, int]:
    return {name: endpoint["exit_code"] for name, endpoint in answer["endpoints"].items()}


def check_conserved(answer: Answer) -> None:
    """Check that all links account for each frame."""
    for link in answer["links"].values():
        for report in link.values():
            assert report["conserved"]
            dropped = report["queue_dropped"] + report["oversize_dropped"] + report.get("outage_dropped", 0)
            assert report["frames_in"] == report["frames_out"] + dropped + report["in_flight"]
