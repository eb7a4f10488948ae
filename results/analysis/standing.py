"""The state of a campaign while it runs: trials that have landed, invalid ones and why, and the answer so
far.

The answer is looked at again and again, so its intervals err more often than those of a campaign that has
ended.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import pandas as pd

from fecbench.results.analysis import blocks, comparison, frames
from fecbench.results.store.database import Database
from fecbench.results.store.records import STATES, CampaignInfo, Place, State

_NUMBER = re.compile(r"\d[\d.,:]*")


@dataclass(frozen=True)
class Standing:
    """A campaign at one moment."""

    campaign: CampaignInfo
    states: dict[State, int]
    """The states of the trials that count, of those that are wanted."""
    invalid: dict[str, int]
    """The number of runs that were invalid by each cause, those included that were run again."""
    held: int
    """Groups that are being run."""
    pulse: tuple[int, ...]
    """Changes while a harness is alive."""
    answers: pd.DataFrame
    """`comparison.of_frame`."""
    planned: int
    """Trials that are wanted: all, or those of the filters of the newest start."""
    where: str = ""
    """The path, hours and number of blocks of a campaign in the field, in a sentence."""

    @property
    def done(self) -> int:
        """Trials that have been run, without those that are invalid."""
        return sum(self.states.values()) - self.states.get("invalid", 0)

    @property
    def has_ended(self) -> bool:
        """Whether every trial that is wanted was run, and none is being run again."""
        return sum(self.states.values()) >= self.planned and not self.held


def standing(database: Database, campaign: CampaignInfo) -> Standing:
    """Return how a campaign stands. Raises DatabaseError when it cannot be read."""
    starts = database.starts(campaign.id)
    claimed = len(database.claims(campaign.id))
    trials = frames.trials(database, campaign, comparison.metrics_of(campaign))
    newest = starts[-1].provenance if starts else {}
    selection = _Selection(campaign, newest.get("filters", ()))
    states = selection.states(trials)
    return Standing(
        campaign=campaign,
        states=states,
        invalid=by_cause(database.invalid_reasons(campaign.id)),
        held=claimed,
        planned=selection.planned,
        pulse=(len(trials), len(starts), *(start.beat for start in starts)),
        answers=comparison.of_frame(trials, campaign),
        where=blocks.lead(database, campaign),
    )


class _Selection:
    """The trials of a campaign that a start was to run: those that meet its filters."""

    def __init__(self, campaign: CampaignInfo, filters: Sequence[str]) -> None:
        self._campaign = campaign
        self._values: dict[str, set[str]] = {}
        for text in filters:
            field, _, value = text.partition("=")
            self._values.setdefault(field, set()).add(value)

    @property
    def planned(self) -> int:
        """The number of planned trials; a place that has stopped counts those that it has."""
        campaign = self._campaign
        if not self._values:
            return campaign.planned_trials
        variants = sum(self._meets("variant", variant["label"]) for variant in campaign.variants)
        places = [
            (workload["label"], point)
            for workload in campaign.workloads
            for point in range(len(campaign.points))
            if self._meets("workload", workload["label"]) and self._meets("point", point)
        ]
        return variants * sum(self._repetitions(place) for place in places)

    def states(self, trials: pd.DataFrame) -> dict[State, int]:
        """Return the number of trials in each state."""
        rows = trials
        for field, values in self._values.items():
            rows = rows[rows[field].astype(str).isin(values)]
        counts = rows["state"].astype(str).value_counts()
        return {state: int(counts[state]) for state in STATES if counts.get(state, 0)}

    def _repetitions(self, place: Place) -> int:
        stop = self._campaign.stops.get(place)
        repetitions = self._campaign.repetitions if stop is None else stop.repetitions
        return sum(self._meets("repetition", repetition) for repetition in range(repetitions))

    def _meets(self, field: str, value: object) -> bool:
        return field not in self._values or str(value) in self._values[field]


def by_cause(reasons: dict[str, int]) -> dict[str, int]:
    """The counts of reasons that differ in their numbers alone, as one, the most frequent first."""
    causes: Counter[str] = Counter()
    for reason, count in reasons.items():
        causes[_NUMBER.sub("…", reason)] += count
    return dict(causes.most_common())
