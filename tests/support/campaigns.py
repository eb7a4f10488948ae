"""Campaigns that were never run: what a test says of one, and else what is usual."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import pandas as pd

from fecbench.results.store.database import Database
from fecbench.results.store.records import (
    STATES,
    CampaignInfo,
    NewCampaign,
    State,
    TrialKey,
    TrialRecord,
    Variant,
    Workload,
)

STARTED = "2026-01-02T03:04:05+00:00"


def variants(*labels: str, baseline: str | None = None) -> list[Variant]:
    """Variants with these labels; the first is the baseline unless another is named."""
    return [
        Variant(label=label, implementation="rquic", options={}, baseline=label == (baseline or labels[0]))
        for label in labels
    ]


def workload(label: str = "download-1", name: str = "download", **parameters: object) -> Workload:
    return Workload(label=label, name=name, parameters=parameters)


def new_campaign(name: str = "planted", **fields: Any) -> NewCampaign:
    """Return a campaign with one repetition of a download by one variant at one point."""
    return NewCampaign(name=name, **{**_usual(), **fields})


def campaign_info(name: str = "planted", **fields: Any) -> CampaignInfo:
    """The same, as a database would hold it."""
    return CampaignInfo(name=name, **{**_usual(), "id": 1, "created_at": STARTED, **fields})


def _usual() -> dict[str, Any]:
    return {
        "title": "Title",
        "design_text": "",
        "seed": 1,
        "repetitions": 1,
        "statistic": "median",
        "provenance": {},
        "points": [{"owd_ms": 5}],
        "variants": variants("off"),
        "workloads": [workload()],
    }


@contextmanager
def only_campaign(place: object) -> Iterator[tuple[Database, CampaignInfo]]:
    """Open the database at a path or an address, which has one campaign; yield both."""
    with Database.open(str(place)) as database:
        (campaign,) = database.campaigns()
        yield database, campaign


def trial(key: TrialKey, state: State = "ok", reason: str = "", **fields: Any) -> TrialRecord:
    """A trial that took a second."""
    return TrialRecord(key, state, reason, STARTED, 1.0, **fields)


def trial_row(
    variant: str,
    workload: str = "download-1",
    point: int = 0,
    repetition: int = 0,
    state: State = "ok",
    **values: object,
) -> dict[str, object]:
    """Return a trial as a row of a frame, with these values."""
    key = {"variant": variant, "workload": workload, "point": point, "repetition": repetition}
    return {**key, "state": state, **values}


def frame_of(rows: Iterable[Mapping[str, object]], campaign: CampaignInfo) -> pd.DataFrame:
    """Trials as a frame of the campaign has them."""
    return pd.DataFrame(list(rows)).astype(types_of(campaign))


def types_of(campaign: CampaignInfo) -> dict[str, pd.CategoricalDtype]:
    """Return the types of a frame's labels and states: labels are categories in the order of the design."""
    orders = {
        "variant": [variant["label"] for variant in campaign.variants],
        "workload": [item["label"] for item in campaign.workloads],
        "state": list(STATES),
    }
    return {name: pd.CategoricalDtype(labels, ordered=True) for name, labels in orders.items()}
