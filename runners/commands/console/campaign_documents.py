"""The JSON documents of campaigns and trials. Their keys stay: scripts rely on them."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Sequence
from dataclasses import asdict
from tempfile import TemporaryFile
from typing import TYPE_CHECKING, Any

from fecbench.results.store.records import CampaignInfo, Start, StoredTrial

if TYPE_CHECKING:
    from fecbench.results.store.database import Database

Document = dict[str, Any]


def print_document(document: object, indent: int | None = 1) -> None:
    """Print a document. JSON has an escape for every control character, so a terminal obeys none of it."""
    print(json.dumps(document, indent=indent))


def print_database(
    database: Database, campaigns: Sequence[CampaignInfo], compared: Sequence[CampaignInfo]
) -> None:
    """Print campaigns, with every trial and every start of them; `compared` says of each how it is compared.

    A task is there once, though many trials have it: `task_index` of a trial is its place in `tasks`. Trials
    come after tasks, and wait for the last one in a file: of a million, they are larger than most memories.
    """
    from fecbench.results.analysis.starts import starts_of

    document: Document = {"campaigns": [], "starts": [], "tasks": [], "trials": []}
    indices: dict[str, int] = {}
    separator = first = "\n  "
    with TemporaryFile("w+", encoding="utf-8") as trials:
        for campaign, comparing in zip(campaigns, compared, strict=True):
            ran = starts_of(database, campaign)
            document["campaigns"].append(
                {
                    **campaign_document(campaign),
                    "comparisons": comparisons_document(database, comparing),
                    "attempts": attempts_document(database, campaign),
                    "start_differences": [asdict(difference) for difference in ran.differences],
                }
            )
            document["starts"] += [start_document(start) for start in database.starts(campaign.id)]
            for stored in database.trials(campaign.id):
                index = indices.setdefault(json.dumps(stored.record.task, sort_keys=True), len(indices))
                if index == len(document["tasks"]):
                    document["tasks"].append(stored.record.task)
                attempts = [stored] if stored.attempt == 1 else attempts_of(database, stored)
                trial = {
                    **trial_document(campaign, stored),
                    "attempts": [attempt_document(attempt) for attempt in attempts],
                    "task_index": index,
                }
                trials.write(separator + json.dumps(trial, indent=1).replace("\n", "\n  "))
                separator = ",\n  "
        before, after = json.dumps(document, indent=1).rsplit("[]", 1)
        if separator == first:
            print(f"{before}[]{after}")
            return
        trials.seek(0)
        print(f"{before}[", end="")
        shutil.copyfileobj(trials, sys.stdout)
        print(f"\n ]{after}")


def whole_trial_document(database: Database, campaign: CampaignInfo, stored: StoredTrial) -> Document:
    """One trial with its task, all its attempts, the start that ran it, and the series that it left."""
    start = start_of(database, stored)
    return {
        **trial_document(campaign, stored),
        "attempts": [attempt_document(attempt) for attempt in attempts_of(database, stored)],
        "task": stored.record.task,
        "start": None if start is None else start_document(start),
        "series": [
            {"endpoint": table.endpoint, "name": table.name, "columns": table.columns, "rows": table.rows}
            for table in database.series_of(stored.id)
        ],
    }


def attempts_of(database: Database, stored: StoredTrial) -> list[StoredTrial]:
    """Every run of the same trial, oldest first."""
    return database.attempts(stored.campaign_id, stored.record.key)


def start_of(database: Database, stored: StoredTrial) -> Start | None:
    """The start that ran the trial; None where it is not known."""
    starts = database.starts(stored.campaign_id)
    return next((start for start in starts if start.id == stored.start_id), None)


def campaign_document(campaign: CampaignInfo) -> Document:
    """Return the design of a campaign, and what it was run with."""
    return {
        "name": campaign.name,
        "title": campaign.title,
        "created_at": campaign.created_at,
        "seed": campaign.seed,
        "repetitions": campaign.repetitions,
        "averaged_repetitions": campaign.averaged_repetitions,
        "statistic": campaign.statistic,
        "margin": campaign.margin,
        "planned_trials": campaign.planned_trials,
        "stops": [asdict(stop) for _, stop in sorted(campaign.stops.items())],
        "points": campaign.points,
        "variants": campaign.variants,
        "workloads": campaign.workloads,
        "kind": campaign.kind,
        "engine": campaign.engine,
        "checks": campaign.checked,
        "provenance": campaign.provenance,
    }


def comparisons_document(database: Database, campaign: CampaignInfo) -> list[Document]:
    """Return the comparison of each variant with its baseline, a row a (workload, variant)."""
    # Imported here: SciPy takes longer to load than most commands take to run.
    from fecbench.results.analysis import comparison, frames

    trials = frames.trials(database, campaign, comparison.metrics_of(campaign))
    return comparison.document(comparison.of_frame(trials, campaign))


def attempts_document(database: Database, campaign: CampaignInfo) -> list[Document]:
    """Return how often the trials of each variant were run, a row a variant; JSON has no NaN."""
    # Imported here: SciPy takes longer to load than most commands take to run.
    from fecbench.results.analysis.attempts import by_variant

    table = by_variant(database, campaign)
    return [
        {str(name): None if value != value else value for name, value in row.items()}
        for row in table.to_dict("records")
    ]


def start_document(start: Start) -> Document:
    """One run of the command that added trials to a campaign."""
    return {
        "id": start.id,
        "started_at": start.started_at,
        "host": start.host,
        "holder": start.holder,
        "provenance": start.provenance,
    }


def trial_document(campaign: CampaignInfo, stored: StoredTrial) -> Document:
    """One run of a trial of a campaign, without its task."""
    record = stored.record
    return {
        **attempt_document(stored),
        "start_id": stored.start_id,
        "key": {
            "campaign": campaign.name,
            "variant": record.key.variant,
            "workload": record.key.workload,
            "point": record.key.point,
            "repetition": record.key.repetition,
        },
        "seeds": record.seeds,
        "metrics": record.metrics,
        "checks": record.checks,
        "verdict_check": record.checks.get("verdicts", {}),
        "stalled_s": record.checks.get("stalled_s"),
        "trials_at_once": record.checks.get("trials_at_once"),
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


def attempt_document(stored: StoredTrial) -> Document:
    """One run of a trial, in short."""
    record = stored.record
    return {
        "id": stored.id,
        "attempt": stored.attempt,
        "state": record.state,
        "reason": record.reason,
        "started_at": record.started_at,
        "duration_s": record.duration_s,
    }


def dropped_indices(bitmap: bytes) -> list[int]:
    """The indices of the packets that were dropped."""
    import numpy as np

    bits = np.unpackbits(np.frombuffer(bitmap, dtype=np.uint8), bitorder="little")
    return [int(index) for index in np.flatnonzero(bits)]
