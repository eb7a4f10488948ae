"""`fecbench export`: the tables of a campaign as CSV or Parquet."""

from typing import Annotated, Literal

import typer

from results.analysis import frames
from results.store.export import SUFFIXES, write
from runners.commands import arguments
from runners.commands.choice import one_campaign, open_database
from runners.commands.destination import check_file
from runners.commands.terminal import say


def export(
    output: arguments.OutputFile,
    db: arguments.Database = arguments.DATABASE,
    campaign: arguments.Campaign = "",
    table: Annotated[
        Literal["trials", "points", "metrics"],
        typer.Option(help="A row a trial, a row a point, or a row a metric of a trial."),
    ] = "trials",
) -> None:
    """Write a table of a campaign to a file (CSV or Parquet)."""
    check_file("--output", output, SUFFIXES)  # before minutes of reading
    with open_database(db) as database:
        chosen = one_campaign(database, campaign)
        frame = frames.points(chosen) if table == "points" else frames.trials(database, chosen)
    if table == "metrics":
        frame = frames.metrics(frame)
    write(frame, output)
    say(f"{table} {output}: {len(frame)} rows, {len(frame.columns)} columns")
