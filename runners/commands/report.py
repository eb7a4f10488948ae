"""`fecbench report`: figures and one HTML page from a campaign."""

from typing import Annotated

import typer

from fecbench.runners.commands.console import arguments
from fecbench.runners.commands.console.campaign_documents import print_document
from fecbench.runners.commands.console.choice import comparing, one_campaign, open_database
from fecbench.runners.commands.console.destination import check_folder
from fecbench.runners.commands.console.figures_bar import figures_bar
from fecbench.runners.commands.console.terminal import say


def report(
    output: arguments.OutputFolder,
    db: arguments.Database = arguments.DATABASE,
    campaign: arguments.Campaign = "",
    metric: arguments.Metric = "",
    margin: arguments.Margin = None,
    statistic: arguments.Statistic = None,
    first_attempts: arguments.FirstAttempts = False,
    vectors: Annotated[
        bool,
        typer.Option(
            "--vectors",
            help="Write each figure as SVG and PDF, too. fecbench figure writes one, as a paper wants it.",
        ),
    ] = False,
    as_json: arguments.Json = False,
) -> None:
    """Draw the figures of a campaign (PNG) and write its page (HTML)."""
    check_folder("--output", output)  # before minutes of computing
    with open_database(db) as database:
        from fecbench.results.report.report import report as write

        info = comparing(database, one_campaign(database, campaign), metric, margin, statistic)
        with figures_bar() as tell:
            paths = write(database, info, output, first_attempts=first_attempts, vectors=vectors, tell=tell)
    if as_json:
        files = {
            "html": str(paths.html),
            "pngs": [str(path) for path in paths.pngs],
            "svgs": [str(path) for path in paths.svgs],
            "pdfs": [str(path) for path in paths.pdfs],
        }
        print_document(files | paths.document.as_json())
        return
    for answer in paths.document.answers:
        say(answer.sentence)
    forms = "PNG, SVG and PDF" if vectors else "PNG"
    say(f"report {paths.html} (and {len(paths.pngs)} figures beside it, as {forms})")
