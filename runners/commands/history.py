"""`fecbench history`: the verdicts of `fecbench compare` over commits, and where times change."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fecbench.runners.commands.console import arguments
from fecbench.runners.commands.console.campaign_documents import print_document
from fecbench.runners.commands.console.destination import check_file, writing
from fecbench.runners.commands.console.terminal import say
from fecbench.runners.commands.console.terminal_tables import print_table, table_of

if TYPE_CHECKING:
    from fecbench.results.history.changes import Change, History


def history(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="The verdicts that fecbench compare --history FILE kept.")
    ],
    plot: arguments.Plot = None,
    as_json: arguments.Json = False,
) -> None:
    """Show the verdicts of fecbench compare over commits, and the commits at which times change.

    Comparisons may be of any two commits: each with the one before, or all with one release. In a history
    without a change, one is named with a probability of 5 % at most.
    """
    from fecbench.results.history.changes import LEVEL, changes
    from fecbench.results.history.changes import history as history_of
    from fecbench.results.history.entries import of_one_series, read

    if plot is not None:
        check_file("--plot", plot, arguments.DRAWN)
    past = history_of(of_one_series(file, read(file)))
    changes_of_all = changes(past)
    if plot is not None:
        _draw(past, changes_of_all, plot)
    if as_json:
        print_document(
            {
                "implementation": past.entries[0].implementation,
                "versions": [version.model_dump(mode="json") for version in past.versions],
                "entries": [entry.model_dump(mode="json") for entry in past.entries],
                "changes": [
                    {
                        "workload": change.workload,
                        "commit": past.versions[change.commit].commit,
                        "version": change.commit,
                        "ratio": change.ratio,
                        "interval": [change.low, change.high],
                    }
                    for change in changes_of_all
                ],
            }
        )
        return
    _print(past)
    for change in changes_of_all:
        say(_sentence(past, change))
    if not changes_of_all:
        say(f"No change: in {LEVEL:.0%} of such histories without one, at most, chance makes one.")
    if plot is not None:
        say(f"figure {plot}")


def _print(past: History) -> None:
    workloads = past.workloads
    rows = [
        (
            entry.old.name,
            entry.new.name,
            entry.verdict,
            *(f"{entry.ratios[name][0]:.3f}" if name in entry.ratios else "-" for name in workloads),
        )
        for entry in past.entries
    ]
    print_table(table_of(("old", "new", "verdict", *workloads), rows, right=workloads))


def _sentence(past: History, change: Change) -> str:
    version, before = (past.versions[place].name for place in (change.commit, change.commit - 1))
    word = "slower" if change.ratio > 1 else "faster"
    interval = f"{change.ratio:.3f} [{change.low:.3f}, {change.high:.3f}]"
    return f"{change.workload}: {word} since {version} (not yet in {before}): {interval}"


def _draw(past: History, changes_of_all: Sequence[Change], plot: Path) -> None:
    from fecbench.results.figures.history import over_commits
    from fecbench.results.figures.saving import save

    with writing("--plot", plot):
        save(over_commits(past, changes_of_all), plot)
