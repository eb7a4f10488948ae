"""Runs a campaign on this machine, and tells how it goes on."""

from fecbench.results.store.database import Database
from fecbench.results.store.records import CampaignInfo
from fecbench.runners.campaign import campaign
from fecbench.runners.campaign.campaign import Plan
from fecbench.runners.campaign.request import Request
from fecbench.runners.commands.console.progress import Reporter
from fecbench.runners.commands.console.simulators import note_free_simulators
from fecbench.runners.engines.engine import Engine
from fecbench.runners.engines.programs import engine_for


def run_here(
    request: Request,
    database: Database,
    plan: Plan | None = None,
    *,
    ahead: bool = False,
    field: Engine | None = None,
    reporter: Reporter | None = None,
) -> CampaignInfo:
    """The campaign, after what was missing of it, or what the plan says, has been run: emulated endpoints
    `ahead` of ordinary programs, where that is granted. `field` is the engine of one in the field."""
    if request.engine == "virtual":
        note_free_simulators()
    reporter = reporter or Reporter(each=request.engine != "virtual")
    try:
        engine = field or engine_for(
            request.engine, request.experiment.implementations, request.jobs, ahead=ahead
        )
        return campaign.run(request, engine, database, reporter, plan)
    finally:
        reporter.close()
