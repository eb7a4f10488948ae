"""Probes of a path in the field, as recordings that other commands read (irtt's JSON, or a list of losses),
and its volleys."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from fecbench.results.store.database import Database
from fecbench.results.store.records import CampaignInfo, TrialSeries
from fecbench.results.store.stored_series import unpack

if TYPE_CHECKING:
    import pyarrow as pa

SERIES, VOLLEYS = "probes", "volley"

Times = NDArray[np.float64]


@dataclass(frozen=True)
class PathProbe:
    """A probe, and its answer."""

    at_s: float
    """Seconds since the epoch, by the clock of the near host."""
    rtt_ms: float | None
    """None: no answer came."""
    lost_up: bool
    lost_down: bool


@dataclass(frozen=True, eq=False)
class VolleyTimes:
    """Times of the packets of a volley (s), NaN where one did not come: an entry each, in the order of
    sending. Those of each host have a zero of their own."""

    sent: Times
    arrivals: Times
    answered: Times
    """Times at which the server sent them back."""
    answer: Times

    def of(self, direction: Literal["up", "down"]) -> tuple[Times, Times]:
        """Return when the packets of a direction were sent, and when they came."""
        if direction == "up":
            return self.sent, self.arrivals
        was_sent = np.isfinite(self.answered)
        return self.answered[was_sent], self.answer[was_sent]


def volleys(database: Database, campaign: CampaignInfo) -> list[VolleyTimes]:
    """Return the volleys of a campaign, one for each block."""
    tables = (unpack(series.table.data) for series in database.series(campaign.id, VOLLEYS))
    return [
        VolleyTimes(
            *(_times(table, name) for name in ("t_s", "came_s", "answered_s", "answer_s")),
        )
        for table in tables
    ]


def _times(table: pa.Table, name: str) -> Times:
    times: Times = table.column(name).to_numpy().astype(np.float64)
    return np.where(times < 0, np.nan, times)


def probes(database: Database, campaign: CampaignInfo) -> list[PathProbe]:
    """Return all probes of a campaign, in the order of time; none for one that was not in the field."""
    if campaign.engine != "field":
        return []
    tables = list(database.series(campaign.id, SERIES))  # before the trials: there may be more by then
    begun_s = {
        stored.id: datetime.fromisoformat(stored.record.started_at).timestamp()
        for stored in database.trials(campaign.id)
    }
    return sorted(_read(tables, begun_s), key=lambda probe: probe.at_s)


def _read(tables: Iterable[TrialSeries], begun_s: Mapping[int, float]) -> Iterator[PathProbe]:
    for series in tables:
        for row in unpack(series.table.data).to_pylist():
            yield PathProbe(
                begun_s[series.trial_id] + row["t_s"],
                row["rtt_ms"] if row["rtt_ms"] > 0 else None,
                bool(row["lost_up"]),
                bool(row["lost_down"]),
            )


def as_irtt(recorded: Sequence[PathProbe]) -> str:
    """Return a document of the form that `irtt client -o` writes."""
    trips = [
        {
            "lost": "false" if probe.rtt_ms is not None else "true_up" if probe.lost_up else "true_down",
            "delay": {} if probe.rtt_ms is None else {"rtt": round(1e6 * probe.rtt_ms)},
            "timestamps": {"client": {"send": {"wall": round(1e9 * probe.at_s)}}},
        }
        for probe in recorded
    ]
    return json.dumps({"round_trips": trips})


def as_losses(recorded: Sequence[PathProbe], direction: Literal["up", "down"]) -> str:
    """Return the losses of a direction, a digit a probe: 1 is lost. A probe that was lost on its way up
    could not be lost down."""
    digits = (
        str(int(probe.lost_up if direction == "up" else probe.lost_down))
        for probe in recorded
        if direction == "up" or not probe.lost_up
    )
    return "".join(digits) + "\n"
