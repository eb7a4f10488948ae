"""Runs one trial: topology, droppers, endpoints, and the counters that the judge needs.

It is meant to run as the first process of namespaces of its own (`isolation`). It measures and reports;
whether the trial can be vouched for is decided by the judge (`judge`).
"""

import resource
import subprocess
from contextlib import nullcontext

from fecbench.dropper import command as dropper_command
from fecbench.dropper.command import Attachment, DropperError, Filter
from fecbench.runners.sandbox import priority
from fecbench.runners.sandbox.rights import OPEN_FILES
from fecbench.runners.tasks.outcome import DropperOutcome, Outcome
from fecbench.runners.tasks.task import FIELD, VIRTUAL, Task
from fecbench.runners.trial import capture
from fecbench.runners.trial.phases import Phases
from fecbench.runners.trial.site import Site
from fecbench.runners.trial.transfer import pair_folder, run_endpoints
from fecbench.topologies import topology as emulation
from fecbench.topologies.link import Direction
from fecbench.topologies.topology import Topology


def load_mininet() -> None:
    """Load Mininet, once in a process that runs many trials. Other engines need none."""
    import fecbench.topologies.network  # noqa: F401


def run(task: Task, site: Site, first_user: int, *, ahead: bool = False) -> Outcome:
    """The outcome of one trial; its endpoints run as `first_user` and those after it. If they run `ahead` of
    other programs, so does what watches them; what sets the trial up does not.

    `failure` has the failures of the harness itself.
    """
    outcome = Outcome()
    phases = Phases()
    try:
        _run(task, site, first_user, outcome, phases, ahead=ahead)
    except (OSError, RuntimeError, ValueError, subprocess.SubprocessError) as error:
        outcome.failure = f"{type(error).__name__}: {error}"
    outcome.phases_s = phases.seconds
    return outcome


def _run(task: Task, site: Site, first_user: int, outcome: Outcome, phases: Phases, *, ahead: bool) -> None:
    # Mininet's mnexec closes every number below the limit, open or not.
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (OPEN_FILES, most))
    if task.backend == VIRTUAL or task.backend == FIELD:
        raise ValueError("no link of it is emulated: it is no trial of namespaces")
    site.folder.mkdir()
    with phases("topology"):
        settings = {name: task.settings_of(name) for name in task.links}
        late_bounds_us = {name: link.late_bound_us for name, link in task.links.items()}
        network = emulation.build(task.topology, settings, task.backend, late_bounds_us, task.family)
    with network:
        outcome.backend = network.backend
        with phases("droppers"):
            droppers = _attach_droppers(task, network)
        captures = _start_captures(task, site, network) if task.capture else []
        with priority.ahead_of_others() if ahead else nullcontext():
            timing = run_endpoints(task, site, first_user, network, outcome, phases)
        with phases("results"):
            # Frozen first: no packet moves while the counters of the links and of the droppers are read.
            outcome.links = network.finish()
            if timing is not None:
                timing.complete(task, outcome)
            for (link, direction), where in droppers.items():
                outcome.droppers.setdefault(link, {})[direction] = _read_dropper(where)
        capture.stop(captures)
        with phases("teardown"):
            network.close()


def _attach_droppers(task: Task, topology: Topology) -> dict[tuple[str, Direction], Attachment]:
    """Attach one dropper per direction of each link, at the ingress of the next hop."""
    attachments = {}
    judged = Filter(family=task.family, port=task.port)
    for (link, direction), place in topology.exits.items():
        where = Attachment(netns=place.netns_path, interface=place.interface, direction="ingress")
        model = task.links[link].models[direction]
        dropper_command.attach(where, model, task.losses_seed(link, direction), judged)
        attachments[link, direction] = where
    return attachments


def _read_dropper(where: Attachment) -> DropperOutcome:
    verdicts = dropper_command.log(where)
    counters = verdicts.counters
    if verdicts.packets != counters.seen:
        raise DropperError(f"{where.interface}: {counters.seen} packets seen, {verdicts.packets} in the log")
    arrivals = None if verdicts.arrivals_ns is None else verdicts.arrivals_ns.astype("<u8").tobytes()
    return DropperOutcome(
        counters=counters, packets=verdicts.packets, bitmap=verdicts.bitmap, arrivals=arrivals
    )


def _start_captures(task: Task, site: Site, topology: Topology) -> list[subprocess.Popen[bytes]]:
    """Record the packets of all hosts that have endpoints."""
    files = []
    for number, hosts in enumerate(topology.pairs[: len(task.pairs)]):
        folder = pair_folder(site, number)
        folder.mkdir(exist_ok=True)
        files += [(hosts.client, folder / "client.pcap"), (hosts.server, folder / "server.pcap")]
    if topology.relay is not None:
        files.append((topology.relay, pair_folder(site, 0) / "relay.pcap"))
    return capture.start(files, task.port)
