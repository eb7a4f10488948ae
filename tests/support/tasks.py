"""Tasks of trials: what a test says of one, and else what is usual."""

from collections.abc import Mapping
from typing import Any

from fecbench.runners.tasks.task import EndpointTask, LinkTask, PairTask, Task
from fecbench.runners.tasks.validity import Validity
from fecbench.topologies.link import LinkSettings

NO_LOSS = {"model": "none"}
NEVER_LATE_US = 1_000_000
ANY_MACHINE = Validity(stall_share=1000, stolen_share=1000)
"""Bounds with which a busy machine makes no trial invalid."""
SLOW_MACHINE = Validity(stall_share=1000, stolen_share=1000, late_time_share=1000)
"""Bounds with which a machine that delays packets makes no trial invalid, either."""


def link(
    settings: LinkSettings,
    down: Mapping[str, Any] = NO_LOSS,
    up: Mapping[str, Any] = NO_LOSS,
    *,
    late_bound_us: int = NEVER_LATE_US,
) -> LinkTask:
    """A link with these losses."""
    losses = {"up": dict(up), "down": dict(down)}
    return LinkTask(settings=settings, late_bound_us=late_bound_us, losses=losses)


def seeds(content: int, losses: Mapping[str, Mapping[Any, int]]) -> dict[str, int]:
    """Return the seeds of a task: of its content, and of the losses of each link."""
    of_links = {f"{link}/{way}": seed for link, ways in losses.items() for way, seed in ways.items()}
    return {"content": content, **of_links}


def pair(implementation: str = "script", **fields: Any) -> PairTask:
    """A download of a kilobyte; both ends are the same."""
    end = EndpointTask(implementation=implementation, options={})
    usual = {"client": end, "server": end, "workload": {"name": "download", "size_bytes": 1000}}
    return PairTask(**{**usual, **fields})


def task(links: LinkTask | Mapping[str, LinkTask], *pairs: PairTask, **fields: Any) -> Task:
    """A task over one link, or over links by name; the losses of each direction have a seed of its own."""
    named = {"internet": links} if isinstance(links, LinkTask) else dict(links)
    of_losses = {name: {"up": 2 * n + 1, "down": 2 * n + 2} for n, name in enumerate(named)}
    usual: dict[str, Any] = {
        "topology": "single-path",
        "backend": "wire",
        "seeds": seeds(3, of_losses),
        "completion": "dct_s",
        "timeout_s": 20,
        "validity": ANY_MACHINE,
    }
    return Task(links=named, pairs=list(pairs) or [pair()], **{**usual, **fields})
