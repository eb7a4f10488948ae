"""`fecbench run`: a design into a results database."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast, get_args

import typer

from fecbench.hints import nearest
from fecbench.results.store.records import CampaignInfo, State
from fecbench.runners.commands.console import arguments, completion
from fecbench.runners.commands.console.campaign_documents import print_document
from fecbench.runners.commands.console.choice import design_of, implementations_in, open_database
from fecbench.runners.commands.console.destination import check_folder
from fecbench.runners.commands.console.terminal import say, say_next
from fecbench.runners.implementations.engine_name import EngineName
from fecbench.runners.refusal import Refusal
from fecbench.topologies.backend import Backend

if TYPE_CHECKING:
    from fecbench.results.store.database import Database
    from fecbench.runners.campaign.request import Keep, Request
    from fecbench.runners.tasks.task import Carrier

RETRIED: tuple[State, ...] = ("failed", "timeout", "unsupported", "invalid")
"""States that are run again when it is asked for; `ok` never is."""


def run(
    design: arguments.DesignFile,
    db: arguments.Database = arguments.DATABASE,
    name: Annotated[
        str,
        typer.Option(
            "--campaign",
            help="The campaign's name; by default the design's.",
            autocompletion=completion.campaigns,
        ),
    ] = "",
    resume: arguments.Resume = False,
    retry: Annotated[
        list[str] | None,
        typer.Option(
            metavar="failed|timeout|unsupported|invalid",
            help="Go on with a campaign, and run its trials in this state again; repeatable. What they came"
            " to before is kept as an earlier attempt. Emulated trials that are invalid always are.",
        ),
    ] = None,
    jobs: Annotated[
        str,
        typer.Option(
            metavar="N|auto",
            help="Trials at a time; auto: as many as do not disturb each other. By default 1, and in virtual"
            " time auto: one on each core.",
        ),
    ] = "",
    engine: Annotated[
        EngineName,
        typer.Option(
            help="local: in namespaces of this machine, over an emulated link; virtual: by simulators of the"
            " implementations in virtual time, which takes no rights; field: over a real path, to a"
            " fecbench field serve."
        ),
    ] = "local",
    link: Annotated[
        Backend | None, typer.Option("--link", help="The link backend of the engine local; by default auto.")
    ] = None,
    filters: Annotated[
        list[str] | None,
        typer.Option(
            "--filter",
            help="Only these trials: variant=…, workload=…, point=… or repetition=…; a field's values are"
            " alternatives.",
            autocompletion=completion.filters,
        ),
    ] = None,
    no_calibrate: arguments.NoCalibrate = False,
    keep_going: Annotated[
        bool,
        typer.Option(
            "--keep-going",
            help="Go on where the first ten trials all fail for one reason. Without it the campaign ends"
            " there, and names the reason.",
        ),
    ] = False,
    keep: Annotated[
        tuple[str, Path] | None,
        typer.Option(
            metavar="failed|all DIR",
            help="Move the files of trials that are not ok, or of all, to DIR/trial-NUMBER instead of"
            " removing them. A folder of that name is replaced.",
        ),
    ] = None,
    cluster: Annotated[
        str,
        typer.Option(
            "--cluster",
            metavar="ADDRESS",
            help="Have the workers at this scheduler run the trials: tls://HOST:PORT, with a database of"
            " PostgreSQL that they reach, too.",
        ),
    ] = "",
    server: Annotated[
        str,
        typer.Option("--server", metavar="HOST:PORT", help="The far host of --engine field."),
    ] = "",
    path: Annotated[
        str,
        typer.Option("--path", metavar="NAME", help="A name for the path of --engine field: home-wifi."),
    ] = "",
    most_bytes: Annotated[
        str,
        typer.Option(
            "--most-bytes",
            metavar="2GB",
            help="The most content that may cross the path of --engine field, both directions together;"
            " by default 1 GB.",
        ),
    ] = "",
    certificates: arguments.Certificates = None,
    insecure: arguments.Insecure = False,
    implementations: arguments.ImplementationFolders = None,
    as_json: arguments.Json = False,
) -> int:
    """Run the trials of a design and keep each in a database; 0 when all are ok, 1 when some are not.

    Trials that the campaign has are not run again, so that the same command goes on after an interruption.
    Several may run at once, also on several machines with a PostgreSQL database: they share the trials.
    """
    loaded = design_of(design)
    from fecbench.runners.campaign.request import request
    from fecbench.runners.commands.console.campaign_summary import of_campaign, print_summary, states_line
    from fecbench.runners.commands.console.over_path import of_field
    from fecbench.runners.engines.admission import parse_jobs

    over_path = of_field(engine, server, path, most_bytes, certificates)
    again = _states("--retry", retry or [])
    resume = resume or bool(again)
    campaign_request = request(
        loaded,
        implementations_in(implementations),
        name=name,
        backend=_carrier(engine, link),
        jobs=parse_jobs("--jobs", jobs or ("auto" if engine == "virtual" and not cluster else "1")),
        resume=resume,
        retry=again,
        filters=filters or [],
        calibrate=not no_calibrate,
        stop_when_alike=not keep_going,
        keep=None if keep is None else _keep(*keep),
        field=None if over_path is None else over_path.document(),
    )
    runner = (
        over_path.runner(campaign_request)
        if over_path
        else _runner(campaign_request, db, cluster, certificates, insecure)
    )
    with open_database(db, create=not resume) as database:
        info = runner(database)
        states = database.states_of(info.id)
        if as_json:
            counts = dict(sorted(states.items()))
            print_document({"campaign": info.name, "planned": info.planned_trials, "states": counts})
        else:
            print_summary(database, info)
            say(states_line(states, info.planned_trials))
            say_next(f"fecbench report {of_campaign(db, info)}")
    return 0 if set(states) <= {"ok"} else 1


def _runner(
    campaign_request: Request, db: str, cluster: str, certificates: Path | None, insecure: bool
) -> Callable[[Database], CampaignInfo]:
    """Return the function that runs the campaign: here, or by the workers of a cluster.

    Raises Refusal for options that do not fit.
    """
    from fecbench.runners.commands.console.running import run_here
    from fecbench.runners.sandbox import isolation

    if cluster:
        from fecbench.runners.commands.console.clustered import run_there

        return run_there(campaign_request, db, cluster, certificates, insecure)
    for option, value in (("--certificates", certificates), ("--insecure", insecure)):
        if value:
            raise Refusal(f"{option}: is of a cluster: give its scheduler with --cluster ADDRESS")
    if campaign_request.engine == "local":
        isolation.require("fecbench run")
    return lambda database: run_here(campaign_request, database)


def _carrier(engine: EngineName, link: Backend | None) -> Carrier:
    """Return the carrier of packets. Raises Refusal for an emulated link where there is none."""
    from fecbench.runners.tasks.task import FIELD, VIRTUAL

    if engine == "local":
        return link or "auto"
    if engine == "field" and link is None:
        return FIELD
    if link is not None:
        raise Refusal(f"--link {link}: there is no emulated link with --engine {engine}: leave it out")
    return VIRTUAL


def _states(option: str, texts: Sequence[str]) -> list[State]:
    """Return the states in these texts, which commas may separate. Raises Refusal for any other word."""
    states = [state for text in texts for state in text.split(",")]
    for state in states:
        if state not in RETRIED:
            hint = nearest(state, RETRIED)
            raise Refusal(f"{option} {state}: must be one of {', '.join(RETRIED)}; {hint}")
    return [cast(State, state) for state in states]


def _keep(which: str, folder: Path) -> Keep:
    from fecbench.runners.campaign.request import Keep, Kept

    kinds = get_args(Kept)
    if which not in kinds:
        raise Refusal(f"--keep {which} {folder}: must be failed DIR or all DIR; {nearest(which, kinds)}")
    check_folder("--keep", folder)
    return Keep(cast(Kept, which), folder)
