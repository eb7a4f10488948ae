"""`fecbench export`: the tables of a campaign as CSV or Parquet."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from results.store.database import Database
from runners.commands.show import one_campaign


def export(
    db: Annotated[str, typer.Option(help="The results database: a file, or a PostgreSQL URL.")],
    output: Annotated[Path, typer.Option(help="The file to write; must end with .csv or .parquet.")],
    campaign: Annotated[str, typer.Option(help="The campaign, when the database holds several.")] = "",
    table: Annotated[
        Literal["trials", "points", "metrics"],
        typer.Option(help="A row a trial, a row a point, or a row a metric of a trial."),
    ] = "trials",
) -> None:
    """Write a table of a campaign to a file (CSV or Parquet)."""
    # Imported here: pandas takes longer to load than most commands take to run.
    from results.analysis import frames
    from results.store.export import check, write

    check(output)  # before minutes of reading
    with Database.open(db) as database:
        chosen = one_campaign(database, campaign)
        frame = frames.points(chosen) if table == "points" else frames.trials(database, chosen)
    if table == "metrics":
        frame = frames.metrics(frame)
    write(frame, output)
    print(f"{table} {output}: {len(frame)} rows, {len(frame.columns)} columns")
