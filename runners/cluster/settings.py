"""Settings of Dask.distributed: nothing measures, moves or shows anything by itself.

Imported before anything of Dask's, whose modules read some of this as they are loaded.
"""

import importlib.util
import logging
from typing import TYPE_CHECKING

from fecbench.runners.cluster.address import Papers
from fecbench.runners.refusal import Refusal

if TYPE_CHECKING:
    from distributed import Security

SETTINGS: dict[str, object] = {
    "distributed.scheduler.work-stealing": False,
    "distributed.scheduler.worker-ttl": None,  # a worker that runs trials tells nothing meanwhile
    "distributed.scheduler.allowed-failures": 1000,
    "distributed.scheduler.active-memory-manager.start": False,
    "distributed.scheduler.http.routes": [],
    "distributed.worker.http.routes": [],
    "distributed.worker.profile.enabled": False,
    "distributed.worker.memory.target": False,
    "distributed.worker.memory.spill": False,
    "distributed.worker.memory.pause": False,
    "distributed.worker.memory.terminate": False,
    "distributed.admin.system-monitor.interval": "1h",
    "distributed.admin.system-monitor.disk": False,
    "distributed.admin.system-monitor.host-cpu": False,
    "distributed.admin.system-monitor.gil.enabled": False,
    "distributed.admin.tick.interval": "1h",
    "distributed.admin.tick.cycle": "1h",
    "distributed.admin.event-loop": "asyncio",
    "distributed.diagnostics.nvml": False,
}


def require() -> None:
    """Raises Refusal where Dask.distributed is missing; loads nothing of it."""
    if importlib.util.find_spec("distributed") is None:
        raise Refusal("Dask.distributed is missing: pip install distributed, or `make build` in a checkout")


def apply() -> None:
    """Load Dask.distributed with these settings. Raises Refusal where it is missing."""
    require()
    import dask.config

    dask.config.set(SETTINGS)
    import distributed  # noqa: F401 - it sets its own loggers up as it is loaded

    # We report a connection that ended ourselves, in one line.
    for name in ("tornado", "asyncio", *logging.root.manager.loggerDict):
        if name.partition(".")[0] in ("distributed", "tornado", "asyncio"):
            logging.getLogger(name).setLevel(logging.CRITICAL + 1)


def security(papers: Papers | None) -> "Security":
    """Return the security of the connections: without papers, there is no TLS."""
    from distributed import Security

    if papers is None:
        return Security(require_encryption=False)
    pairs = {
        f"tls_{role}_{what}": text
        for role in ("client", "scheduler", "worker")
        for what, text in (("cert", papers.certificate), ("key", papers.key))
    }
    return Security(require_encryption=True, tls_ca_file=papers.authority, **pairs)
