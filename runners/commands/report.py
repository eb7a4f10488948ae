"""`fecbench report`: figures and one HTML page from a campaign."""

import json
from pathlib import Path
from typing import Annotated

import typer

from results.store.database import Database
from runners.commands.show import one_campaign


def report(
    db: Annotated[str, typer.Option(help="The results database: a file, or a PostgreSQL URL.")],
    output: Annotated[Path, typer.Option(help="The folder for the page and its figures.")],
    campaign: Annotated[str, typer.Option(help="The campaign, when the database holds several.")] = "",
    as_json: Annotated[bool, typer.Option("--json", help="Print the paths as JSON.")] = False,
) -> None:
    """Draw the figures of a campaign (PNG, SVG and PDF) and write its page (HTML)."""
    # Imported here: drawing takes longer to load than most commands take to run.
    from results.report.report import report as write

    with Database.open(db) as database:
        paths = write(database, one_campaign(database, campaign), output)
    made = {
        "html": str(paths.html),
        "pngs": [str(path) for path in paths.pngs],
        "svgs": [str(path) for path in paths.svgs],
        "pdfs": [str(path) for path in paths.pdfs],
    }
    if as_json:
        print(json.dumps(made))
        return
    print(f"report {made['html']}")
    for path in [*made["pngs"], *made["svgs"], *made["pdfs"]]:
        print(f"figure {path}")
