"""Trials of the check over an emulated link. How long they take is not looked at."""

from typing import Any

from fecbench.runners.tasks.demand import Demand
from fecbench.runners.tasks.task import CONTENT, EndpointTask, LinkTask, PairTask, Task, seed_name
from fecbench.runners.tasks.validity import USUAL, Validity
from fecbench.runners.workloads.workload import COMPLETION
from fecbench.topologies.link import Direction, LinkSettings

TIMEOUT_S = 20.0
LINK = "internet"
_SETTINGS = LinkSettings.symmetric(bandwidth_mbps=100, owd_ms=1)
_VALIDITY = Validity(stall_share=1000, stolen_share=1000, late_frames_share=1, late_time_share=1000)


def download(
    client: EndpointTask, server: EndpointTask, size_bytes: int, losses: dict[Direction, dict[str, Any]]
) -> Task:
    """A download over a fast link with these losses."""
    return Task(
        topology="single-path",
        backend="wire",
        links={
            LINK: LinkTask(settings=_SETTINGS, late_bound_us=USUAL.late_bound_us(_SETTINGS), losses=losses)
        },
        seeds={CONTENT: 2**64 - 1, seed_name(LINK, "up"): 0, seed_name(LINK, "down"): 0},
        pairs=[
            PairTask(
                client=client,
                server=server,
                workload={"name": "download", "size_bytes": size_bytes},
                demand=Demand(down_bytes=size_bytes, round_trips=1),
            )
        ],
        completion=COMPLETION,
        timeout_s=TIMEOUT_S,
        validity=_VALIDITY,
    )
