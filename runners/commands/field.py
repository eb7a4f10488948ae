"""`fecbench field`: the far host of trials over a real path, and the certificates of both."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from fecbench.quantities import counted
from fecbench.runners.commands.console import arguments
from fecbench.runners.commands.console.campaign_documents import print_document
from fecbench.runners.commands.console.choice import (
    campaigns_of,
    implementations_in,
    one_campaign,
    open_database,
)
from fecbench.runners.commands.console.destination import check_file, writing
from fecbench.runners.commands.console.terminal import note, say
from fecbench.runners.commands.console.terminal_tables import print_table, table_of
from fecbench.runners.refusal import Refusal
from fecbench.whole_files import write_text

if TYPE_CHECKING:
    from fecbench.results.analysis.circle import Closed, Ratio

field = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    help="Run trials over a real path: the far host, its certificates, and the path emulated.",
)


@field.command()
def certificates(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="A new folder, to be copied to both hosts.")],
) -> None:
    """Make certificates by which the two hosts of a path know each other: who has the folder is served."""
    from fecbench.runners import authority

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
    say(f"{output}: {counted(len(recorded), 'probe')} of the path “{info.provenance['field']['path']}”")


@field.command()
def design(
    output: Annotated[
        Path,
        typer.Option("--output", metavar="FILE.toml", help="The design. One of that name is replaced."),
    ],
    db: arguments.Database = arguments.DATABASE,
    campaign: arguments.Campaign = "",
    repetitions: Annotated[
        int | None,
        typer.Option(min=1, max=10_000, help="Its repetitions; by default those of the campaign's design."),
    ] = None,
) -> None:
    """Write a design that emulates the path of a campaign: rates, delays, losses and queues as observed."""
    from fecbench.runners.own_network import emulation

    check_file("--output", output, (".toml",))
    with open_database(db) as database:
        info = one_campaign(database, campaign)
        path = emulation.observed(database, info)
    text = emulation.emulation(info, path, repetitions)
    emulation.design_of_path(info, path, repetitions)  # a design that is none is refused here
    with writing("--output", output):
        write_text(output, text)
    say(
        f"{output}: the path “{path.name}” by {counted(path.blocks, 'block')}; fecbench run {output}"
        f" --db {db} runs it"
    )


@field.command()
def compare(
    db: arguments.Database = arguments.DATABASE,
    campaign: arguments.Campaign = "",
    as_json: arguments.Json = False,
) -> int:
    """Say whether the emulated path gives the ratios of the real one: 0 it does, 1 it does not, 3 not sure.

    The emulation is the campaign of the design that fecbench field design wrote, in the same database.
    """
    from fecbench.results.analysis import circle

    with open_database(db) as database:
        campaigns = [info for info in campaigns_of(database, campaign) if info.engine == "field"]
        if len(campaigns) != 1:
            names = ", ".join(info.name for info in campaigns) or "none"
            raise Refusal(f"{db}: --campaign must name one campaign of --engine field; there are: {names}")
        (info,) = campaigns
        emulations = circle.emulations(database, info)
        if not emulations:
            raise Refusal(
                f"{db}: no campaign emulates the path of {info.name!r}: fecbench field design --db {db}"
                " --output FILE.toml writes a design, and fecbench run FILE.toml runs it"
            )
        of_each = {other.name: circle.closed(database, info, other) for other in emulations}
        rows = [(name, row) for name, (closed, _) in of_each.items() for row in closed]
        missing = [(name, other) for name, (_, others) in of_each.items() for other in others]
        lines = list(circle.sentences(database, info))
    if as_json:
        print_document(
            {
                "comparisons": [_document(name, row) for name, row in rows],
                "too_few_pairs": [{"emulation": name, **asdict(other)} for name, other in missing],
            }
        )
    else:
        if rows:
            heads = ["variant", "workload", "field", "emulated", "emulated / field", "verdict"]
            cells = [
                (row.variant, row.workload, *map(_cell, (row.field, row.emulated, row.quotient)), row.verdict)
                for _, row in rows
            ]
            print_table(table_of(heads, cells, right=heads[2:5]))
        for line in lines:
            say(line)
    verdicts = {row.verdict for _, row in rows}
    if "differs" in verdicts:
        return 1
    return 3 if missing or "not sure" in verdicts else 0


def _cell(ratio: Ratio) -> str:
    return f"{ratio.value:.3f} ({ratio.low:.3f} to {ratio.high:.3f})"


def _document(emulation: str, row: Closed) -> dict[str, Any]:
    return {"emulation": emulation, **asdict(row), "verdict": row.verdict, "blocks_needed": row.blocks_needed}
