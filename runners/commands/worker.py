"""`fecbench worker`: this host takes part in the campaigns of a cluster."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from fecbench.checkout import REPOSITORY
from fecbench.runners.commands.console import arguments
from fecbench.runners.commands.console.choice import implementations_in
from fecbench.runners.commands.console.terminal import note

DOCTOR_S = 300.0
_COMMAND = "from fecbench.runners.commands.command_line import main; main()"


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
    from fecbench.runners.cluster import address, dask_side
    from fecbench.runners.cluster.worker import Worker
    from fecbench.runners.engines.admission import parse_jobs

    place = address.place(scheduler, certificates, insecure)
    available, wanted_jobs = implementations_in(implementations), parse_jobs("--jobs", jobs)
    dask_side.require()
    address.call(place)

    Worker(place, wanted_jobs, available, db, lambda: _lack(implementations or []), note).run()


def _lack(folders: Sequence[Path]) -> str:
    """Return the first need of emulated trials that this host lacks, by `fecbench doctor`; empty if none."""
    of_folders = [word for folder in folders for word in ("--implementations", str(folder))]
    command = [sys.executable, "-c", _COMMAND, "doctor", "--json", *of_folders]
    doctor = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, timeout=DOCTOR_S)
    try:
        needs = json.loads(doctor.stdout)["needs"]
    except (ValueError, KeyError):
        return f"fecbench doctor failed: {(doctor.stderr.strip().splitlines() or ['it said nothing'])[-1]}"
    lacks = (need for need in needs if need["required"] and not need["good"])
    lack = next(lacks, None)
    return "" if lack is None else f"this host lacks {lack['name']}: {lack['found']}; mend: {lack['mend']}"
