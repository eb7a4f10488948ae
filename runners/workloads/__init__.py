"""The workloads that endpoints are asked for, by name."""

from fecbench.hints import nearest
from fecbench.runners.refusal import Refusal
from fecbench.runners.workloads.bulk import Download, Upload
from fecbench.runners.workloads.competing import Competing
from fecbench.runners.workloads.messages import Messages
from fecbench.runners.workloads.page import Page
from fecbench.runners.workloads.workload import Workload

WORKLOADS: dict[str, Workload] = {
    workload.name: workload for workload in (Download(), Upload(), Competing(), Page(), Messages())
}


def find(name: str, where: str) -> Workload:
    """The workload of that name. Raises Refusal with the nearest right name."""
    if name not in WORKLOADS:
        raise Refusal(f"{where}: there is no workload {name!r}; {nearest(name, WORKLOADS)}")
    return WORKLOADS[name]
