"""`fecbench show`: the campaigns of a database, their trials, and everything of one trial."""

import statistics
from collections.abc import Iterable, Sequence
from typing import Annotated

import numpy as np
import typer

from results.store.database import Database
from results.store.records import STATES, CampaignInfo, StoredTrial
from runners.commands import arguments
from runners.commands.choice import campaigns_of, one_trial, open_database
from runners.commands.document import database_document, print_document, whole_trial_document
from runners.commands.one_trial import print_trial
from runners.commands.summary import print_summary, states_line
from runners.commands.tables import print_table, table_of
from runners.commands.terminal import say
from runners.refusal import Refusal


def show(
    trial: Annotated[
        int | None, typer.Argument(help="Everything of the trial of this number, which --trials tells.")
    ] = None,
    db: arguments.Database = arguments.DATABASE,
    campaign: arguments.Campaign = "",
    trials: Annotated[bool, typer.Option("--trials", help="A line for every trial.")] = False,
    overhead: Annotated[
        bool, typer.Option("--overhead", help="The time of a trial that is not the client's.")
    ] = False,
    as_json: arguments.Json = False,
) -> None:
    """Show what a results database holds, or everything of one trial."""
    if trial is not None and (trials or overhead):
        raise Refusal(f"--trials and --overhead are of all trials: leave out {trial}")
    with open_database(db) as database:
        if trial is None:
            _show_campaigns(database, campaigns_of(database, campaign), trials, overhead, as_json)
            return
        info, stored = one_trial(database, campaign, trial)
        if as_json:
            print_document(whole_trial_document(database, info, stored))
        else:
            print_trial(database, info, stored)


def _show_campaigns(
    database: Database, campaigns: Iterable[CampaignInfo], trials: bool, overhead: bool, as_json: bool
) -> None:
    if as_json:
        print_document(database_document(database, campaigns))
        return
    for info in campaigns:
        say(f"campaign {info.name}: {info.title}, {info.created_at}")
        if overhead:
            _print_overhead(list(database.trials(info.id)))
        elif trials:
            _print_trials(database.trials(info.id))
        else:
            print_summary(database, info)
            if doubtful := list(database.trials(info.id, [state for state in STATES if state != "ok"])):
                _print_trials(doubtful)
        states = [state for state, _ in database.states(info.id).values()]
        say(states_line(states, info.planned_trials))


def _print_trials(stored: Iterable[StoredTrial]) -> None:
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
