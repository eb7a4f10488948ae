"""`fecbench worker`: this host takes part in the campaigns of a cluster."""

from typing import Annotated

import typer

from runners.cluster import address, settings
from runners.cluster.worker import Worker
from runners.commands import arguments
from runners.commands.choice import implementations_in
from runners.commands.doctor import needs
from runners.commands.terminal import note
from runners.engines.admission import parse_jobs


def worker(
    scheduler: arguments.Scheduler,
    certificates: arguments.Certificates = None,
    insecure: arguments.Insecure = False,
    jobs: arguments.Jobs = "auto",
    db: Annotated[
        str,
        typer.Option(
            "--db", help="Use this PostgreSQL URL alone, whatever is proposed; by default what is proposed."
        ),
    ] = "",
    implementations: arguments.ImplementationFolders = None,
) -> None:
    """Run groups of the campaigns that fecbench run --cluster has at this scheduler, until it is ended.

    The database has the design; what is run is what this host has built, after the checks that a campaign
    begins with. Emulated trials need root.
    """
    place = address.place(scheduler, certificates, insecure)
    found, wanted_jobs = implementations_in(implementations), parse_jobs("--jobs", jobs)
    settings.apply()
    address.call(place)

    def lacks() -> str:
        lack = next((need for need in needs(found) if need.required and not need.good), None)
        return f"this host lacks {lack.name}: {lack.found}; mend: {lack.mend}" if lack else ""

    Worker(place, wanted_jobs, found, db, lacks, note).run()
