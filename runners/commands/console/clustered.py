"""Runs a campaign on the workers of a cluster, and tells how it goes on."""

from collections.abc import Callable
from pathlib import Path

from fecbench.results.store.database import Database
from fecbench.results.store.records import CampaignInfo
from fecbench.runners.campaign.patience import PatientDatabase
from fecbench.runners.campaign.request import Request
from fecbench.runners.cluster import address, dask_side, joint_run
from fecbench.runners.commands.console.progress import Reporter


def run_there(
    request: Request, db: str, scheduler: str, certificates: Path | None, insecure: bool
) -> Callable[[Database], CampaignInfo]:
    """Return the function that runs it, once the database is open. Raises Refusal for what does not fit."""
    place = address.place(scheduler, certificates, insecure)
    joint_run.check(request, db)
    dask_side.require()
    address.call(place)

    def run(_: Database) -> CampaignInfo:
        reporter = Reporter(each=False)
        try:
            with PatientDatabase.open(db) as database:
                database.tell = reporter.note
                return joint_run.run(request, place, database, db, reporter)
        finally:
            reporter.close()

    return run
