"""The options and arguments that several commands have: each has one name and one help text everywhere."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from fecbench.runners.commands.console import completion
from fecbench.runners.commands.console.quantity_options import share
from fecbench.topologies.backend import Backend

DesignFile = Annotated[
    Path,
    typer.Argument(
        metavar="DESIGN",
        help="The design: a TOML file, or the name of a design of the catalogue.",
        autocompletion=completion.designs,
    ),
]
Database = Annotated[
    str,
    typer.Option("--db", envvar="FECBENCH_DB", help="The results database: a file, or a PostgreSQL URL."),
]
DATABASE = "fecbench.sqlite"
"""The database of all commands, when none is named."""

Campaign = Annotated[
    str,
    typer.Option(
        "--campaign",
        help="The campaign, when the database holds several.",
        autocompletion=completion.campaigns,
    ),
]
Metric = Annotated[
    str,
    typer.Option(
        "--metric",
        metavar="NAME",
        autocompletion=completion.metrics,
        help="Compare this metric, client.dct_s for example, and not the one that each workload names."
        " fecbench list metrics tells what there is.",
    ),
]
Margin = Annotated[
    float | None,
    typer.Option(
        "--margin",
        metavar="2%",
        parser=share(0, 0.99),
        help="The difference that does not matter, as a share: 2% or 0.02. By default the design's; in"
        " virtual time never below what the cross-check vouches for.",
    ),
]
Statistic = Annotated[
    Literal["median", "mean", "p95"] | None,
    typer.Option("--statistic", help="Over the repetitions of a point; by default the design's."),
]
FirstAttempts = Annotated[
    bool,
    typer.Option(
        "--first-attempts",
        help="Compare without the repetitions in which any variant was run again, or is invalid.",
    ),
]
Trial = Annotated[
    int,
    typer.Argument(
        help="The number of the trial: fecbench show --trials tells it.", autocompletion=completion.trials
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print a JSON document in place of text.")]

OutputFile = Annotated[
    Path, typer.Option("--output", metavar="FILE", help="The file to write. One of that name is replaced.")
]
_FOLDER = typer.Option(
    "--output",
    metavar="FOLDER",
    help="The folder to write into. It is made when it is absent; of what is in it, only what this command"
    " wrote there before is replaced.",
)
OutputFolder = Annotated[Path, _FOLDER]
OptionalOutputFolder = Annotated[Path | None, _FOLDER]
Plot = Annotated[
    Path | None,
    typer.Option(
        "--plot", metavar="FILE.png", help="Draw it (PNG, SVG or PDF). A file of that name is replaced."
    ),
]
TrialPlot = Annotated[
    Path | None,
    typer.Option(
        "--plot",
        metavar="[FILE]",
        help="Draw it over time (PNG, SVG or PDF by the name of the file; by default trial-N.png). A file of"
        " that name is replaced.",
    ),
]
UNNAMED = Path()
"""A file that an option of the metavar [FILE] stands without."""
DRAWN = (".png", ".svg", ".pdf")
"""Ends of the name of a figure."""

ImplementationFolders = Annotated[
    list[Path] | None,
    typer.Option(
        "--implementations",
        metavar="DIR|NAME=DIR",
        help="A folder that holds implementations, each in a folder of its own, beside ours; repeatable."
        " NAME=DIR: the implementation in this one folder, by another name. Those of"
        " FECBENCH_IMPLEMENTATIONS, separated by ':', are looked in, too.",
    ),
]
Jobs = Annotated[
    str,
    typer.Option(
        "--jobs", metavar="N|auto", help="Trials at a time; auto: as many as do not disturb each other."
    ),
]
Link = Annotated[Backend, typer.Option("--link", help="The link backend.")]
Resume = Annotated[bool, typer.Option("--resume", help="Go on with a campaign: refuse to begin one.")]
NoCalibrate = Annotated[
    bool, typer.Option("--no-calibrate", help="Begin even if the emulated link is not what it should be.")
]

Scheduler = Annotated[
    str, typer.Argument(metavar="ADDRESS", help="Of the cluster's scheduler: tls://HOST:PORT.")
]
Certificates = Annotated[
    Path | None,
    typer.Option(
        "--certificates", metavar="DIR", help="The cluster's: fecbench cluster certificates DIR makes them."
    ),
]
Insecure = Annotated[
    bool,
    typer.Option(
        "--insecure",
        help="Take an address without TLS: whoever reaches it can run programs on every worker.",
    ),
]
