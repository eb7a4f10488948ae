"""The summary of a campaign: a line for each workload and variant, what is left out, and the states."""

import shlex
from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd
from rich.table import Table

from fecbench.results.analysis import (
    attempts,
    blocks,
    comparison,
    deciding,
    exposure,
    frames,
    late_requests,
    repair,
    same_losses,
    timers,
    unseen,
)
from fecbench.results.analysis.margins import margins_text
from fecbench.results.analysis.pairing import comparisons, left_out
from fecbench.results.analysis.summary import median_column, summary
from fecbench.results.analysis.workload_names import short_names
from fecbench.results.metrics import of_workloads
from fecbench.results.metrics.units import estimate, number
from fecbench.results.store.database import Database
from fecbench.results.store.records import CampaignInfo, State
from fecbench.runners.commands.console.tables import console, is_narrow, print_table, table_of
from fecbench.runners.commands.console.terminal import say

_KEY = ["workload", "variant"]
_FIRST = (*_KEY, "trials", "ok")
_LAST = (*comparison.COUNTS, "median_ratio", "interval", "tail_ratio", "p95_ratio", "compared_with")
_TEXTS = (*_KEY, "metric", "compared_with")
_OF_COMPARISONS = [*_KEY, *comparison.COUNTS, "low", "high", "tail_ratio", "p95_ratio"]
_WITHIN = "equivalent: within it; tail_ratio: 95 % of the points have this ratio or a better one"


def print_summary(database: Database, campaign: CampaignInfo, *, first_attempts: bool = False) -> None:
    """Print the median and the ratio to its baseline, by workload and variant, what it leaves out, and how
    often trials were run again; of all groups, or of those that needed no second try."""
    trials = frames.trials(database, campaign, set(of_workloads(campaign).values()))
    run = trials
    if first_attempts:
        trials = attempts.first_attempts(run)
        left_out_groups = attempts.groups(run) - attempts.groups(trials)
        say(f"first attempts alone: {left_out_groups} of {attempts.groups(run)} groups are left out")
    pairings = comparisons(trials, campaign)
    compared = comparison.of_pairings(pairings, campaign)
    table = summary(trials, campaign, pairings).merge(compared[_OF_COMPARISONS], how="left", on=_KEY)
    exposed = exposure.of_campaign(database, campaign)
    table = table.merge(exposed[[*_KEY, "met_outage"]], how="left", on=_KEY)
    metric = ["metric"] if "metric" in table else []
    outages = ["met_outage"] if len(exposed) else []
    first = [*_FIRST, *outages, *metric, median_column(campaign)]
    rows, heads = [_row(row, first) for row in table.to_dict("records")], [*first, *_LAST]
    wide = table_of(heads, rows, right=[head for head in heads if head not in _TEXTS])
    if len(compared) and is_narrow(console(), wide):
        _print_narrow(table, campaign)
    else:
        print_table(wide)
    if len(compared):
        say(f"helps and harms: by more than the margin, {margins_text(campaign)}; {_WITHIN}")
    for variant, pairing in pairings.items():
        if sentence := left_out(pairing, campaign, pairing.baseline_label, variant):
            say(sentence)
    for sentence in exposure.sentences(exposed):
        say(sentence)
    for sentence in (
        *timers.sentences(campaign),
        *deciding.sentences(campaign),
        *unseen.sentences(pairings, campaign),
    ):
        say(sentence)
    for sentence in blocks.sentences(database, campaign):
        say(sentence)
    for sentence in same_losses.sentences(campaign.design_text, campaign.repetitions):
        say(sentence)
    for sentence in late_requests.sentences(database, campaign):
        say(sentence)
    for sentence in repair.sentences(database, campaign):
        say(sentence)
    for sentence in attempts.sentences(attempts.by_variant(database, campaign), campaign):
        say(sentence)


def _print_narrow(table: pd.DataFrame, campaign: CampaignInfo) -> None:
    """The same for a terminal of 80 columns: what is compared, in the digits that intervals allow."""
    print_table(table_of_answers(table, campaign))
    say("same: equivalent; open: undecided; to: compared_with; a wider terminal has all columns")


def table_of_answers(table: pd.DataFrame, campaign: CampaignInfo) -> Table:
    """Return the answer for each variant on each workload, from rows of `comparison.of_pairings`."""
    names, order = short_names(campaign), [variant["label"] for variant in campaign.variants]
    rows = [
        (
            *(row["variant"], names[row["workload"]], *(f"{row[name]:.0f}" for name in comparison.COUNTS)),
            *(f"{row['points']:.0f}", _ratio(row)),
            *("-" if row[name] != row[name] else number(row[name]) for name in ("tail_ratio", "p95_ratio")),
            row["compared_with"],
        )
        for row in sorted(table.to_dict("records"), key=lambda row: order.index(row["variant"]))
        if row["compared_with"]
    ]
    heads = (
        *("variant", "workload", "helps", "harms", "same", "open", "of"),
        *("ratio [95 %]", "tail", "p95", "to"),
    )
    return table_of(heads, rows, right=heads[2:-1])


def _ratio(row: Mapping[Any, Any]) -> str:
    """The median ratio with its interval; a dash where no point has one."""
    return estimate(row["median_ratio"], row["low"], row["high"]) if row["points"] else "-"


def _row(values: Mapping[Any, Any], first: Sequence[str]) -> list[str]:
    """A row of the table: what was measured, and what the comparison with a baseline comes to."""
    compared = bool(values["compared_with"])
    counts = [f"{values[name]:.0f}" if compared else "-" for name in comparison.COUNTS]
    interval = f"[{number(values['low'], '.3f')}, {number(values['high'], '.3f')}]"
    return [
        *(_shown(values[name]) for name in first),
        *counts,
        _shown(values["median_ratio"]),
        "-" if values["low"] != values["low"] else interval,
        *(_shown(values[name]) for name in ("tail_ratio", "p95_ratio")),
        values["compared_with"] or "-",
    ]


def of_campaign(db: str, campaign: CampaignInfo) -> str:
    """Return the options by which a command finds a campaign, as a shell takes them."""
    return f"--db {shlex.quote(db)} --campaign {shlex.quote(campaign.name)}"


def states_line(states: Mapping[State, int], planned: int) -> str:
    """Return how many of the planned trials have been run, and with which state."""
    counts = ", ".join(f"{count} {state}" for state, count in sorted(states.items()))
    return f"{sum(states.values())} of {planned} trials: {counts or 'none run'}"


def _shown(value: object) -> str:
    if isinstance(value, float):
        return "-" if value != value else number(value, ".3f")
    return str(value)
