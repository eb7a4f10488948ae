"""Runs one trial: topology, droppers, endpoints, and the counters that the judge needs.

It is meant to run as the first process of namespaces of its own (runners.trial.isolation). It measures and
reports; whether the trial can be vouched for is decided in runners.trial.judge.
"""

import base64
import math
import resource
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import IO

import dropper.command
import dropper.model
import topologies.topology
from dropper.command import Attachment, DropperError, Filter
from runners.implementations.implementation import environment
from runners.trial import competition, starvation
from runners.trial.endpoint import Endpoint, Role, Supervisor, assignment, command
from runners.trial.task import (
    DropperOutcome,
    EndpointOutcome,
    Outcome,
    PairTask,
    Task,
    endpoint_name,
    loss_name,
)
from topologies.topology import Host, Topology

PORT = 4433
SERVER_NAME = "server.fecbench"
READY_LIMIT_S = 10.0
CAPTURE_LIMIT_S = 5.0
# What most systems begin a program with. Mininet's mnexec closes every number below the limit, open or not.
OPEN_FILES = 1024


class Phases:
    """How long each part of a trial took, in seconds."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    @contextmanager
    def __call__(self, name: str) -> Iterator[None]:
        begun = time.monotonic()
        try:
            yield
        finally:
            self.seconds[name] = time.monotonic() - begun


def run(task: Task) -> Outcome:
    """The outcome of one trial. What fails in the harness itself is told in `failure`."""
    outcome = Outcome()
    phases = Phases()
    try:
        _run(task, outcome, phases)
    except (OSError, RuntimeError, ValueError, subprocess.SubprocessError) as error:
        outcome.failure = f"{type(error).__name__}: {error}"
    outcome.phases_s = phases.seconds
    return outcome


def _run(task: Task, outcome: Outcome, phases: Phases) -> None:
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (OPEN_FILES, most))
    task.folder.mkdir()
    with phases("topology"):
        network = topologies.topology.build(task.topology, task.links, task.backend, task.late_bound_us)
    with network:
        outcome.backend = network.backend
        with phases("droppers"):
            droppers = _attach_droppers(task, network)
        captures = _start_captures(task, network) if task.capture else []
        _run_endpoints(task, network, outcome, phases)
        with phases("results"):
            # Frozen first: no packet moves while the counters of the links and of the droppers are read.
            outcome.links = {name: report.model_dump() for name, report in network.finish().items()}
            outcome.droppers = {name: _read_dropper(where) for name, where in droppers.items()}
        _stop_captures(captures)
        with phases("teardown"):
            network.close()


def _attach_droppers(task: Task, topology: Topology) -> dict[str, Attachment]:
    """Attach one dropper per direction of each link, at the ingress of the next hop."""
    attachments = {}
    judged = Filter(family="ipv4", protocol="udp", port=PORT)
    for (link, direction), place in topology.exits.items():
        name = loss_name(link, direction)
        where = Attachment(netns=place.netns_path, interface=place.interface, direction="ingress")
        model = dropper.model.loss_model(task.losses[link][direction])
        dropper.command.attach(where, model, task.seeds[name], judged)
        attachments[name] = where
    return attachments


def _read_dropper(where: Attachment) -> DropperOutcome:
    counters = dropper.command.show(where)
    verdicts = dropper.command.log(where)
    if verdicts.packets != counters.seen:
        raise DropperError(f"{where.interface}: {counters.seen} packets seen, {verdicts.packets} in the log")
    return DropperOutcome(
        counters=asdict(counters),
        packets=verdicts.packets,
        bitmap_base64=base64.b64encode(verdicts.bitmap).decode(),
    )


def _run_endpoints(task: Task, topology: Topology, outcome: Outcome, phases: Phases) -> None:
    supervisor = Supervisor()
    runs = [_Run(task, number, pair, topology, supervisor) for number, pair in enumerate(task.pairs)]
    with phases("server_start"):
        servers = [run.start("server", task.timeout_s) for run in runs]
        supervisor.wait(lambda: all(server.ready or _has_ended(server) for server in servers), READY_LIMIT_S)
    if all(server.ready for server in servers):
        with phases("client"):
            _transfer(task, topology, runs, supervisor, outcome)
    with phases("endpoints_end"):
        for run in runs:
            run.end()
    outcome.endpoints = {
        endpoint.name: _outcome(endpoint) for run in runs for endpoint in run.clients + run.servers
    }


class _Run:
    """The endpoints of a pair that have been started, and what else is needed to start them."""

    def __init__(
        self, task: Task, number: int, pair: PairTask, topology: Topology, supervisor: Supervisor
    ) -> None:
        self._task, self._number, self._pair, self._supervisor = task, number, pair, supervisor
        self.hosts = topology.pairs[number]
        self.clients: list[Endpoint] = []
        self.servers: list[Endpoint] = []

    def start(self, role: Role, deadline_s: float) -> Endpoint:
        task, hosts = self._task, self.hosts
        folder = _folder_of(task, self._number)
        log_folder = folder / role
        log_folder.mkdir(parents=True)
        document = assignment(
            role,
            address=hosts.server.address,
            port=PORT,
            server_name=SERVER_NAME,
            workload=self._pair.workload,
            content_seed=task.seeds["content"],
            options=self._pair.options,
            certificates=task.certificates,
            log_folder=log_folder,
            deadline_s=deadline_s,
        )
        host, started = (hosts.server, self.servers) if role == "server" else (hosts.client, self.clients)
        process: subprocess.Popen[bytes] = host.popen(
            command(self._pair.commands[role], document, folder),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=log_folder,
            env=_environment(task, log_folder),
        )
        started.append(self._supervisor.follow(endpoint_name(self._number, role), process))
        return started[-1]

    def end(self) -> None:
        """The client first: a server that is ended serves nobody any more."""
        for endpoint in self.clients + self.servers:
            self._supervisor.end(endpoint)


def _transfer(
    task: Task, topology: Topology, runs: list[_Run], supervisor: Supervisor, outcome: Outcome
) -> None:
    """The measured transfer, beside that of the second pair if there is one."""
    deadline = time.monotonic() + task.timeout_s
    foreground, *others = runs
    for background in others:
        begun = time.monotonic()
        client = background.start("client", task.timeout_s)
        full = _await_full(task, topology, client, supervisor, deadline)
        if not full:
            outcome.background_lasted = not _has_ended(client)
            outcome.timed_out = has_timed_out(client.exit_code, time.monotonic() - deadline)
            return
        outcome.competition["filling_s"] = time.monotonic() - begun
    before, begun = [run.hosts.client.received_bytes() for run in runs], time.monotonic()
    client = foreground.start("client", deadline - begun)
    endpoints = [endpoint for run in runs for endpoint in run.clients + run.servers]
    outcome.stalled_s = _follow(client, endpoints, supervisor, deadline)
    outcome.timed_out = has_timed_out(client.exit_code, time.monotonic() - deadline)
    if others:
        outcome.background_lasted = not _has_ended(others[0].clients[0])
        lasted_s = time.monotonic() - begun
        for run, name, bytes_before in zip(runs, ("foreground", "background"), before, strict=True):
            received = run.hosts.client.received_bytes() - bytes_before
            outcome.competition[f"{name}_mbps"] = 8e-6 * received / lasted_s


def _await_full(
    task: Task, topology: Topology, client: Endpoint, supervisor: Supervisor, deadline: float
) -> bool:
    """Whether the link is full before the client has ended or the deadline has passed."""
    (link, settings), *_ = task.links.items()
    filling = competition.Filling(settings)
    while not supervisor.wait(lambda: _has_ended(client), competition.INTERVAL_S):
        now = time.monotonic()
        if filling.is_full(now, topology.carried_bytes(link, "down")):
            return True
        if now > deadline:
            return False
    return False


def _follow(
    client: Endpoint, endpoints: list[Endpoint], supervisor: Supervisor, deadline: float
) -> float | None:
    """Await the client's end or the time limit: for how long the endpoints were kept from running, in s.

    What counts is the completion time, not the start of a program. None when the kernel does not tell.
    """
    stalled_s = None
    if starvation.is_known():
        with starvation.Watch([endpoint.process.pid for endpoint in endpoints]) as watch:
            while not supervisor.wait(lambda: _is_done(client), starvation.INTERVAL_S):
                if time.monotonic() > deadline:
                    break
                watch.sample()
            done_at = time.monotonic()
            dct_s = (client.metrics or {}).get("dct_s", math.inf)
            stalled_s = watch.stalled_s(done_at - dct_s, done_at)
    supervisor.wait(lambda: _has_ended(client), deadline - time.monotonic())
    return stalled_s


def has_timed_out(exit_code: int | None, late_s: float) -> bool:
    """Whether the client ran out of time; it may have given up itself before we look, `late_s` too late."""
    return exit_code is None or (exit_code != 0 and late_s >= 0)


def _is_done(endpoint: Endpoint) -> bool:
    return endpoint.metrics is not None or _has_ended(endpoint)


def _has_ended(endpoint: Endpoint) -> bool:
    return endpoint.exit_code is not None


def _folder_of(task: Task, pair: int) -> Path:
    return task.folder / "background" if pair else task.folder


def _environment(task: Task, log_folder: Path) -> dict[str, str]:
    recorded = {"QLOGDIR": str(log_folder), "SSLKEYLOGFILE": str(log_folder / "keys.log")}
    return environment(log_folder) | (recorded if task.capture else {})


def _outcome(endpoint: Endpoint) -> EndpointOutcome:
    return EndpointOutcome(
        ready=endpoint.ready,
        metrics=endpoint.metrics,
        complaint=endpoint.complaint,
        exit_code=endpoint.exit_code,
        stderr=endpoint.stderr,
    )


def _start_captures(task: Task, topology: Topology) -> list[subprocess.Popen[bytes]]:
    """Record the packets of all hosts that have endpoints, and wait until the recordings run."""
    captures = []
    for number, hosts in enumerate(topology.pairs[: len(task.pairs)]):
        folder = _folder_of(task, number)
        folder.mkdir(exist_ok=True)
        captures += [_capture(hosts.client, folder / "client.pcap")]
        captures += [_capture(hosts.server, folder / "server.pcap")]
    return captures


def _capture(host: Host, file: Path) -> subprocess.Popen[bytes]:
    what = ["-i", "any", "-n", "udp", "port", str(PORT)]
    # Each packet is written as it comes: none is in a buffer when the recording is ended.
    arguments = ["tcpdump", "--immediate-mode", "-U", "-Z", "root", "-w", str(file), *what]
    process: subprocess.Popen[bytes] = host.popen(arguments, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE)
    assert process.stderr
    _await_line(process.stderr, b"listening on", f"tcpdump in {host.name}")
    return process


def _await_line(stream: IO[bytes], part: bytes, who: str) -> None:
    said = []
    for line in stream:
        if part in line:
            return
        said.append(line.decode(errors="replace").strip())
    raise RuntimeError(f"{who} ended before it recorded: {' '.join(said)}")


def _stop_captures(captures: list[subprocess.Popen[bytes]]) -> None:
    for process in captures:
        process.terminate()
    for process in captures:
        process.wait(CAPTURE_LIMIT_S)
