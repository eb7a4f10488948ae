"""A recording of irtt: round-trip times, and what was lost."""

from fecbench.errors import BadInput
from fecbench.runners.paths.path import Path
from fecbench.runners.paths.probes import Probe, path_of
from fecbench.topologies.link_formats import irtt
from fecbench.topologies.trace import TraceError


def path(content: bytes) -> Path:
    """Return the path of a recording. Raises BadInput, without the name of the file."""
    try:
        answers = irtt.answers(content)
        lost = irtt.lost_by_direction(content)
    except TraceError as error:
        raise BadInput(str(error)) from None
    notes = [f"Of the lost probes, {lost['up']} were lost up and {lost['down']} down."] if lost else []
    return path_of([Probe(at_s, rtt_ms) for at_s, rtt_ms in answers], "irtt", notes=notes)
