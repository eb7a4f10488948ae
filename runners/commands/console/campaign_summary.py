"""The summary of a campaign: a line for each workload and variant, what is left out, and the states."""

import shlex
from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd
from rich.table import Table

from fecbench.quantities import counted
from fecbench.results import metrics
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
    uncompared,
    unseen,
)
from fecbench.results.analysis.margins import below, margins_text
from fecbench.results.analysis.pairing import baseline_of, baselines_of, comparisons, left_out
from fecbench.results.analysis.summary import median_column, summary
from fecbench.results.analysis.workload_names import short_names
from fecbench.results.metrics.units import change_text, difference, number, ratio_text
from fecbench.results.store.database import Database
from fecbench.results.store.records import CampaignInfo, State
from fecbench.runners.commands.console.terminal import say
from fecbench.runners.commands.console.terminal_tables import console, is_narrow, print_table, table_of

_KEY = ["workload", "variant"]
_FIRST = (*_KEY, "trials", "ok")
_NUMBERS = ("ratio [95 %]", "p95 [95 %]", "saved [95 %]", "bytes [95 %]")
_COUNTS = ("helps", "harms", "no difference", "undecided")
_LAST = (*_COUNTS, *_NUMBERS, "compared_with")
_TEXTS = (*_KEY, "metric", "compared_with")


def print_summary(
    database: Database, campaign: CampaignInfo, *, first_attempts: bool = False
) -> tuple[pd.DataFrame, dict[int | None, int]]:
    """Print the median and the ratio to its baseline, by workload and variant, what it leaves out, and how
    often trials were run again; of all groups, or of those that needed no second try. Return all trials with
    the metrics that are compared, and how many each start has run (`frames.with_starts`)."""
    run, by_start = frames.with_starts(database, campaign, comparison.metrics_of(campaign))
    trials = run
    if first_attempts:
        trials = attempts.first_attempts(run)
        left_out_groups = attempts.groups(run) - attempts.groups(trials)
        say(
            f"first attempts alone: {left_out_groups:,} of {counted(attempts.groups(run), 'group')}"
            " are left out"
        )
    pairings = comparisons(trials, campaign)
    compared = comparison.of_pairings(pairings, campaign, frame=trials)
    medians = summary(trials, campaign, pairings)
    new = [name for name in comparison.COLUMNS if name in _KEY or name not in medians]
    table = medians.merge(compared[new], how="left", on=_KEY)
    exposed = exposure.of_campaign(database, campaign)
    table = table.merge(exposed[[*_KEY, "met_outage"]], how="left", on=_KEY)
    metric = ["metric"] if "metric" in medians else []
    outages = ["met_outage"] if len(exposed) else []
    first = [*_FIRST, *outages, *metric, median_column(campaign)]
    rows, heads = [_row(row, first) for row in table.to_dict("records")], [*first, *_LAST]
    wide = table_of(heads, rows, right=[head for head in heads if head not in _TEXTS])
    if len(compared) and is_narrow(console(), wide):
        _print_narrow(compared, campaign)
    else:
        print_table(wide)
    if len(compared):
        say(_meaning(campaign, compared))
    for variant, pairing in pairings.items():
        if sentence := left_out(pairing, campaign, pairing.baseline_label, variant):
            say(sentence)
    for sentence in exposure.sentences(exposed):
        say(sentence)
    labels = [variant["label"] for variant in campaign.variants]
    for sentence in (
        *uncompared.sentences(labels, baselines_of(campaign), baseline_of(campaign)),
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
    for sentence in attempts.sentences(attempts.by_variant(database, campaign, run), campaign):
        say(sentence)
    return run, by_start


def _print_narrow(table: pd.DataFrame, campaign: CampaignInfo) -> None:
    """The same for a terminal of 80 columns: what is compared, in the digits that intervals allow."""
    print_table(table_of_answers(table, campaign))
    say("a wider terminal has all columns")


def _meaning(campaign: CampaignInfo, compared: pd.DataFrame) -> str:
    """Return the meaning of the columns in a sentence."""
    averages = " or ".join(sorted(set(compared["average"])))
    over = f", {averages} over the networks" if len(campaign.points) > 1 else ""
    ratio = f"of the {campaign.statistic} of a network{over}"
    if campaign.engine == "field":
        ratio = "the geometric mean of those of its blocks"
    return (
        f"helps and harms: by more than the margin, {margins_text(campaign)}{below(campaign)};"
        f" no difference: within it; ratio: {ratio}"
    )


def table_of_answers(table: pd.DataFrame, campaign: CampaignInfo) -> Table:
    """Return the answer for each variant on each workload, from rows of `comparison.of_pairings`."""
    names, order = short_names(campaign), [variant["label"] for variant in campaign.variants]
    rows = [
        (
            *(row["variant"], names[row["workload"]], *(f"{row[name]:.0f}" for name in comparison.COUNTS)),
            *(f"{row['points']:.0f}", *_estimates(row), row["compared_with"]),
        )
        for row in sorted(table.to_dict("records"), key=lambda row: order.index(row["variant"]))
        if row["compared_with"]
    ]
    heads = (
        *("variant", "workload", *_COUNTS, "of"),
        *(*_NUMBERS, "to"),
    )
    return table_of(heads, rows, right=heads[2:-1])


def _estimates(row: Mapping[Any, Any]) -> list[str]:
    """The ratio, that of the slow trials, the time saved and the bytes, each with its interval; a dash for
    what is unknown or has none."""
    metric = metrics.of(row["metric"])
    ratio = ratio_text(row["ratio"], row["ratio_low"], row["ratio_high"])
    p95, saved, sent = (
        None
        if row[f"{name}_low"] != row[f"{name}_low"]
        else (row[value], row[f"{name}_low"], row[f"{name}_high"])
        for name, value in (("p95", "p95_ratio"), ("saved", "saved"), ("more_bytes", "more_bytes"))
    )
    return [
        ratio.replace("–", "-"),
        "-" if p95 is None else ratio_text(*p95),
        "-" if saved is None or not metric.is_time else difference(*saved, unit=metric.unit),
        "-" if sent is None else change_text(*(1 + share for share in sent)),
    ]


def _row(values: Mapping[Any, Any], first: Sequence[str]) -> list[str]:
    """A row of the table: what was measured, and what the comparison with a baseline comes to."""
    compared = bool(values["compared_with"])
    counts = [f"{values[name]:.0f}" if compared else "-" for name in comparison.COUNTS]
    estimates = _estimates(values) if compared else ["-"] * len(_NUMBERS)
    return [*(_shown(values[name]) for name in first), *counts, *estimates, values["compared_with"] or "-"]


def of_campaign(db: str, campaign: CampaignInfo) -> str:
    """Return the options by which a command finds a campaign, as a shell takes them."""
    return f"--db {shlex.quote(db)} --campaign {shlex.quote(campaign.name)}"


def states_line(states: Mapping[State, int], planned: int) -> str:
    """Return how many of the planned trials have been run, and with which state."""
    counts = ", ".join(f"{count} {state}" for state, count in sorted(states.items()))
    return f"{sum(states.values()):,} of {counted(planned, 'trial')}: {counts or 'none run'}"


def _shown(value: object) -> str:
    if isinstance(value, float):
        return "-" if value != value else number(value, ".3f")
    return str(value)
