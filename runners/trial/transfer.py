"""Starts the endpoints of a trial, and follows what they transfer until its end or the time limit."""

import math
import time
from pathlib import Path

from fecbench.runners import workloads
from fecbench.runners.implementations.declaration import CONGESTION_CONTROL, ECN, PATHS
from fecbench.runners.tasks.outcome import Competition, EndpointOutcome, Outcome
from fecbench.runners.tasks.requests import Dialogue, Object, Progress
from fecbench.runners.tasks.series import SeriesError
from fecbench.runners.tasks.task import (
    RELAY,
    ROLES,
    EndpointTask,
    Place,
    Role,
    Task,
    endpoint_name,
    pair_name,
)
from fecbench.runners.trial import certificates, competition, logs, own_report, starvation
from fecbench.runners.trial.asking import Asker
from fecbench.runners.trial.assignment import assignment, command, papers, upstream
from fecbench.runners.trial.confinement import CANNOT_START, Cell, StartError
from fecbench.runners.trial.endpoint import Endpoint
from fecbench.runners.trial.interop_endpoints import InteropEndpoint, Stage, Timing, open_port
from fecbench.runners.trial.phases import Phases
from fecbench.runners.trial.site import Site
from fecbench.runners.trial.starvation import Watch
from fecbench.runners.trial.supervisor import Supervisor
from fecbench.runners.workloads import asked_series
from fecbench.topologies import counters
from fecbench.topologies.topology import Host, Topology

READY_LIMIT_S = 10.0


def run_endpoints(
    task: Task, site: Site, first_user: int, topology: Topology, outcome: Outcome, phases: Phases
) -> Timing | None:
    """Servers, then clients; `outcome` gets how they ended and what was measured meanwhile.

    The result is the timing of a client of the interop contract, which completes the outcome when the link
    has reported.
    """
    supervisor = Supervisor()
    runs = [_Run(task, site, number, topology, supervisor, first_user) for number in range(len(task.pairs))]
    if task.has_interop:
        for run in runs:
            open_port(task, run.hosts.server)
    try:
        _serve_and_transfer(task, topology, runs, supervisor, outcome, phases)
    except StartError as error:
        outcome.endpoints[error.endpoint] = EndpointOutcome(exit_code=CANNOT_START, stderr=str(error))
    with phases("endpoints_end"), supervisor.watching(supervisor.endpoints) as watch:
        for run in runs:
            run.end()
        outcome.hindered_s["endpoints_end"] = watch.hindered_s()
    outcome.endpoints |= {
        endpoint.name: run.outcome(role, endpoint) for run in runs for role, endpoint in run.endpoints.items()
    }
    outcome.said = runs[0].said
    with phases("logs"):
        for run in runs:
            run.keep_logs()
    return runs[0].timing


def _serve_and_transfer(
    task: Task,
    topology: Topology,
    runs: list["_Run"],
    supervisor: Supervisor,
    outcome: Outcome,
    phases: Phases,
) -> None:
    """Raises StartError."""
    with phases("server_start"):
        servers = [run.start("server", task.timeout_s) for run in runs]
        if task.has_relay:
            servers.append(runs[0].start(RELAY, task.timeout_s))
        with supervisor.watching(servers) as watch:
            supervisor.wait(lambda: all(map(_is_up_or_gone, servers)), READY_LIMIT_S)
            outcome.hindered_s["server_start"] = watch.hindered_s()
        for server in servers:
            server.was_slow = not (server.ready or _has_ended(server))
    if all(server.ready for server in servers):
        with phases("client"):
            _transfer(task, topology, runs, supervisor, outcome)


def pair_folder(site: Site, pair: int) -> Path:
    """Return the folder for the files of a pair; each endpoint has the folder of its role in it."""
    return site.folder / pair_name(pair)


class _Run:
    """The endpoints of a pair that have been started, the client first, and what starts them."""

    def __init__(
        self,
        task: Task,
        site: Site,
        number: int,
        topology: Topology,
        supervisor: Supervisor,
        first_user: int,
    ) -> None:
        self._task, self._site, self._number, self._supervisor = task, site, number, supervisor
        self._first_user = first_user + len(ROLES) * number
        self.pair = task.pairs[number]
        self._topology = topology
        self.hosts = topology.pairs[number]
        self._started: dict[Place, Endpoint] = {}
        self._log_folders: list[Path] = []
        self._stage = Stage(task, site, number, self.hosts, pair_folder(site, number))
        self._dialogue: Dialogue | None = None
        self._asker: Asker | None = None
        self.timing: Timing | None = None
        """Times of a client of the interop contract."""

    @property
    def endpoints(self) -> dict[Place, Endpoint]:
        """The endpoints that were started, from the client to the server."""
        return {role: self._started[role] for role in self._task.places if role in self._started}

    def start(self, role: Place, deadline_s: float) -> Endpoint:
        task, folder = self._task, pair_folder(self._site, self._number)
        end, host = self.pair.client if role == RELAY else self.pair.end(role), self._host(role)
        if end.transport == "tcp":
            self._topology.set_tcp(
                host,
                end.options.get(CONGESTION_CONTROL, ""),
                end.options.get(PATHS, 1),
                ecn=end.options.get(ECN, False),
            )
        log_folder = self._log_folder(role)
        user = self._first_user + (ROLES.index(role) if role != RELAY else len(ROLES))
        cell = Cell(endpoint_name(self._number, role), user, log_folder)
        cell.make_log_folder()
        self._log_folders.append(log_folder)
        if end.interop is not None and role != RELAY:
            self._started[role] = self._start_interop(role, end, cell)
            return self._started[role]
        document = assignment(
            role,
            end,
            workload=self.pair.workload,
            content_seed=task.content_seed,
            server_address=self._host(RELAY if task.has_relay and role != "server" else "server").address,
            upstream=upstream(self.pair, self.hosts.server.address, task.port) if role == RELAY else None,
            local_addresses=host.addresses,
            certificates=certificates.of_kind(self._site.certificates, self.pair.certificates),
            log_folder=log_folder,
            deadline_s=deadline_s,
            port=task.port,
        )
        program = self._site.commands[end.implementation]["client" if role == "client" else "server"]
        started = command(program, document, folder)
        process = cell.start(
            host.popen_prepared,
            started,
            folders=self._site.folders(end.implementation),
            papers=papers(started, document),
            variables=recorded(log_folder) if task.capture else {},
            reads=role == "client" and self.pair.session is not None,
        )
        self._started[role] = endpoint = self._supervisor.follow(cell.endpoint, process)
        asks = workloads.of(self.pair.workload).conversation(self.pair.session) if role == "client" else None
        if asks is not None:
            self._dialogue = Dialogue(asks)
            self._asker = Asker(endpoint, self._dialogue, self._supervisor)
        return endpoint

    def _start_interop(self, role: Role, end: EndpointTask, cell: Cell) -> Endpoint:
        process = self._stage.start(role, end, cell)
        endpoint = self._supervisor.follow(cell.endpoint, process, InteropEndpoint)
        assert isinstance(endpoint, InteropEndpoint)
        if role == "server":
            endpoint.look_for_port = (self.hosts.server.pid, self._task.port)
        elif (downloads := self._stage.downloads) is not None:
            self._supervisor.listen(downloads.events, downloads.note)
            self.timing = Timing(downloads)
        return endpoint

    def end(self) -> None:
        """End the client first: an ended server serves nobody any more."""
        if self._asker is not None:
            self._asker.close()
        for endpoint in self.endpoints.values():
            self._supervisor.end(endpoint)

    @property
    def said(self) -> list[Object | Progress]:
        """Messages of the client about objects."""
        return self._dialogue.said if self._dialogue is not None else []

    def outcome(self, role: Place, endpoint: Endpoint) -> EndpointOutcome:
        if isinstance(endpoint, InteropEndpoint):
            assert role != RELAY
            return self._outcome_of_interop(role, endpoint)
        if role == RELAY:  # it leaves no series
            return endpoint.outcome()
        limits = asked_series(self.pair.end(role), self.pair.workload)
        return endpoint.outcome_with_series(self._log_folder(role), limits)

    def _outcome_of_interop(self, role: Role, endpoint: InteropEndpoint) -> EndpointOutcome:
        outcome = endpoint.outcome()
        endpoint.end_group()
        outcome.served_to_the_end = role == "server" and endpoint.was_asked_to_end
        if endpoint.exit_code == 0 and not endpoint.was_asked_to_end:
            end_problem = "ended, and a server serves until it is asked to end"
            outcome.complaint = self._stage.problem() if role == "client" else end_problem
        if outcome.served_to_the_end or (endpoint.exit_code == 0 and not outcome.complaint):
            self._take_own_report(role, outcome)
        return outcome

    def _take_own_report(self, role: Role, outcome: EndpointOutcome) -> None:
        """Take the own report of an endpoint of the interop contract, except for its completion time."""
        series = asked_series(self.pair.end(role), self.pair.workload)
        try:
            report = own_report.read(self._log_folder(role))
            outcome.series = report.tables(series)
        except SeriesError as error:
            outcome.complaint = str(error)
            return
        metrics = {name: value for name, value in report.metrics.items() if name != self._task.completion}
        outcome.metrics = metrics or None

    def keep_logs(self) -> None:
        """Have what the endpoints left in their log folders on the disk."""
        for folder in self._log_folders:
            logs.keep(folder)
        self._stage.close()

    def _host(self, place: Place) -> Host:
        if place == RELAY:
            assert self._topology.relay is not None
            return self._topology.relay
        return self.hosts.client if place == "client" else self.hosts.server

    def _log_folder(self, role: Place) -> Path:
        return pair_folder(self._site, self._number) / role


def recorded(log_folder: Path) -> dict[str, str]:
    """The variables that ask an endpoint to record."""
    return {"QLOGDIR": str(log_folder), "SSLKEYLOGFILE": str(log_folder / "keys.log")}


def _transfer(
    task: Task, topology: Topology, runs: list[_Run], supervisor: Supervisor, outcome: Outcome
) -> None:
    """The measured transfer, beside that of the second pair if there is one."""
    deadline = time.monotonic() + task.timeout_s
    foreground, *neighbours = runs
    for background in neighbours:
        if background.pair.begins_s is not None:
            continue
        start_s = time.monotonic()
        client = background.start("client", task.timeout_s)
        if not _await_full(task, topology, client, supervisor, deadline):
            outcome.background_lasted = not _has_ended(client)
            outcome.timed_out = has_timed_out(client.exit_code, time.monotonic() - deadline)
            return
        filled_s = outcome.competition.filling_s if outcome.competition is not None else 0.0
        outcome.competition = Competition(filling_s=filled_s + time.monotonic() - start_s)
    discarded, backlog_drops = topology.discarded(), counters.backlog_drops()
    topology.start()
    start_s = time.monotonic()
    clients = None
    if outcome.competition is not None:
        clients = competition.Clients([run.hosts.client.received_bytes for run in runs], supervisor)
    client = foreground.start("client", deadline - start_s)
    for number, background in enumerate(neighbours):
        _set_alarms(f"neighbour {number}", background, supervisor, start_s, deadline)
    watch = _follow(client, task.completion, supervisor, deadline, outcome)
    if clients is not None:
        clients.read()
    if foreground.timing is not None:
        foreground.timing.watch = watch
    outcome.client_s = time.monotonic() - start_s
    for (node, place), count in (topology.discarded() - discarded).items():
        outcome.discarded.setdefault(node, {})[place] = count
    outcome.backlog_drops = counters.backlog_drops() - backlog_drops
    supervisor.wait(lambda: _has_ended(client), deadline - time.monotonic())
    outcome.timed_out = has_timed_out(client.exit_code, time.monotonic() - deadline)
    supervisor.forget_alarms()
    if outcome.competition is not None and clients is not None:
        outcome.background_lasted = not any(
            _has_ended(run.endpoints["client"]) and not run.endpoints["client"].was_asked_to_end
            for run in neighbours
            if "client" in run.endpoints
        )
        # A program needs time to start, and to end: neither is of its transfer.
        reported_s = (client.metrics or {}).get(task.completion, math.inf)
        lasted_s, (own, *theirs) = clients.rates_mbps(reported_s)
        outcome.competition.foreground_mbps, outcome.competition.background_mbps = own, sum(theirs)
        outcome.competition.lasted_s = lasted_s


def _set_alarms(name: str, background: _Run, supervisor: Supervisor, begun_s: float, deadline: float) -> None:
    """Have a neighbour join and leave while the measured transfer runs, which began at `begun_s`."""
    joins_s, lasts_s = background.pair.begins_s, background.pair.lasts_s

    def join() -> None:
        background.start("client", deadline - time.monotonic())

    def leave() -> None:
        background.endpoints["client"].ask_to_end()

    if joins_s is not None:
        supervisor.set_alarm(f"{name} joins", begun_s + joins_s, join)
    if lasts_s is not None:
        supervisor.set_alarm(f"{name} leaves", begun_s + (joins_s or 0.0) + lasts_s, leave)


def _await_full(
    task: Task, topology: Topology, client: Endpoint, supervisor: Supervisor, deadline: float
) -> bool:
    """Whether the first link is full downwards before the client has ended or the deadline has passed."""
    (name, link), *_ = task.links.items()
    filling = competition.Filling(link.settings)
    while not supervisor.wait(lambda: _has_ended(client), competition.INTERVAL_S):
        now = time.monotonic()
        if filling.is_full(now, topology.carried_bytes(name, "down")):
            return True
        if now > deadline:
            return False
    return False


def _follow(
    client: Endpoint, completion: str, supervisor: Supervisor, deadline: float, outcome: Outcome
) -> Watch:
    """Await the client's report or the time limit: `outcome` gets how long endpoints lacked the CPU.

    A stall counts within the time that the client's metric `completion` covers, not at the start of a
    program.
    """
    with supervisor.watching(supervisor.endpoints) as watch:
        supervisor.wait(lambda: _is_done(client), deadline - time.monotonic())
        done_at = time.monotonic()
        lasted_s = (client.metrics or {}).get(completion, math.inf)
        if starvation.is_known():
            outcome.stalled_s = watch.stalled_s(done_at - lasted_s, done_at)
        outcome.longest_gap_s, outcome.stolen_s = watch.longest_gap_s, watch.stolen_s()
    return watch


def has_timed_out(exit_code: int | None, late_s: float) -> bool:
    """Whether the client ran out of time; it may have given up itself before we look, `late_s` too late."""
    return exit_code is None or (exit_code != 0 and late_s >= 0)


def _is_done(endpoint: Endpoint) -> bool:
    return endpoint.metrics is not None or _has_ended(endpoint)


def _is_up_or_gone(server: Endpoint) -> bool:
    server.look()
    return server.ready or _has_ended(server)


def _has_ended(endpoint: Endpoint) -> bool:
    return endpoint.exit_code is not None
