"""Runs a campaign on the workers of a cluster, and tells how it goes on."""

from collections.abc import Callable
from pathlib import Path

from results.store.database import Database
from results.store.records import CampaignInfo
from runners.campaign.request import Request
from runners.cluster import address, campaign, settings
from runners.cluster.crew import Crew
from runners.commands.progress import Reporter


def run_there(
    request: Request, db: str, scheduler: str, certificates: Path | None, insecure: bool
) -> Callable[[Database], CampaignInfo]:
    """What runs it, once the database is open. Raises Refusal, before that, for what does not fit."""
    place = address.place(scheduler, certificates, insecure)
    campaign.check(request, db)
    settings.require()
    address.call(place)

    def run(database: Database) -> CampaignInfo:
        reporter = Reporter(each=request.engine == "local")
        try:
            with Crew(place) as crew:
                return campaign.run(request, crew, database, db, reporter)
        finally:
            reporter.close()

    return run
