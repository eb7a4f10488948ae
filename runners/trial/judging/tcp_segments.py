"""Whether a TCP segment was a frame: what the kernel says that it sent, beside what came to the links.

Where segments travel as one super-packet (TSO, GSO), fewer frames come than were sent. Where more came than
an endpoint has counted, `plausibility` says so, as of any packets.
"""

from collections.abc import Iterator, Mapping

from fecbench.runners.tasks.outcome import Outcome
from fecbench.runners.tasks.task import ROLES, Role, Task, endpoint_name
from fecbench.topologies.link import MTU, Direction

Metrics = Mapping[str, float]
SENT = "packets_sent"
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
