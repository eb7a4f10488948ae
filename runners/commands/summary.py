"""What a campaign comes to: a line for each workload and variant, what is left out, and the states."""

from collections.abc import Mapping

from results.analysis import attempts, frames, repair, timers
from results.analysis.pairing import comparisons, left_out
from results.analysis.summary import summary
from results.analysis.units import number
from results.metrics import of_workloads
from results.store.database import Database
from results.store.records import CampaignInfo, State
from runners.commands.tables import print_table, table_of
from runners.commands.terminal import say


def print_summary(database: Database, campaign: CampaignInfo, *, first_attempts: bool = False) -> None:
    """Print the median and the ratio to its baseline, by workload and variant, what it leaves out, and how
    often trials were run again; of all groups, or of those that needed no second try."""
    trials = frames.trials(database, campaign, set(of_workloads(campaign).values()))
    run = trials
    if first_attempts:
        trials = attempts.first_attempts(run)
        left_out_groups = attempts.groups(run) - attempts.groups(trials)
        say(f"first attempts alone: {left_out_groups} of {attempts.groups(run)} groups are left out")
    table = summary(trials, campaign)
    numbers = [column for column in table.columns if table[column].dtype.kind in "fi"]
    rows = [[_shown(value) for value in row] for row in table.itertuples(index=False)]
    print_table(table_of(list(table.columns), rows, right=numbers))
    for variant, pairing in comparisons(trials, campaign).items():
        if sentence := left_out(pairing, campaign, pairing.baseline_label, variant):
            say(sentence)
    for sentence in timers.sentences(campaign):
        say(sentence)
    for sentence in repair.sentences(database, campaign):
        say(sentence)
    for sentence in attempts.sentences(attempts.by_variant(database, campaign), campaign):
        say(sentence)


def states_line(states: Mapping[State, int], planned: int) -> str:
    """How many of the planned trials have been run, and with which state."""
    counts = ", ".join(f"{count} {state}" for state, count in sorted(states.items()))
    return f"{sum(states.values())} of {planned} trials: {counts or 'none run'}"


def _shown(value: object) -> str:
    if isinstance(value, float):
        return "-" if value != value else number(value, ".3f")
    return str(value)
