"""What a campaign comes to: a line for each workload and variant, what is left out, and the states."""

from collections import Counter
from collections.abc import Sequence

from results.analysis import frames
from results.store.database import Database
from results.store.records import CampaignInfo
from runners.commands.tables import print_table, table_of
from runners.commands.terminal import say


def print_summary(database: Database, campaign: CampaignInfo) -> None:
    """Print the median DCT and the ratio to the baseline, by workload and variant, and what it leaves out."""
    trials = frames.trials(database, campaign, [frames.DCT])
    summary = frames.summary(trials, campaign)
    numbers = [column for column in summary.columns if summary[column].dtype.kind in "fi"]
    rows = [[_shown(value) for value in row] for row in summary.itertuples(index=False)]
    print_table(table_of(list(summary.columns), rows, right=numbers))
    baseline = frames.baseline_of(campaign) or ""
    for variant, pairing in frames.comparisons(trials, campaign).items():
        if sentence := frames.left_out(pairing, campaign, baseline, variant):
            say(sentence)


def states_line(states: Sequence[str], planned: int) -> str:
    """How many of the planned trials have been run, and with which state."""
    counts = ", ".join(f"{count} {state}" for state, count in sorted(Counter(states).items()))
    return f"{len(states)} of {planned} trials: {counts or 'none run'}"


def _shown(value: object) -> str:
    if isinstance(value, float):
        return "-" if value != value else f"{value:.3f}"
    return str(value)
