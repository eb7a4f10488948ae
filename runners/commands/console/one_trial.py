"""Everything of one trial, for a person."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from fecbench.results.metrics import of
from fecbench.results.store.database import Database
from fecbench.results.store.records import CampaignInfo, StoredTrial, TrialRecord
from fecbench.runners.commands.console.campaign_documents import attempts_of, start_of
from fecbench.runners.commands.console.terminal import say
from fecbench.runners.commands.console.terminal_tables import print_table, table_of

MOST_ENTRIES = 20
"""A list with more of them, such as the objects of a web page, is counted and not shown."""


def print_trial(database: Database, campaign: CampaignInfo, stored: StoredTrial) -> None:
    """Print what was asked for, what happened, and what everybody reported."""
    record = stored.record
    say(f"trial {stored.id} of campaign {campaign.heading}")
    _print(("", "trial"), _summary(database, campaign, stored))
    if len(attempts := attempts_of(database, stored)) > 1:
        _print(("attempts", "attempt", "id", "started at", "reason"), map(_attempt_row, attempts))
    unknown = [("", "not known: tasks were not kept when it ran")]
    common = {name: value for name, value in record.task.items() if name != "pairs"}
    _print(("asked for", "value"), list(_flat(common)) or unknown)
    for number, pair in enumerate(record.task.get("pairs", [])):
        _print((f"pair {number}", "client", "server"), _pair_rows(pair))
    _print(("seed of", "value"), record.seeds.items())
    _print(
        (
            *("link", "direction", "judged", "lost", "in", "out", "queue dropped", "dropped in outage"),
            *("late by µs (p50/p99/max)", ""),
        ),
        _direction_rows(record),
    )
    _print(("metric", *record.metrics, "unit"), _metric_rows(record), right=list(record.metrics))
    unknown_checks = [(name, "not known") for name, value in record.checks.items() if value is None]
    _print(("check", "value"), [*_flat(record.checks), *unknown_checks])
    times = [(phase, f"{seconds * 1e3:.1f}") for phase, seconds in record.overhead_s.items()]
    _print(("time that is not the client's", "ms"), times, right=["ms"])
    series = [
        (table.endpoint, table.name, table.rows, ", ".join(table.columns))
        for table in database.series_of(stored.id)
    ]
    _print(("endpoint", "series", "rows", "columns"), series, right=["rows"])
    for endpoint, status in record.exits.items():
        lines = record.stderr.get(endpoint, "").splitlines()
        end = "had to be killed" if status is None else f"ended with {status}"
        say(f"{endpoint} {end}, with {'this' if lines else 'nothing'} on standard error")
        for line in lines:
            say(f"  {line}")


def _print(headings: Sequence[str], rows: Iterable[Sequence[object]], right: Sequence[str] = ()) -> None:
    """Print a table, if it has rows."""
    if rows := list(rows):
        print_table(table_of(headings, rows, right))


def _summary(database: Database, campaign: CampaignInfo, stored: StoredTrial) -> Iterator[tuple[str, str]]:
    record, start = stored.record, start_of(database, stored)
    yield "variant", record.key.variant
    yield "workload", record.key.workload
    factors = ", ".join(
        f"{name} = {_shown(value)}" for name, value in campaign.points[record.key.point].items()
    )
    yield "point", f"{record.key.point}: {factors}"
    yield "repetition", str(record.key.repetition)
    yield "state", f"{record.state}: {record.reason}" if record.reason else record.state
    yield "attempt", str(stored.attempt)
    yield "started at", record.started_at
    yield "took", f"{record.duration_s:.3f} s"
    if start is not None:
        revision = start.provenance.get("revision", {})
        changed = ", with changes that were not committed" if revision.get("changed") else ""
        yield "ran on", f"{start.host}, Linux {start.provenance.get('kernel')}"
        yield "revision", f"{revision.get('commit')}{changed}"


def _attempt_row(run: StoredTrial) -> tuple[object, ...]:
    record = run.record
    return record.state, run.attempt, run.id, record.started_at, record.reason


def _pair_rows(pair: dict[str, Any]) -> Iterator[tuple[str, str, str]]:
    """Yield the options of both ends, and their workload, which is the same."""
    ends = {end: dict(_flat(pair[end])) for end in ("client", "server")}
    for name in dict.fromkeys(name for values in ends.values() for name in values):
        yield name, ends["client"].get(name, "-"), ends["server"].get(name, "-")
    for part in ("workload", "demand"):
        for name, value in _flat(pair.get(part), part):
            yield name, value, value


def _metric_rows(record: TrialRecord) -> Iterator[tuple[str, ...]]:
    """Each metric beside what every endpoint reported."""
    for name in sorted({name for values in record.metrics.values() for name in values}):
        values = [reported.get(name) for reported in record.metrics.values()]
        unit = of(f"{next(iter(record.metrics))}.{name}").unit
        yield name, *("-" if value is None else f"{value:.6g}" for value in values), unit


def _direction_rows(record: TrialRecord) -> Iterator[tuple[object, ...]]:
    """Yield the counts of the dropper and of the link in each direction of each link."""
    verdicts = {(log.link, log.direction): log for log in record.verdicts}
    for link, report in record.links.items():
        for direction, frames in report.get("directions", {}).items():
            log, lateness = verdicts.get((link, direction)), frames.get("lateness_us")
            yield (
                link,
                direction,
                "-" if log is None else log.packets,
                "-" if log is None else log.dropped,
                frames["frames_in"],
                frames["frames_out"],
                frames["queue_dropped"],
                frames.get("outage_dropped", 0),
                "-" if lateness is None else _quantiles(lateness),
                "conserved" if frames["conserved"] else "NOT CONSERVED",
            )


def _quantiles(values: dict[str, float]) -> str:
    return "/".join(f"{values[name]:.0f}" for name in ("p50", "p99", "max"))


def _flat(document: Any, name: str = "") -> Iterator[tuple[str, str]]:
    """The values of a document, by dotted names; those that are not set are left out."""
    entries = _entries(document)
    if entries is None:
        if document is not None:
            yield name, _shown(document)
    elif isinstance(document, list) and len(entries) > MOST_ENTRIES:
        yield name, f"({len(entries)} entries: see --json)"
    elif not entries and name:
        yield name, "none"
    else:
        for key, value in entries:
            yield from _flat(value, f"{name}.{key}" if name else str(key))


def _shown(value: Any) -> str:
    """A number in the digits that a person reads; --json has all of them."""
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _entries(document: Any) -> list[tuple[Any, Any]] | None:
    """The parts of a document, or None for a value."""
    if isinstance(document, dict):
        return list(document.items())
    return list(enumerate(document)) if isinstance(document, list) else None
