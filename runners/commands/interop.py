"""`fecbench interop`: which clients work with which servers."""

from __future__ import annotations

import re
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fecbench.runners.commands.console import arguments
from fecbench.runners.commands.console.campaign_documents import print_document
from fecbench.runners.commands.console.choice import implementations_in, open_database
from fecbench.runners.commands.console.terminal import note, say
from fecbench.runners.commands.console.terminal_tables import print_table, table_of
from fecbench.runners.refusal import Refusal

if TYPE_CHECKING:
    from fecbench.results.analysis.interoperability import Matrix

DESIGN = "interop"


def interop(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[END]...",
            help="Implementations, each with options besides those of plain QUIC if it shall have any:"
            " NAME or NAME:OPTION=VALUE,… By default all that are built.",
        ),
    ] = None,
    db: arguments.Database = arguments.DATABASE,
    name: Annotated[
        str, typer.Option("--campaign", help="The campaign's name; by default interop-END-END….")
    ] = "",
    jobs: arguments.Jobs = "1",
    link: arguments.Link = "auto",
    no_calibrate: arguments.NoCalibrate = False,
    implementations: arguments.ImplementationFolders = None,
    as_json: arguments.Json = False,
) -> int:
    """Let each client download from each server over a link with losses; 1 when a pair fails.

    ✓ the whole content arrived, ✕ it did not, ? the two cannot meet. Pairs of the database are not run again.
    """
    from fecbench.designs import catalogue, load
    from fecbench.results.analysis import interoperability
    from fecbench.runners.campaign.request import request
    from fecbench.runners.commands.console.interop_pairs import design_of_pairs, end_of, ends_there_are
    from fecbench.runners.commands.console.running import run_here
    from fecbench.runners.engines.admission import parse_jobs
    from fecbench.runners.sandbox import isolation

    available = implementations_in(implementations)
    if names:
        ends = [end_of(text, available) for text in names]
    else:
        ends, left_out = ends_there_are(available)
        for line in left_out:
            note(f"left out: {line}")
    if not ends:
        raise Refusal("no implementation is built: make build")
    design, cells = design_of_pairs(load(catalogue()[DESIGN]), ends)
    unsupported = [asdict(cell) for cell in cells]
    base_request = request(
        design,
        available,
        name=name or f"{DESIGN}-{re.sub('[^A-Za-z0-9]+', '-', '-'.join(end.name for end in ends))}",
        backend=link,
        jobs=parse_jobs("--jobs", jobs),
        calibrate=not no_calibrate,
    )
    campaign_request = replace(
        base_request, interop={"ends": [end.name for end in ends], "cells": unsupported}
    )
    isolation.require("fecbench interop")
    with open_database(db, create=True) as database:
        info = run_here(campaign_request, database)
        matrix = interoperability.of_campaign(database, info)
    assert matrix is not None  # its record has the ends
    if as_json:
        print_document(_document(info.name, matrix))
    else:
        print_matrix(matrix)
    return 1 if any(cell.state == "failed" for cell in matrix.cells) else 0


def print_matrix(matrix: Matrix) -> None:
    """A row for each client, a column for each server, and why cells are not ok."""
    print_table(table_of(["client ↓ server →", *matrix.ends], matrix.rows()))
    for line in matrix.reasons:
        say(line)


def _document(campaign: str, matrix: Matrix) -> dict[str, Any]:
    pairs = {client: [cell for cell in matrix.cells if cell.client == client] for client in matrix.ends}
    return {
        "campaign": campaign,
        "ends": matrix.ends,
        "matrix": {client: {cell.server: cell.state for cell in cells} for client, cells in pairs.items()},
        "reasons": {
            client: {cell.server: cell.reason for cell in cells if cell.reason}
            for client, cells in pairs.items()
        },
    }
