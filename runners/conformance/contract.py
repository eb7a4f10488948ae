"""Whether an implementation meets the contract (quic-impls/README.md): its endpoints are started over
loopback, and each part of the contract is judged by itself, in words.

As root this happens in namespaces of its own, and endpoints are confined, as in a trial; else it is tried
over the machine's loopback, at a free port, with the rights of the user. Nobody else sees what endpoints
transfer. That a client verifies the content is known from one that is told to expect other content: it has
to fail.
"""

import json
import os
import signal
import socket
import time
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from fecbench.hints import nearest
from fecbench.runners.conformance import transfers, trust
from fecbench.runners.conformance.complaints import (
    how_ended,
    lines_of,
    problem_of_done,
    problem_of_start,
    problem_of_success,
)
from fecbench.runners.conformance.loopback import ADDRESS, CONTENT_SEED, DEADLINE_S, Loopback
from fecbench.runners.conformance.part import Part, part_of
from fecbench.runners.implementations.declaration import CONGESTION_CONTROL
from fecbench.runners.implementations.implementation import Implementation
from fecbench.runners.refusal import Refusal
from fecbench.runners.sandbox import rights
from fecbench.runners.sandbox.isolation import run_isolated
from fecbench.runners.tasks.task import ROLES, Role
from fecbench.runners.trial import certificates, cgroup
from fecbench.runners.trial.assignment import PORT, SERVER_NAME
from fecbench.runners.trial.confinement import StartError
from fecbench.runners.trial.endpoint import UNSUPPORTED, Endpoint
from fecbench.runners.trial.judging.plausibility import HANDSHAKE, problems_of_times
from fecbench.runners.trial.supervisor import OBEY_LIMIT_S
from fecbench.runners.trial.transfer import READY_LIMIT_S
from fecbench.runners.workloads import TOLD
from fecbench.runners.workloads.workload import COMPLETION, SAMPLE_BYTES
from fecbench.topologies import tcp
from fecbench.topologies.namespace import run_tool

UNKNOWN_WORKLOAD = {"name": "no-such-workload"}
OTHER_CONTENT_SEEDS = {1: "", CONTENT_SEED ^ 1: "lowest", CONTENT_SEED ^ 1 << 63: "highest"}
"""Seeds of other content, and the one bit in which they differ, if it is one."""
# How long an endpoint may take to refuse, and to end after its deadline.
END_LIMIT_S = 10.0
LIMIT_S = 300.0


def check(
    implementation: Implementation,
    folder: Path,
    reference: Implementation | None = None,
    *,
    keeps: bool = False,
) -> list[Part]:
    """Check all parts of the contract that can be tried, in order; `folder` takes the files of endpoints.

    `reference` tells whether the content of a download is right, if the two can talk to each other. With
    `keeps`, files of endpoints stay in `folder`, beside the certificates. Raises IsolationError if root
    cannot make namespaces.
    """
    certificates.write(folder, SERVER_NAME, implementation.declaration.certificates)
    if os.geteuid() != 0:
        return _examine(Loopback(implementation, folder, _free_port(), None, keeps=keeps), reference)
    name, user = cgroup.new_name(), rights.first_user(os.getpid())
    cgroup.usable()  # known before there are namespaces

    def answer() -> bytes:
        cgroup.enter(f"{name}.check")
        run_tool(["ip", "link", "set", "lo", "up"])
        _allow_congestion_control(implementation)
        parts = _examine(Loopback(implementation, folder, PORT, user, keeps=keeps), reference)
        return json.dumps([asdict(part) for part in parts]).encode()

    try:
        return [Part(**part) for part in json.loads(run_isolated(answer, LIMIT_S))]
    finally:
        cgroup.remove(name)


def _allow_congestion_control(implementation: Implementation) -> None:
    """Allow the TCP controller over loopback, as the topology of a trial does in its hosts."""
    controller = implementation.options({}, "the defaults").get(CONGESTION_CONTROL)
    if implementation.declaration.transport == "tcp" and controller in tcp.controllers():
        route = f"local {ADDRESS} dev lo table local"
        run_tool(["ip", "-batch", "-"], tcp.controlled([route], str(controller)))


def _free_port() -> int:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as free:
        free.bind((ADDRESS, 0))
        return int(free.getsockname()[1])


def _examine(loopback: Loopback, reference: Implementation | None) -> list[Part]:
    examination = Examination(loopback, reference)
    examination.programs()
    if all(part.good for part in examination.parts):
        examination.endpoints()
    return examination.parts


class Examination:
    """Tries an implementation, and notes what it keeps of the contract."""

    def __init__(self, loopback: Loopback, reference: Implementation | None) -> None:
        self.parts: list[Part] = []
        self._reference = reference
        self._implementation = loopback.implementation
        self._loopback = loopback
        self._failures: dict[str, Endpoint] = {}

    def _note(self, part: str, problem: str, good: str, tried: bool = True) -> None:
        self.parts.append(part_of(part, problem, good, tried))

    def programs(self) -> None:
        """Whether its workloads and programs are there, and take its default options."""
        name = self._implementation.declaration.name
        for workload in self._implementation.declaration.workloads:
            if workload not in TOLD:
                problem = f"there is no workload {workload!r}; {nearest(workload, TOLD)}"
                self._note("workloads", problem, "")
        try:
            self._implementation.check_built()
            self._note("programs", "", ", ".join(map(str, self._implementation.programs())))
        except Refusal as refusal:
            self._note("programs", str(refusal), "")
            return
        if self._implementation.check_command() is not None:
            try:
                self._implementation.check_together({}, name)
                self._note("check", "", "the default options fit together")
            except Refusal as refusal:
                self._note("check", str(refusal), "")

    def endpoints(self) -> None:
        """Try endpoints with the workloads that they support, and with one that nobody supports.

        If the first transfer fails, nothing else is tried: it would show nothing.
        """
        supported = [name for name in TOLD if name in self._implementation.declaration.workloads]
        try:
            for name in supported:
                if not self._transfer(self._sample(name)) and name == supported[0]:
                    return
            for role in ROLES:
                self._unknown_workload(role)
            self._lines_at_failure()
            if all(part.good for part in self.parts):
                self._further()
        except OSError as error:
            self._note("start", f"{error.filename} cannot be started: {error.strerror}", "")
        except StartError as error:
            self._note("start", str(error), "")
        finally:
            self._loopback.end()

    def _sample(self, name: str) -> dict[str, Any]:
        """Return the sample of a workload, with a delivery of messages that the implementation has."""
        sample, deliveries = dict(TOLD[name].sample), self._implementation.declaration.deliveries
        return sample | {"delivery": deliveries[0]} if "delivery" in sample else sample

    def _further(self) -> None:
        """Try what needs an implementation that can transfer."""
        supported = [name for name in TOLD if name in self._implementation.declaration.workloads]
        for name in supported:
            self._note_all(transfers.sizes(self._loopback, name))
        if supported:
            self._note_all(transfers.fec(self._loopback, [self._sample(name) for name in supported]))
            self._note_all(trust.parts(self._loopback, self._sample(supported[0]), self._loopback.folder))
        if "download" in supported:
            self._note_all(transfers.of_series(self._loopback, TOLD["download"].sample))
            self._note_all(transfers.deadline(self._loopback, TOLD["download"].sample))
        if "download" not in supported:
            return
        if self._reference is None:
            why = "no other implementation that tells is built: make build"
            self._note_all([part_of(transfers.CONTENT, "", why, tried=False)])
        else:
            self._note_all(transfers.content(self._loopback, self._loopback.place_for(self._reference)))

    def _note_all(self, parts: Iterable[Part]) -> None:
        """Note them, and what follows from nothing that is wrong."""
        if all(part.good for part in self.parts):
            self.parts.extend(parts)

    def _transfer(self, workload: Mapping[str, Any]) -> bool:
        """Run a server, a client that succeeds and, if the client receives, one that expects other content.

        Return whether the first client succeeded.
        """
        name, start_s = workload["name"], time.monotonic()
        server = self._loopback.start("server", workload)
        self._loopback.await_ready(server)
        took_s = time.monotonic() - start_s
        self._note(
            f"{name}: ready",
            problem_of_start(server, READY_LIMIT_S),
            f"the server was ready after {took_s:.3f} s",
        )
        works = False
        if server.ready:
            works = self._client(workload)
            if not works:
                self._loopback.end()
                return False
            if TOLD[name].verifier == "client":
                self._client_of_other_content(workload)
            self._end_of_server(name, server)
        self._failures[f"{name}: the server"] = server
        self._loopback.end()
        return works

    def _client(self, workload: Mapping[str, Any]) -> bool:
        """Run a client, and return whether it succeeded."""
        name, start_s = workload["name"], time.monotonic()
        client = self._loopback.start("client", workload)
        self._loopback.await_end(client, DEADLINE_S + END_LIMIT_S)
        lasted_s = time.monotonic() - start_s
        self._failures[f"{name}: the client"] = client
        self._note(
            f"{name}: {SAMPLE_BYTES} bytes", problem_of_success("client", client), "the client succeeded"
        )
        if client.exit_code != 0 and not client.complaint:
            return False
        if self._loopback.dialogue is not None and name == "requests":
            object_count = self._loopback.dialogue.ended
            problem = "" if object_count else "the client read what to ask for, and said nothing of an object"
            self._note(
                f"{name}: objects",
                problem,
                f"the client said of {object_count} objects that they have arrived",
            )
        self._note(f"{name}: the client's done", problem_of_done("client", client), _reported(client))
        if client.metrics is not None:
            problem = problem_of_metrics(client.metrics, lasted_s)
            self._note(
                f"{name}: {COMPLETION} and {HANDSHAKE}", problem, f"the client ran for {lasted_s:.3f} s"
            )
        return True

    def _client_of_other_content(self, workload: Mapping[str, Any]) -> None:
        name = workload["name"]
        for content_seed, differs in OTHER_CONTENT_SEEDS.items():
            client = self._loopback.start("client", workload, content_seed)
            self._loopback.await_end(client, DEADLINE_S + END_LIMIT_S)
            self._failures[f"{name}: the client that expects other content"] = client
            if problem := _problem_of_other_content(client, differs):
                self._note(f"{name}: content", problem, "")
                return
        self._note(f"{name}: content", "", "a client that expects other content fails")

    def _end_of_server(self, name: str, server: Endpoint) -> None:
        if server.exit_code is not None:
            problem = f"before SIGINT the server {how_ended(server)}; it must serve on"
            self._note(f"{name}: SIGINT", problem, "")
            return
        server.signal(signal.SIGINT)
        self._loopback.await_end(server, OBEY_LIMIT_S)
        problem = problem_of_success("server", server)
        if server.exit_code is None:
            problem = f"the server still runs {OBEY_LIMIT_S:g} s after SIGINT"
        self._note(f"{name}: SIGINT", problem, "the server exited with 0")
        self._note(f"{name}: the server's done", problem_of_done("server", server), _reported(server))

    def _unknown_workload(self, role: Role) -> None:
        endpoint = self._loopback.start(role, UNKNOWN_WORKLOAD)
        self._loopback.await_end(endpoint, END_LIMIT_S)
        self._failures[f"unknown workload: the {role}"] = endpoint
        problem = ""
        if endpoint.exit_code is None:
            problem = f"the {role} runs on for {END_LIMIT_S:g} s; it must exit with {UNSUPPORTED}"
        elif endpoint.exit_code != UNSUPPORTED:
            problem = f"the {role} {how_ended(endpoint)}; it must exit with {UNSUPPORTED}"
        self._note(f"unknown workload: the {role}", problem, f"it exited with {UNSUPPORTED}")
        self._loopback.end()

    def _lines_at_failure(self) -> None:
        """Whether each endpoint that failed by itself left one line on standard error."""
        counts = {
            who: len(lines_of(endpoint))
            for who, endpoint in self._failures.items()
            if endpoint.exit_code is not None and endpoint.exit_code > 0
        }
        wrong = ", ".join(f"{who} wrote {count}" for who, count in counts.items() if count != 1)
        problem = f"lines on standard error: {wrong}; one line must tell of a failure" if wrong else ""
        self._note("lines at failure", problem, f"{len(counts)} failures, one line each on standard error")


def _problem_of_other_content(client: Endpoint, differs: str) -> str:
    if client.exit_code is None:
        return "a client that expects other content does not end; it must verify the content, and fail"
    if client.exit_code == 0 and differs:
        return (
            f"a client whose content_seed differs in its {differs} bit succeeds; all of its 64 bits must be"
            " used (JSON readers may round it: content_seed_hex)"
        )
    if client.exit_code == 0:
        return "a client that expects other content succeeds; it must verify the content, and fail"
    if client.exit_code == UNSUPPORTED:
        means = "which means that it is not supported"
        return f"a client that expects other content exited with {UNSUPPORTED}, {means}"
    return ""


def _reported(endpoint: Endpoint) -> str:
    return f"its last line, with {', '.join(endpoint.metrics or {}) or 'no metrics'}"


def problem_of_metrics(metrics: Mapping[str, float], lasted_s: float) -> str:
    """Return which times of a client that ran for `lasted_s` are missing or impossible; or nothing."""
    problems = [f"{name} is missing" for name in (COMPLETION, HANDSHAKE) if name not in metrics]
    problems += problems_of_times(metrics, COMPLETION, lasted_s)
    return "; ".join(problems)
