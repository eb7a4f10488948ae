"""`fecbench export`: the tables of a campaign as CSV or Parquet."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from results.analysis import frames
from results.store.database import Database
from results.store.export import check, write
from runners.commands import arguments
from runners.commands.choice import one_campaign
from runners.commands.terminal import say


def export(
    db: arguments.Database,
    output: Annotated[Path, typer.Option(help="The file to write; must end with .csv or .parquet.")],
    campaign: arguments.Campaign = "",
    table: Annotated[
        Literal["trials", "points", "metrics"],
        typer.Option(help="A row a trial, a row a point, or a row a metric of a trial."),
    ] = "trials",
) -> None:
    """Write a table of a campaign to a file (CSV or Parquet)."""
    check(output)  # before minutes of reading
    with Database.open(db) as database:
        chosen = one_campaign(database, campaign)
        frame = frames.points(chosen) if table == "points" else frames.trials(database, chosen)
    if table == "metrics":
        frame = frames.metrics(frame)
    write(frame, output)
    say(f"{table} {output}: {len(frame)} rows, {len(frame.columns)} columns")
