"""How a campaign stands while it runs: what has landed, what was invalid and why, and the answer so far.

The answer is looked at again and again, so its intervals err more often than those of a campaign that has
ended.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass

import pandas as pd

from fecbench.results.analysis import comparison, frames
from fecbench.results.metrics import of_workloads
from fecbench.results.store.database import Database
from fecbench.results.store.records import CampaignInfo, State

_NUMBER = re.compile(r"\d[\d.,:]*")


@dataclass(frozen=True)
class Standing:
    """A campaign at one moment."""

    campaign: CampaignInfo
    states: dict[State, int]
    """Of the trials that count."""
    invalid: dict[str, int]
    """How many runs were invalid by each cause, those included that were run again."""
    held: int
    """Groups that are being run."""
    pulse: tuple[int, ...]
    """Changes while a harness is alive."""
    answers: pd.DataFrame
    """`comparison.of_frame`."""

    @property
    def done(self) -> int:
        """Trials that have been run, without those that are invalid."""
        return sum(self.states.values()) - self.states.get("invalid", 0)

    @property
    def planned(self) -> int:
        return self.campaign.planned_trials

    @property
    def has_ended(self) -> bool:
        """Whether every planned trial was run, and none is being run again."""
        return sum(self.states.values()) >= self.planned and not self.held


def standing(database: Database, campaign: CampaignInfo) -> Standing:
    """Return how a campaign stands. Raises DatabaseError when it cannot be read."""
    starts = database.starts(campaign.id)
    held = len(database.claims(campaign.id))
    states = database.states_of(campaign.id)
    trials = frames.trials(database, campaign, set(of_workloads(campaign).values()))
    return Standing(
        campaign=campaign,
        states=states,
        invalid=by_cause(database.invalid_reasons(campaign.id)),
        held=held,
        pulse=(sum(states.values()), len(starts), *(start.beat for start in starts)),
        answers=comparison.of_frame(trials, campaign),
    )


def by_cause(reasons: dict[str, int]) -> dict[str, int]:
    """The counts of reasons that differ in their numbers alone, as one, the most frequent first."""
    causes: Counter[str] = Counter()
    for reason, count in reasons.items():
        causes[_NUMBER.sub("…", reason)] += count
    return dict(causes.most_common())
