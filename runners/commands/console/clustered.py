"""Runs a campaign on the workers of a cluster, and tells how it goes on."""

from collections.abc import Callable
from pathlib import Path

from fecbench.results.store.database import Database
from fecbench.results.store.records import CampaignInfo
from fecbench.runners.campaign.request import Request
from fecbench.runners.cluster import address, proposer, settings
from fecbench.runners.cluster.worker_pool import WorkerPool
from fecbench.runners.commands.console.progress import Reporter


def run_there(
    request: Request, db: str, scheduler: str, certificates: Path | None, insecure: bool
) -> Callable[[Database], CampaignInfo]:
    """Return the function that runs it, once the database is open. Raises Refusal for what does not fit."""
    place = address.place(scheduler, certificates, insecure)
    proposer.check(request, db)
    settings.require()
    address.call(place)

    def run(database: Database) -> CampaignInfo:
        reporter = Reporter(each=request.engine == "local")
        try:
            with WorkerPool(place) as pool:
                return proposer.run(request, pool, database, db, reporter)
        finally:
            reporter.close()

    return run
