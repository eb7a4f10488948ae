"""Runs one trial: topology, droppers, endpoints, and the counters that the judge needs.

It is meant to run as the first process of namespaces of its own (runners.isolation). It measures and
reports; whether the trial can be vouched for is decided in runners.verification.
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
from runners import starvation
from runners.endpoint import Endpoint, Role, Supervisor, assignment, command
from runners.messages import DropperOutcome, EndpointOutcome, Outcome, Task, loss_name
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
    with phases("server_start"):
        server = _start(task, "server", topology, supervisor)
        ready = supervisor.wait(lambda: server.ready or server.exit_code is not None, READY_LIMIT_S)
    if not ready or not server.ready:
        supervisor.end(server)
        outcome.endpoints = {"server": _outcome(server)}
        return
    with phases("client"):
        client = _start(task, "client", topology, supervisor)
        outcome.stalled_s = _follow(client, server, supervisor, task.timeout_s)
        outcome.timed_out = client.exit_code is None
    with phases("endpoints_end"):
        supervisor.end(client)
        supervisor.end(server)
    outcome.endpoints = {"client": _outcome(client), "server": _outcome(server)}


def _follow(client: Endpoint, server: Endpoint, supervisor: Supervisor, timeout_s: float) -> float | None:
    """Await the client's end or the time limit: for how long the endpoints were kept from running, in s.

    What counts is the completion time, not the start of a program. None when the kernel does not tell.
    """
    deadline = time.monotonic() + timeout_s
    stalled_s = None
    if starvation.is_known():
        with starvation.Watch((client.process.pid, server.process.pid)) as watch:
            while not supervisor.wait(lambda: _is_done(client), starvation.INTERVAL_S):
                if time.monotonic() > deadline:
                    break
                watch.sample()
            done_at = time.monotonic()
            dct_s = (client.metrics or {}).get("dct_s", math.inf)
            stalled_s = watch.stalled_s(done_at - dct_s, done_at)
    supervisor.wait(lambda: client.exit_code is not None, deadline - time.monotonic())
    return stalled_s


def _is_done(endpoint: Endpoint) -> bool:
    return endpoint.metrics is not None or endpoint.exit_code is not None


def _start(task: Task, role: Role, topology: Topology, supervisor: Supervisor) -> Endpoint:
    host = topology.server if role == "server" else topology.client
    log_folder = task.folder / role
    log_folder.mkdir()
    document = assignment(
        role,
        address=topology.server.address,
        port=PORT,
        server_name=SERVER_NAME,
        workload=task.workload,
        content_seed=task.seeds["content"],
        options=task.options,
        certificates=task.certificates,
        log_folder=log_folder,
        deadline_s=task.timeout_s,
    )
    arguments = command(task.commands[role], document, task.folder)
    process: subprocess.Popen[bytes] = host.popen(
        arguments,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=log_folder,
        env=_environment(task, log_folder),
    )
    return supervisor.follow(role, process)


def _environment(task: Task, log_folder: Path) -> dict[str, str]:
    """The environment of an endpoint: nothing is inherited, so that it is the same on every machine."""
    environment = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LANG": "C.UTF-8", "HOME": str(log_folder)}
    if task.capture:
        environment["QLOGDIR"] = str(log_folder)
        environment["SSLKEYLOGFILE"] = str(log_folder / "keys.log")
    return environment


def _outcome(endpoint: Endpoint) -> EndpointOutcome:
    return EndpointOutcome(
        ready=endpoint.ready,
        metrics=endpoint.metrics,
        complaint=endpoint.complaint,
        exit_code=endpoint.exit_code,
        stderr=endpoint.stderr,
    )


def _start_captures(task: Task, topology: Topology) -> list[subprocess.Popen[bytes]]:
    """Record the packets of both hosts, and wait until both recordings run."""
    return [_capture(host, task.folder / f"{host.name}.pcap") for host in (topology.client, topology.server)]


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
