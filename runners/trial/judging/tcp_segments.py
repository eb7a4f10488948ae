"""Whether a TCP segment was a frame: what the kernel says that it sent, beside what came to the links.

Where segments travel as one super-packet (TSO, GSO), fewer frames come than were sent; where an endpoint does
not tell of all, more. The kernel counts neither the SYN-ACK nor what follows an endpoint's last look at its
counters: what closes the connection on each path, and an acknowledgement of each packet that comes later.
"""

from collections.abc import Iterator, Mapping

from fecbench.runners.implementations.declaration import PATHS
from fecbench.runners.tasks.outcome import Outcome
from fecbench.runners.tasks.task import ROLES, Role, Task, endpoint_name
from fecbench.topologies.link import MTU, Direction

Metrics = Mapping[str, float]
SENT, RECEIVED = "packets_sent", "packets_received"
_DIRECTIONS: Mapping[Role, Direction] = {"client": "up", "server": "down"}


def problems(task: Task, outcome: Outcome, metrics: Mapping[str, Metrics]) -> Iterator[str]:
    """Yield what is impossible in a trial whose packets are TCP's, a sentence each; nothing for other
    trials."""
    for role in ROLES:
        ends = {endpoint_name(number, role): pair.end(role) for number, pair in enumerate(task.pairs)}
        names = [name for name, end in ends.items() if end.transport == "tcp"]
        reports = [report.directions[_DIRECTIONS[role]] for report in outcome.links.values()]
        if not names:
            continue
        is_usual = all(link.settings.of(_DIRECTIONS[role]).mtu_bytes == MTU for link in task.links.values())
        too_long = sum(report.oversize_dropped for report in reports)
        if too_long and is_usual:
            yield f"{too_long} frames {_DIRECTIONS[role]} were longer than the MTU, and TCP sends none"
        frames = sum(report.frames_in for report in reports)
        sent = sum(metrics.get(name, {}).get(SENT, 0) for name in names)
        if sent > frames:
            excess = f"{SENT} = {sent:g}: but {frames} frames came to the links {_DIRECTIONS[role]}"
            yield f"{' and '.join(names)}: {excess}: segments travelled as one"
        copied = any(link.settings.has_duplicates for link in task.links.values())
        if len(task.pairs) == 1 and not copied and SENT in metrics.get(role, {}):
            yield from _untold(task, outcome, metrics, role, frames)


def _untold(
    task: Task, outcome: Outcome, metrics: Mapping[str, Metrics], role: Role, frames: int
) -> Iterator[str]:
    own, peer = metrics[role], metrics.get("server" if role == "client" else "client", {})
    direction = _DIRECTIONS[role]
    unjudged = sum(of_link[direction].counters.other for of_link in outcome.droppers.values())
    late = max(0.0, peer.get(SENT, 0) - own.get(RECEIVED, 0))
    closing = task.validity.closing_packets * task.pairs[0].end(role).options.get(PATHS, 1)
    most = own[SENT] + closing + unjudged + late
    if frames > most:
        yield f"{role}: {SENT} = {own[SENT]:g}: but {frames} frames came to the links {direction}"
