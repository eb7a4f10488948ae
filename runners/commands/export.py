"""`fecbench export`: the tables of a campaign as CSV or Parquet, and its sessions of video for P.1203."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import Annotated

import typer

from fecbench.quantities import counted
from fecbench.results.store.export import SUFFIXES, Table
from fecbench.runners.commands.console import arguments, completion
from fecbench.runners.commands.console.choice import one_campaign, open_database
from fecbench.runners.commands.console.destination import check_file, writing
from fecbench.runners.commands.console.terminal import say
from fecbench.runners.refusal import Refusal
from fecbench.whole_files import write_text

_WORDED: dict[str, Collection[str]] = {"summary": [".tex", ".md"], "targets": [".md"]}
"""Endings of the tables that can be written in words."""


def export(
    output: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="The file to write. One of that name is replaced."),
    ] = None,
    db: arguments.Database = arguments.DATABASE,
    campaign: arguments.Campaign = "",
    table: Annotated[
        Table,
        typer.Option(
            help="A row a trial, a row a point, a row a ratio to the baseline at a point (with its interval"
            " and verdict), a row a variant and workload (summary: helps, harms, ratio), a row a latency"
            " target of live video at a point (with the difference to the baseline), a row a metric of a"
            " trial, or a row of a series of a trial."
        ),
    ] = "trials",
    metrics: Annotated[
        list[str] | None,
        typer.Option(
            "--metric",
            metavar="NAME",
            help="Only this metric of the trials; repeatable.",
            autocompletion=completion.metrics,
        ),
    ] = None,
    series: Annotated[
        str,
        typer.Option(
            help="Which series, cwnd for example; with --table series.", autocompletion=completion.series
        ),
    ] = "",
    p1203: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Write each session of video as a document that the model of ITU-T P.1203 reads, instead.",
        ),
    ] = None,
) -> None:
    """Write a table of a campaign to a file: CSV or Parquet, as its name ends; the summary as LaTeX
    (booktabs) or Markdown, too, and targets as Markdown."""
    if (output is None) == (p1203 is None):
        raise Refusal("export: give --output FILE for a table, or --p1203 DIR for sessions of video")
    if p1203 is not None:
        _write_sessions(db, campaign, p1203)
        return
    assert output is not None
    suffixes = [*SUFFIXES, *_WORDED.get(table, ())]
    check_file("--output", output, suffixes)  # before minutes of reading
    if bool(series) != (table == "series"):
        raise Refusal(f"--series {series}: --table series and --series NAME need each other")
    if metrics and table not in ("trials", "metrics", "ratios", "summary"):
        raise Refusal(f"--metric {metrics[0]}: a table of {table} has no metrics: leave it out")
    if metrics and table in ("ratios", "summary") and len(metrics) > 1:
        raise Refusal(f"--metric {metrics[1]}: {table}: of one metric at a time: leave it out")
    with open_database(db) as database:
        from fecbench.results.analysis import paper_table, targets
        from fecbench.results.reading import Campaign
        from fecbench.results.store.export import write

        exported = Campaign(database, one_campaign(database, campaign))
        match table:
            case "trials":
                frame = exported.trials(metrics)
            case "metrics":
                frame = exported.metrics(metrics)
            case "ratios":
                frame = exported.ratios(*(metrics or []))
            case "summary":
                frame = exported.summary(*(metrics or []))
            case _:
                frame = exported.table(table, series)
        if table == "targets" and frame.empty:
            name = exported.info.name
            raise Refusal(
                f"--table targets: no trial of {name!r} broadcast live video over a link of known delay"
            )
        if output.suffix.lower() not in SUFFIXES:
            words = (
                [targets.in_words(frame), targets.signs(frame)]
                if table == "targets"
                else [paper_table.in_words(frame, exported.info)]
            )
            in_form = paper_table.as_latex if output.suffix.lower() == ".tex" else paper_table.as_markdown
            with writing("--output", output):
                write_text(output, "\n".join(map(in_form, words)))
        else:
            write(frame, output)
    say(f"{table} {output}: {counted(len(frame), 'row')}, {counted(len(frame.columns), 'column')}")


def _write_sessions(db: str, campaign: str, folder: Path) -> None:
    with open_database(db) as database, writing("--p1203", folder):
        from fecbench.results.analysis import p1203

        try:
            count = p1203.write(database, one_campaign(database, campaign), folder)
        except p1203.NoSessions as none:
            raise Refusal(f"--p1203 {folder}: {none}") from None
    say(f"{folder}: {count} sessions")
