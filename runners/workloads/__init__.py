"""The workloads that endpoints are asked for, by name."""

from collections.abc import Mapping
from typing import Any

from fecbench.hints import nearest
from fecbench.runners.refusal import Refusal
from fecbench.runners.tasks.series import LIMIT_BYTES
from fecbench.runners.tasks.task import EndpointTask
from fecbench.runners.workloads.bulk import Download, Upload
from fecbench.runners.workloads.competing import Competing
from fecbench.runners.workloads.live.form import Live
from fecbench.runners.workloads.messages.form import Messages
from fecbench.runners.workloads.page.form import Page
from fecbench.runners.workloads.video.form import Video
from fecbench.runners.workloads.workload import Workload

WORKLOADS: dict[str, Workload] = {
    workload.name: workload
    for workload in (Download(), Upload(), Competing(), Page(), Messages(), Video(), Live())
}
TOLD: dict[str, Workload] = {
    workload.asked_for: workload for workload in WORKLOADS.values() if workload.sample
}
"""The workloads that endpoints know, by the name in their assignment."""
_SERIES = frozenset(name for workload in TOLD.values() for name in workload.series)
"""The series that measure workloads."""
KINDS: tuple[str, ...] = tuple(workload.documents for workload in TOLD.values() if workload.documents)
"""The kinds of documents that campaigns keep: pages, traces, videos."""


def find(name: str, where: str) -> Workload:
    """The workload of that name. Raises Refusal with the nearest right name."""
    if name not in WORKLOADS:
        raise Refusal(f"{where}: there is no workload {name!r}; {nearest(name, WORKLOADS)}")
    return WORKLOADS[name]


def of(task_workload: Mapping[str, Any]) -> Workload:
    """Return the workload of the `workload` of an assignment."""
    return TOLD[task_workload["name"]]


def asked_series(end: EndpointTask, task_workload: Mapping[str, Any]) -> dict[str, int]:
    """Return the series that an end has to record, and the most bytes of each.

    These are the series that the design asks for, and those that measure the workload.
    """
    limits = {name: LIMIT_BYTES for name in end.series if name not in _SERIES}
    return limits | (dict(of(task_workload).series) if task_workload["name"] in TOLD else {})
