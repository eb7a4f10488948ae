"""`fecbench field`: the far host of trials over a real path, and the certificates of both."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from fecbench.runners import authority
from fecbench.runners.commands.console import arguments
from fecbench.runners.commands.console.choice import implementations_in, one_campaign, open_database
from fecbench.runners.commands.console.destination import check_file, writing
from fecbench.runners.commands.console.terminal import note, say
from fecbench.runners.refusal import Refusal
from fecbench.whole_files import write_text

field = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    help="Run trials over a real path: the far host, its certificates.",
)


@field.command()
def certificates(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="A new folder, to be copied to both hosts.")],
) -> None:
    """Make certificates by which the two hosts of a path know each other: who has the folder is served."""
    end = authority.write(folder)
    say(f"{folder}: serves until {end:%Y-%m-%d}; copy it to both hosts, and let nobody else read it")


@field.command()
def serve(
    listen: Annotated[
        str,
        typer.Option("--listen", metavar="HOST:PORT", help="This host's address, and a port of TCP and UDP."),
    ],
    certificates: Annotated[
        Path,
        typer.Option(
            "--certificates",
            metavar="DIR",
            help="The two hosts': fecbench field certificates DIR makes them.",
        ),
    ],
    transfer_bytes: Annotated[
        int, typer.Option("--transfer-bytes", min=1, help="The most content of a transfer.")
    ] = 1_000_000_000,
    transfer_s: Annotated[
        float, typer.Option("--transfer-s", min=1, help="The longest time limit of a transfer, in s.")
    ] = 600.0,
    hourly: Annotated[int, typer.Option("--hourly", min=1, help="The most transfers within an hour.")] = 3600,
    implementations: arguments.ImplementationFolders = None,
) -> None:
    """Serve trials of clients that have a certificate, one transfer at a time, until it is ended."""
    from fecbench.runners.field.connection import Place, context
    from fecbench.runners.field.service import Limits, serve

    place = Place.of("--listen", listen)
    limits = Limits(transfer_bytes, transfer_s, hourly)
    tls = context(certificates, server=True)
    serve(place, tls, implementations_in(implementations), limits, note)


@field.command()
def recording(
    output: Annotated[
        Path,
        typer.Option(
            "--output",
            metavar="FILE",
            help="FILE.json, as irtt writes it: for fecbench advise and fecbench link import irtt; or"
            " FILE.txt, the losses of a direction: for fecbench losses fit. One of that name is replaced.",
        ),
    ],
    db: arguments.Database = arguments.DATABASE,
    campaign: arguments.Campaign = "",
    direction: Annotated[
        Literal["up", "down"], typer.Option("--direction", help="Of the losses in FILE.txt.")
    ] = "down",
) -> None:
    """Write the probes of a path as a recording that other commands read."""
    from fecbench.results.analysis import path_probes

    check_file("--output", output, (".json", ".txt"))
    with open_database(db) as database:
        info = one_campaign(database, campaign)
        recorded = path_probes.probes(database, info)
    if not recorded:
        raise Refusal(f"{db}: campaign {info.name!r} has no probes: they are of --engine field")
    is_irtt = output.suffix == ".json"
    text = path_probes.as_irtt(recorded) if is_irtt else path_probes.as_losses(recorded, direction)
    with writing("--output", output):
        write_text(output, text)
    say(f"{output}: {len(recorded)} probes of the path “{info.provenance['field']['path']}”")
