"""Runs a campaign on this machine, and tells how it goes on."""

from results.store.database import Database
from results.store.records import CampaignInfo
from runners.campaign import campaign
from runners.campaign.request import Request
from runners.commands.progress import Reporter
from runners.engines.namespaces import NamespaceEngine


def run_here(request: Request, database: Database) -> CampaignInfo:
    """The campaign, after what was missing of it has been run."""
    experiment, reporter = request.experiment, Reporter()
    engine = NamespaceEngine(request.jobs, experiment.commands, experiment.folders)
    try:
        return campaign.run(request, engine, database, reporter)
    finally:
        reporter.close()
