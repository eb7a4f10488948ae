"""`fecbench run`: a design into a results database."""

import json
from pathlib import Path
from typing import Annotated

import typer

import designs
from results.store.database import Database
from runners.campaign import campaign
from runners.campaign.request import request
from runners.commands.progress import Reporter
from runners.commands.show import states_line, summary_table
from runners.engines.admission import parse_jobs
from runners.engines.namespaces import NamespaceEngine
from runners.implementations.finding import Implementations, search_path
from runners.trial import isolation
from topologies.topology import Backend


def run(
    design: Annotated[Path, typer.Argument(help="The design, a TOML file.")],
    db: Annotated[str, typer.Option(help="The results database: a file, or a PostgreSQL URL.")],
    name: Annotated[
        str, typer.Option("--campaign", help="The campaign's name; by default the design's.")
    ] = "",
    resume: Annotated[bool, typer.Option("--resume", help="Run what a campaign still lacks.")] = False,
    jobs: Annotated[
        str,
        typer.Option(metavar="N|auto", help="Trials at a time; auto: as many as do not disturb each other."),
    ] = "1",
    link: Annotated[Backend, typer.Option(help="The link backend.")] = "auto",
    filters: Annotated[
        list[str] | None,
        typer.Option(
            "--filter",
            help="Only these trials: variant=…, workload=…, point=… or repetition=…; a field's values are"
            " alternatives.",
        ),
    ] = None,
    no_calibrate: Annotated[
        bool, typer.Option("--no-calibrate", help="Begin even if the emulated link is not what it should be.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the states as JSON.")] = False,
) -> int:
    """Run the trials of a design and keep each in a database; 0 when all are ok, 1 when some are not."""
    prepared = request(
        designs.load(design),
        Implementations(search_path()),
        name=name,
        backend=link,
        jobs=parse_jobs("--jobs", jobs),
        filters=filters or [],
        resume=resume,
        calibrate=not no_calibrate,
    )
    isolation.require("fecbench run")
    engine = NamespaceEngine(prepared.jobs, prepared.experiment.commands)
    reporter = Reporter()
    with Database.open(db, create=True) as database:
        try:
            done = campaign.run(prepared, engine, database, reporter)
        finally:
            reporter.close()
        states = [state for state, _ in database.states(done.id).values()]
        if as_json:
            counts = {state: states.count(state) for state in sorted(set(states))}
            print(json.dumps({"campaign": done.name, "planned": done.planned_trials, "states": counts}))
        else:
            summary_table(database, done)
            print(states_line(states, done.planned_trials))
    return 0 if all(state == "ok" for state in states) else 1
