"""The options and arguments that several commands have: each has one name and one help text everywhere."""

from pathlib import Path
from typing import Annotated

import typer

from topologies.topology import Backend

DesignFile = Annotated[
    Path,
    typer.Argument(
        metavar="DESIGN", help="The design: a TOML file, or the name of a design of the catalogue."
    ),
]
Database = Annotated[str, typer.Option("--db", help="The results database: a file, or a PostgreSQL URL.")]
Campaign = Annotated[str, typer.Option("--campaign", help="The campaign, when the database holds several.")]
Json = Annotated[bool, typer.Option("--json", help="Print a JSON document in place of text.")]

Jobs = Annotated[
    str,
    typer.Option(
        "--jobs", metavar="N|auto", help="Trials at a time; auto: as many as do not disturb each other."
    ),
]
Link = Annotated[Backend, typer.Option("--link", help="The link backend.")]
Resume = Annotated[bool, typer.Option("--resume", help="Run what a campaign still lacks.")]
NoCalibrate = Annotated[
    bool, typer.Option("--no-calibrate", help="Begin even if the emulated link is not what it should be.")
]
