"""A scheduler: it hands lines of JSON on between those who run campaigns and workers, and keeps nothing."""

import asyncio
from collections.abc import Callable

from fecbench.runners import scratch
from fecbench.runners.cluster import settings
from fecbench.runners.cluster.address import Place


def serve(place: Place, tell: Callable[[str], None]) -> None:
    """Serve until a signal ends it. Raises OSError where it cannot listen."""
    settings.apply()
    import dask.config

    # Dask makes a folder there, and does not remove it.
    with scratch.folder() as folder, dask.config.set({"temporary-directory": str(folder)}):
        asyncio.run(_serve(place, tell))


async def _serve(place: Place, tell: Callable[[str], None]) -> None:
    from distributed import Scheduler

    scheduler = await Scheduler(
        host=f"{place.address.partition('://')[0]}://{place.host}",
        port=place.port,
        security=settings.security(place.papers),
        dashboard=False,
        dashboard_address="127.0.0.1:0",
    )
    scheduler.http_server.stop()
    tell(f"listens at {scheduler.address}")
    await scheduler.finished()
