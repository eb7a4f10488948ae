"""`fecbench show`: the campaigns of a database, their trials, and where the time of a trial goes."""

import statistics
from collections.abc import Sequence
from typing import Annotated

import numpy as np
import typer

from results.store.records import StoredTrial
from runners.commands import arguments
from runners.commands.choice import campaigns_of, open_database
from runners.commands.document import database_document, print_document
from runners.commands.summary import print_summary, states_line
from runners.commands.tables import print_table, table_of
from runners.commands.terminal import say


def show(
    db: arguments.Database = arguments.DATABASE,
    campaign: arguments.Campaign = "",
    trials: Annotated[bool, typer.Option("--trials", help="A line for every trial.")] = False,
    overhead: Annotated[
        bool, typer.Option("--overhead", help="The time of a trial that is not the client's.")
    ] = False,
    as_json: arguments.Json = False,
) -> None:
    """Show what a results database holds."""
    with open_database(db) as database:
        chosen = campaigns_of(database, campaign)
        if as_json:
            print_document(database_document(database, chosen))
            return
        for info in chosen:
            stored = list(database.trials(info.id))
            say(f"campaign {info.name}: {info.title}, {info.created_at}")
            if overhead:
                _print_overhead(stored)
            elif trials:
                _print_trials(stored)
            else:
                print_summary(database, info)
                if doubtful := [trial for trial in stored if trial.record.state != "ok"]:
                    _print_trials(doubtful)
            say(states_line([trial.record.state for trial in stored], info.planned_trials))


def _print_trials(stored: Sequence[StoredTrial]) -> None:
    """A line for every trial."""
    headings = ("id", "variant", "workload", "point", "repetition", "state", "dct_s", "dropped", "reason")
    print_table(table_of(headings, map(_trial_row, stored)))


def _trial_row(trial: StoredTrial) -> tuple[object, ...]:
    key, record = trial.record.key, trial.record
    dct_s = record.metrics.get("client", {}).get("dct_s")
    return (
        trial.id,
        key.variant,
        key.workload,
        key.point,
        key.repetition,
        record.state,
        "-" if dct_s is None else f"{dct_s:.3f}",
        " ".join(f"{log.direction} {log.dropped}/{log.packets}" for log in record.verdicts),
        record.reason,
    )


def _print_overhead(stored: Sequence[StoredTrial]) -> None:
    """Where the time of a trial goes that is not the client's own: median and 90 % quantile per phase."""
    phases = dict.fromkeys(name for trial in stored for name in trial.record.overhead_s)
    rows = []
    for name in sorted(phases, key=lambda phase: phase == "total"):
        times_ms = [
            trial.record.overhead_s[name] * 1e3 for trial in stored if name in trial.record.overhead_s
        ]
        median_ms, p90_ms = statistics.median(times_ms), np.quantile(times_ms, 0.9)
        rows.append((name, f"{median_ms:.1f}", f"{p90_ms:.1f}", len(times_ms)))
    numbers = ("median ms", "p90 ms", "trials")
    print_table(table_of(("phase", *numbers), rows, right=numbers))
