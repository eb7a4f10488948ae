"""The JSON documents of campaigns and trials. What stands in them stays: scripts rely on it."""

import json
from collections.abc import Iterable
from typing import Any

import numpy as np

from results.store.database import CampaignInfo, Database, StoredTrial


def print_document(document: object, indent: int | None = 1) -> None:
    """Print a document. JSON has an escape for every control character, so a terminal obeys none of it."""
    print(json.dumps(document, indent=indent))


def database_document(database: Database, campaigns: Iterable[CampaignInfo]) -> dict[str, Any]:
    """Campaigns, and every trial of them."""
    campaigns = list(campaigns)
    return {
        "campaigns": [campaign_document(campaign) for campaign in campaigns],
        "trials": [
            trial_document(campaign, stored)
            for campaign in campaigns
            for stored in database.trials(campaign.id)
        ],
    }


def campaign_document(campaign: CampaignInfo) -> dict[str, Any]:
    """What a campaign was asked to be, and what it was run with."""
    return {
        "name": campaign.name,
        "title": campaign.title,
        "created_at": campaign.created_at,
        "seed": campaign.seed,
        "repetitions": campaign.repetitions,
        "statistic": campaign.statistic,
        "planned_trials": campaign.planned_trials,
        "points": campaign.points,
        "variants": campaign.variants,
        "workloads": campaign.workloads,
        "provenance": campaign.provenance,
    }


def trial_document(campaign: CampaignInfo, stored: StoredTrial) -> dict[str, Any]:
    """One trial of a campaign."""
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
