"""`fecbench show`: the campaigns of a database, their trials, and where the time of a trial goes."""

import json
import statistics
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Annotated, Any

import numpy as np
import typer
from rich import box
from rich.console import Console
from rich.table import Table

from fecbench.hints import nearest
from results import metrics
from results.store.database import CampaignInfo, Database, StoredTrial
from runners.refusal import Refusal

PIPE_COLUMNS = 200


def show(
    db: Annotated[str, typer.Option(help="The results database: a file, or a PostgreSQL URL.")],
    campaign: Annotated[str, typer.Option(help="Only the campaign of this name.")] = "",
    trials: Annotated[bool, typer.Option("--trials", help="A line for every trial.")] = False,
    overhead: Annotated[
        bool, typer.Option("--overhead", help="The time of a trial that is not the client's.")
    ] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print everything about the trials as JSON.")
    ] = False,
) -> None:
    """Show what a results database holds."""
    with Database.open(db) as database:
        chosen = campaigns_of(database, campaign)
        if as_json:
            print(json.dumps(document(database, chosen), indent=1))
            return
        for each in chosen:
            stored = list(database.trials(each.id))
            print(f"campaign {each.name}: {each.title}, {each.created_at}")
            if overhead:
                print_table(overhead_table(stored))
            elif trials:
                print_table(trials_table(stored))
            else:
                summary_table(database, each)
                print_table(doubtful_table(stored))
            print(states_line([trial.record.state for trial in stored], each.planned_trials))


def campaigns_of(database: Database, name: str) -> list[CampaignInfo]:
    """The campaign of that name, or all of them for no name. Raises Refusal when there is none."""
    found = [each for each in database.campaigns() if name in ("", each.name)]
    if not found:
        known = [each.name for each in database.campaigns()]
        if not known:
            raise Refusal(f"{database.address}: is empty: no campaign was run into it")
        raise Refusal(f"{database.address}: has no campaign {name!r}; {nearest(name, known)}")
    return found


def one_campaign(database: Database, name: str) -> CampaignInfo:
    """The campaign of that name, or the only one. Raises Refusal when a name is needed."""
    found = campaigns_of(database, name)
    if len(found) > 1:
        known = ", ".join(each.name for each in found)
        raise Refusal(
            f"{database.address}: has {len(found)} campaigns: choose with --campaign one of {known}"
        )
    return found[0]


def states_line(states: Sequence[str], planned: int) -> str:
    """How many of the planned trials have been run, and with which state."""
    counts = ", ".join(f"{count} {state}" for state, count in sorted(Counter(states).items()))
    return f"{len(states)} of {planned} trials: {counts or 'none run'}"


def document(database: Database, campaigns: Iterable[CampaignInfo]) -> dict[str, Any]:
    """The stable JSON form: campaigns, and every trial of them."""
    return {
        "campaigns": [
            {
                "name": each.name,
                "title": each.title,
                "created_at": each.created_at,
                "seed": each.seed,
                "repetitions": each.repetitions,
                "statistic": each.statistic,
                "planned_trials": each.planned_trials,
                "points": each.points,
                "variants": each.variants,
                "workloads": each.workloads,
                "provenance": each.provenance,
            }
            for each in campaigns
        ],
        "trials": [trial_document(each, stored) for each in campaigns for stored in database.trials(each.id)],
    }


def trial_document(campaign: CampaignInfo, stored: StoredTrial) -> dict[str, Any]:
    """One trial in the JSON form."""
    record = stored.record
    return {
        "id": stored.id,
        "key": {
            "campaign": campaign.name,
            "variant": record.key.variant,
            "workload": record.key.workload,
            "point": record.key.point,
            "repetition": record.key.repetition,
        },
        "state": record.state,
        "reason": record.reason,
        "attempt": stored.attempt,
        "started_at": record.started_at,
        "duration_s": record.duration_s,
        "seeds": record.seeds,
        "metrics": record.metrics,
        "verdict_check": record.checks.get("verdicts", {}),
        "verdicts": {
            f"{log.link}/{log.direction}": {"packets": log.packets, "dropped": dropped_indices(log.bitmap)}
            for log in record.verdicts
        },
        "dropper": record.dropper,
        "links": record.links,
        "exits": record.exits,
        "stderr": record.stderr,
        "overhead_s": record.overhead_s,
    }


def dropped_indices(bitmap: bytes) -> list[int]:
    """The indices of the packets that were dropped."""
    bits = np.unpackbits(np.frombuffer(bitmap, dtype=np.uint8), bitorder="little")
    return [int(index) for index in np.flatnonzero(bits)]


def print_table(table: Table | None) -> None:
    if table is not None:
        # A pipe has no width: a table that is cut would lose what scripts look for.
        console = Console() if sys.stdout.isatty() else Console(width=PIPE_COLUMNS)
        console.print(table)


def summary_table(database: Database, campaign: CampaignInfo) -> None:
    """Print the median and the ratio to the baseline, by workload and variant, and what it leaves out."""
    # Imported here: pandas takes longer to load than most commands take to run.
    from results.analysis import frames
    from results.analysis.pairing import baseline_of, comparisons, left_out
    from results.analysis.summary import summary

    trials = frames.trials(database, campaign, set(metrics.of_workloads(campaign).values()))
    rows = summary(trials, campaign)
    table = Table(box=box.SIMPLE_HEAD)
    for column in rows.columns:
        table.add_column(str(column), justify="right" if rows[column].dtype.kind in "fi" else "left")
    for row in rows.itertuples(index=False):
        table.add_row(*(_shown(value) for value in row))
    print_table(table)
    baseline = baseline_of(campaign) or ""
    for variant, pairing in comparisons(trials, campaign).items():
        if sentence := left_out(pairing, campaign, baseline, variant):
            print(sentence)


def _shown(value: object) -> str:
    if isinstance(value, float):
        return "-" if value != value else f"{value:.3f}"
    return str(value)


def trials_table(stored: Sequence[StoredTrial]) -> Table:
    """A line for every trial."""
    table = Table(box=box.SIMPLE_HEAD)
    for heading in (
        "id",
        "variant",
        "workload",
        "point",
        "repetition",
        "state",
        "dct_s",
        "dropped",
        "reason",
    ):
        table.add_column(heading)
    for trial in stored:
        key, record = trial.record.key, trial.record
        dct_s = record.metrics.get("client", {}).get("dct_s")
        table.add_row(
            str(trial.id),
            key.variant,
            key.workload,
            str(key.point),
            str(key.repetition),
            record.state,
            "-" if dct_s is None else f"{dct_s:.3f}",
            " ".join(f"{log.direction} {log.dropped}/{log.packets}" for log in record.verdicts),
            record.reason,
        )
    return table


def doubtful_table(stored: Sequence[StoredTrial]) -> Table | None:
    """The trials that are not ok, or None when all are."""
    doubtful = [trial for trial in stored if trial.record.state != "ok"]
    return trials_table(doubtful) if doubtful else None


def overhead_table(stored: Sequence[StoredTrial]) -> Table:
    """Where the time of a trial goes that is not the client's own: median and 90 % quantile per phase."""
    table = Table(box=box.SIMPLE_HEAD)
    for heading in ("phase", "median ms", "p90 ms", "trials"):
        table.add_column(heading, justify="left" if heading == "phase" else "right")
    phases = dict.fromkeys(name for trial in stored for name in trial.record.overhead_s)
    for name in sorted(phases, key=lambda phase: phase == "total"):
        times = [trial.record.overhead_s[name] * 1e3 for trial in stored if name in trial.record.overhead_s]
        table.add_row(
            name, f"{statistics.median(times):.1f}", f"{np.quantile(times, 0.9):.1f}", str(len(times))
        )
    return table
