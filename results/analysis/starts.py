"""The starts of a campaign, and what differs between them: machines, kernels, libraries, jobs, limits of
endpoints, calibrations.

A campaign that was run by several starts reads as one. Its reader must see where the starts differ.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from fecbench.quantities import counted
from fecbench.results.store.records import CampaignInfo, Start

if TYPE_CHECKING:
    from fecbench.results.store.database import Database

COMPARED = (
    *("machine", "cpu", "cores", "kernel", "python", "libraries", "revision", "fecbench", "jobs"),
    "confinement",
)
"""The provenance that is compared between starts, besides the host and the findings of the calibration."""
UNKNOWN = "unknown"


@dataclass(frozen=True)
class StartDifference:
    """One thing in which starts differ."""

    what: str
    values: dict[int, str]
    """The value of each start, by its id."""


@dataclass(frozen=True)
class Starts:
    """The starts that have run trials of a campaign."""

    starts: Sequence[Start]
    trials: Mapping[int, int]
    """The number of counted trials that each has run, by its id."""
    unknown_trials: int
    """Trials of which no start is known."""
    differences: Sequence[StartDifference]


def starts_of(
    database: Database, campaign: CampaignInfo, trials: Mapping[int | None, int] | None = None
) -> Starts:
    """The starts of a campaign that its trials name. `trials`: `Database.trials_by_start`, where it is known.
    Raises DatabaseError."""
    trials = database.trials_by_start(campaign.id) if trials is None else trials
    starts = [start for start in database.starts(campaign.id) if start.id in trials]
    return Starts(
        starts=starts,
        trials={start.id: trials[start.id] for start in starts},
        unknown_trials=trials.get(None, 0),
        differences=differences(starts),
    )


def differences(starts: Sequence[Start]) -> list[StartDifference]:
    """Return the provenance that is not the same for all starts, in the order in which provenance has it."""
    facts = {start.id: dict(_facts(start)) for start in starts}
    names = dict.fromkeys(name for own_facts in facts.values() for name in own_facts)
    compared = (
        StartDifference(name, {start: own_facts.get(name, UNKNOWN) for start, own_facts in facts.items()})
        for name in names
    )
    return [difference for difference in compared if len(set(difference.values.values())) > 1]


def sentences(starts: Starts) -> list[str]:
    """Return that a campaign has several starts, and their differences; nothing where one has run all of
    it."""
    lines = []
    if starts.starts and starts.unknown_trials:
        lines.append(
            f"Of {counted(starts.unknown_trials, 'trial')} it is not known which start has run them."
        )
    if len(starts.starts) > 1:
        shares = ", ".join(
            f"{start.id} on {start.host} ({starts.trials[start.id]})" for start in starts.starts
        )
        differ = "; they differ in" if starts.differences else ", which do not differ."
        lines.append(f"{len(starts.starts)} starts have run its trials: {shares}{differ}")
        lines += [f"{difference.what}: {_by_value(difference)}" for difference in starts.differences]
    return lines


def _by_value(difference: StartDifference) -> str:
    """Each value, and the starts that have it."""
    having: dict[str, list[int]] = {}
    for start, value in difference.values.items():
        having.setdefault(value, []).append(start)
    return "; ".join(f"{value} (start {', '.join(map(str, ids))})" for value, ids in having.items())


def _facts(start: Start) -> Iterator[tuple[str, str]]:
    yield "host", start.host or UNKNOWN
    for name in COMPARED:
        if name in start.provenance:
            yield from _flat(name, start.provenance[name])
    tables = start.provenance.get("calibration", [])
    if tables:
        yield "calibration", "; ".join(map(_of_calibration, tables))


def _flat(name: str, value: Any) -> Iterator[tuple[str, str]]:
    if isinstance(value, Mapping):
        for part, inner in value.items():
            yield from _flat(f"{name}.{part}", inner)
    else:
        yield name, UNKNOWN if value is None else str(value)


def _of_calibration(table: Mapping[str, Any]) -> str:
    """Whether the link held its bounds, and which ones it missed."""
    if table.get("kind") == "skipped":
        return "not measured"
    if table.get("kind") == "virtual":
        return "the same answers"
    missed = [line["name"] for line in table.get("measurements", []) if line.get("good") is False]
    return f"missed {', '.join(missed)}" if missed else "every bound held"
