"""`fecbench show`: the campaigns of a database, their trials, and everything of one trial."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, cast

import typer

from fecbench.results.store.records import STATES, CampaignInfo, StoredTrial
from fecbench.runners.commands.console import arguments, completion
from fecbench.runners.commands.console.campaign_documents import (
    print_database,
    print_document,
    whole_trial_document,
)
from fecbench.runners.commands.console.choice import (
    campaigns_of,
    comparing,
    one_campaign,
    one_trial,
    open_database,
)
from fecbench.runners.commands.console.destination import checked_plot, writing
from fecbench.runners.commands.console.terminal import note, say, say_next
from fecbench.runners.commands.console.terminal_tables import print_table, table_of
from fecbench.runners.refusal import Refusal

if TYPE_CHECKING:
    import pandas as pd

    from fecbench.results.analysis import paper_table
    from fecbench.results.store.database import Database

_MOST_DOUBTFUL = 100  # trials that are listed without being asked for
_ROWS_OF_A_TABLE = 10_000  # as wide as its widest cell, so a table is in memory whole


def show(
    trial: Annotated[
        int | None,
        typer.Argument(
            help="Everything of the trial of this number, which --trials tells.",
            autocompletion=completion.trials,
        ),
    ] = None,
    db: arguments.Database = arguments.DATABASE,
    campaign: arguments.Campaign = "",
    metric: arguments.Metric = "",
    margin: arguments.Margin = None,
    statistic: arguments.Statistic = None,
    trials: Annotated[bool, typer.Option("--trials", help="A line for every trial.")] = False,
    overhead: Annotated[
        bool, typer.Option("--overhead", help="The time of a trial that is not the client's.")
    ] = False,
    hosts: Annotated[
        bool,
        typer.Option("--hosts", help="What each host has run of a campaign, and when it was seen last."),
    ] = False,
    first_attempts: arguments.FirstAttempts = False,
    digest: Annotated[
        bool,
        typer.Option(
            "--digest",
            help="One number for what happened on the wire in all trials of a campaign; in virtual time the"
            " same each time. With --json one for all metrics, too.",
        ),
    ] = False,
    plot: arguments.TrialPlot = None,
    form: Annotated[
        Literal["text", "md", "csv", "latex", "json"],
        typer.Option(
            "--format",
            help="The table of ratios in Markdown, CSV or LaTeX (booktabs), or as --json does.",
        ),
    ] = "text",
    as_json: arguments.Json = False,
) -> None:
    """Show what a results database holds, or everything of one trial.

    --plot draws what is stored of one trial: which packets were lost, a session of video, and what its
    variant asks for, series = ["cwnd", "fec"]. fecbench replay TRIAL --plot draws all of it, over time.
    """
    if trial is not None and (trials or overhead or metric):
        raise Refusal(f"--trials, --overhead and --metric are of all trials: leave out {trial}")
    if (trial is not None or trials or overhead or hosts or digest) and (margin, statistic) != (None, None):
        raise Refusal(
            "--margin and --statistic are of the table of ratios: leave out what asks for other things"
        )
    if first_attempts and (trial is not None or trials or overhead or as_json):
        raise Refusal("--first-attempts is of the table of ratios: leave out what asks for something else")
    if plot is not None:
        if trial is None:
            raise Refusal("--plot: draws one trial: fecbench show TRIAL --plot FILE.png")
        plot = checked_plot(plot, trial)
    if digest and (trial is not None or trials or overhead or metric or first_attempts):
        raise Refusal("--digest is of all trials of a campaign: leave out what asks for something else")
    if hosts and (trial is not None or trials or overhead or metric or first_attempts or digest):
        raise Refusal("--hosts is of whole campaigns: leave out what asks for something else")
    as_json = as_json or form == "json"
    is_written = form in ("md", "csv", "latex")
    if is_written and (trial is not None or trials or overhead or hosts or digest or as_json):
        raise Refusal(f"--format {form}: is of the table of ratios: leave out what asks for something else")
    with open_database(db) as database:
        if hosts:
            _show_hosts(database, campaigns_of(database, campaign), as_json)
            return
        if digest:
            _show_digest(database, one_campaign(database, campaign), as_json)
            return
        if trial is None:
            campaigns = campaigns_of(database, campaign)
            comparisons = [comparing(database, info, metric, margin, statistic) for info in campaigns]
            if as_json:
                print_database(database, campaigns, comparisons)
            elif is_written:
                print(_table(database, comparisons, cast("paper_table.Form", form), first_attempts), end="")
            else:
                from fecbench.runners.commands.console.campaign_summary import of_campaign

                _print_campaigns(database, comparisons, trials, overhead, first_attempts)
                say_next(f"fecbench report {of_campaign(db, comparisons[-1])}")
            return
        info, stored = one_trial(database, campaign, trial)
        if plot is not None:
            _draw(database, stored, plot)
        if as_json:
            print_document(whole_trial_document(database, info, stored))
        else:
            from fecbench.runners.commands.console.one_trial import print_trial

            print_trial(database, info, stored)


def _table(
    database: Database, campaigns: Sequence[CampaignInfo], form: paper_table.Form, first_attempts: bool
) -> str:
    """The summary of each campaign, for other programs and for papers."""
    from fecbench.results.analysis import attempts, comparison, frames, paper_table

    tables = []
    for info in campaigns:
        run = frames.trials(database, info, comparison.metrics_of(info))
        some = attempts.first_attempts(run) if first_attempts else run
        tables.append((paper_table.summary_table(some, info), info))
    if all(table.empty for table, _ in tables):
        names = ", ".join(info.name for info in campaigns)
        raise Refusal(f"--format {form}: campaign {names}: no variant is compared with another")
    return paper_table.texts(tables, form)


def _show_digest(database: Database, info: CampaignInfo, as_json: bool) -> None:
    wire = database.digest(info.id)
    if not as_json:
        say(wire)
        return
    metrics = database.metrics_digest(info.id)
    print_document({"campaign": info.name, "digest": wire, "metrics_digest": metrics})


def _show_hosts(database: Database, campaigns: Sequence[CampaignInfo], as_json: bool) -> None:
    from fecbench.results.analysis import hosts as of_hosts

    hosts_of_campaigns = {info.name: of_hosts.hosts_of(database, info) for info in campaigns}
    if as_json:
        print_document(
            {
                "campaigns": [
                    {"campaign": name, "hosts": [asdict(host) for host in hosts]}
                    for name, hosts in hosts_of_campaigns.items()
                ]
            }
        )
        return
    numbers = ("starts", "done", "invalid", "per minute", "holds")
    for info in campaigns:
        say(f"campaign {info.heading}")
        rows = [
            (
                *(host.host, str(host.starts), str(host.done), str(host.invalid)),
                "-" if host.per_minute is None else f"{host.per_minute:.1f}",
                *(str(host.holds), host.last_seen),
            )
            for host in hosts_of_campaigns[info.name]
        ]
        columns = ("host", *numbers, "last seen")
        print_table(table_of(columns, rows, right=numbers))
        for sentence in _about_hosts(database, info):
            say(sentence)


def _about_hosts(database: Database, info: CampaignInfo) -> list[str]:
    from fecbench.results.analysis import hosts as of_hosts

    remarks = of_hosts.told_of(database, info)
    return [*remarks.warnings, *remarks.notes]


def _draw(database: Database, stored: StoredTrial, path: Path) -> None:
    from fecbench.results.analysis import frames, trial_course
    from fecbench.results.figures import NothingToDraw, course_over_time, save, session_over_time

    series = frames.series_of(database, stored)
    course = trial_course.of_record(stored, database.series_of(stored.id))
    try:
        if {"segments", "stalls"} <= series.keys():
            levels = stored.record.task["pairs"][0]["session"]["ladder"]["levels"]
            figure = session_over_time(series["segments"], series["stalls"], levels, stored.id)
        else:
            others = {
                name: rows for name, rows in series.items() if not trial_course.is_read(name, map(str, rows))
            }
            figure = course_over_time(course, others)
            for line in course.notes:
                note(f"{line}: fecbench replay {stored.id} --plot draws it")
    except NothingToDraw as nothing:
        raise Refusal(f"--plot {path}: {nothing} fecbench replay {stored.id} --plot runs it again") from None
    with writing("--plot", path):
        save(figure, path)


def _print_campaigns(
    database: Database,
    campaigns: Sequence[CampaignInfo],
    trials: bool,
    overhead: bool,
    first_attempts: bool,
) -> None:
    from fecbench.results.analysis import agreement, agreement_in_words, frames, starts
    from fecbench.runners.commands.console.campaign_summary import print_summary, states_line

    for info in campaigns:
        say(f"campaign {info.heading}: {info.title}, {info.created_at}")
        by_start = None
        if overhead:
            _print_overhead(database, info)
            states = database.states_of(info.id)
        else:
            if trials:
                run, by_start = frames.with_starts(database, info, _metrics(info))
                _print_trials(database, info, run)
            else:
                run, by_start = print_summary(database, info, first_attempts=first_attempts)
                _print_doubtful(database, info, run[run["state"] != "ok"])
            counts = run["state"].value_counts()
            states = {state: int(counts[state]) for state in STATES if counts.get(state, 0)}
        say(states_line(states, info.planned_trials))
        if info.engine == "virtual":
            for sentence in agreement_in_words.sentences(agreement.of_campaign(database, info)):
                say(sentence)
        for sentence in (
            *starts.sentences(starts.starts_of(database, info, by_start)),
            *_about_hosts(database, info),
        ):
            say(sentence)


def _metrics(campaign: CampaignInfo) -> list[str]:
    """Return the metrics that are compared."""
    from fecbench.results.metrics import of_workloads

    return list(dict.fromkeys(of_workloads(campaign).values()))


def _print_doubtful(database: Database, campaign: CampaignInfo, doubtful: pd.DataFrame) -> None:
    """Print a line for each of these trials, if any, _MOST_DOUBTFUL at most."""
    if doubtful.empty:
        return
    _print_trials(database, campaign, doubtful.nsmallest(_MOST_DOUBTFUL, "id"))
    if (more := len(doubtful) - _MOST_DOUBTFUL) > 0:
        say(f"{more} more trials are not ok: fecbench show --trials has all")


def _print_trials(database: Database, campaign: CampaignInfo, trials: pd.DataFrame) -> None:
    """Print a line for each of these trials; a table for each _ROWS_OF_A_TABLE."""
    from fecbench.results.metrics import DEFAULT

    metrics, in_order = _metrics(campaign), trials.sort_values("id", ignore_index=True)
    key = ("id", "variant", "workload", "point", "repetition", "state")
    columns = ["dct_s" if metric == DEFAULT else metric for metric in metrics]
    for first in range(0, max(len(in_order), 1), _ROWS_OF_A_TABLE):
        part = in_order.iloc[first : first + _ROWS_OF_A_TABLE]
        rows = (
            (
                *(row[name] for name in key),
                *(_value(row.get(metric), metric) for metric in metrics),
                " ".join(_losses(stored.record.dropper)),
                stored.record.reason,
            )
            for (_, row), stored in zip(part.iterrows(), _stored(database, part["id"]), strict=True)
        )
        print_table(table_of((*key, *columns, "dropped", "reason"), rows))


def _stored(database: Database, ids: pd.Series[int]) -> Iterator[StoredTrial]:
    """The runs of these ids, which ascend, read as they are consumed."""
    from fecbench.results.store.database import PAGE_TRIALS

    for first in range(0, len(ids), PAGE_TRIALS):
        yield from database.trials_with(ids[first : first + PAGE_TRIALS].tolist())


def _value(value: Any, metric: str) -> str:
    import pandas as pd

    from fecbench.results.metrics import DEFAULT

    if value is None or pd.isna(value):
        return "-"
    return f"{value:.3f}" if metric == DEFAULT else f"{value:.6g}"


def _losses(dropper: Mapping[str, Any]) -> Iterator[str]:
    """Yield the number of dropped packets of each direction, and of all. The name of an only link is
    omitted."""
    links = {name.partition("/")[0] for name in dropper}
    for name, counted in sorted(dropper.items()):
        rows = name.partition("/")[2] if len(links) == 1 else name
        yield f"{rows} {counted['dropped']}/{counted['seen']}"


def _print_overhead(database: Database, campaign: CampaignInfo) -> None:
    """Print the time of trials that is not the client's own: median and 90 % quantile of each phase."""
    from fecbench.results.analysis import frames

    times_ms = frames.overheads(database, campaign) * 1e3
    rows = []
    for name in sorted(map(str, times_ms.columns), key=lambda phase: phase == "total"):
        of_phase = times_ms[name].dropna()
        median_ms, p90_ms = of_phase.median(), of_phase.quantile(0.9)
        rows.append((name, f"{median_ms:.1f}", f"{p90_ms:.1f}", len(of_phase)))
    numbers = ("median ms", "p90 ms", "trials")
    print_table(table_of(("phase", *numbers), rows, right=numbers))
