"""What a campaign is to run, round by round: one round of all that is missing, or, where it runs until its
results decide, one up to each look at them.

What has been looked at is in the database alone, so that an interrupted campaign goes on where it was, and
several that run it side by side come to the same.
"""

from collections import Counter
from collections.abc import Mapping, Sequence

from fecbench.results.store.database import Database
from fecbench.results.store.records import CampaignInfo, Place, State, Stop, TrialKey
from fecbench.runners.campaign.request import Request

States = Mapping[TrialKey, tuple[State, int]]
Due = dict[TrialKey, int]
"""The trials that are to be run, and how many attempts each has had before."""


class Rounds:
    """The rounds of one start of a campaign. A trial is in one of them at most."""

    def __init__(self, request: Request, database: Database) -> None:
        self._request = request
        self._database = database
        self._is_until_decided = bool(request.design.until) and request.crosscheck is None
        self._had: set[TrialKey] = set()
        """The trials of rounds before."""
        self.planned = 0
        """How many trials are to have a result after the last round that was given."""
        self._places = dict.fromkeys(map(_place, request.keys)) if self._is_until_decided else {}
        self._stopped = 0

    def first(self, campaign: CampaignInfo | None) -> Due:
        """What is missing now of a campaign, which may not have begun."""
        states = {} if campaign is None else self._database.states(campaign.id)
        if self._is_until_decided:
            return self._up_to_next_look(campaign, states)
        return self._due(self._request.keys, states)

    @property
    def state(self) -> str:
        """How many places have been run far enough, in words."""
        return f"{self._stopped} of {len(self._places)} points and workloads have enough repetitions"

    def next(self, campaign: CampaignInfo) -> Due:
        """What is missing after the round before has been run; nothing: the campaign is at its end."""
        return self.first(campaign) if self._is_until_decided else {}

    def goes_on(self) -> bool:
        """Whether another group may begin."""
        return True

    def _due(self, wanted: Sequence[TrialKey], states: States) -> Due:
        """Of the wanted trials, those without a result, with an invalid one, or in a state that is to be run
        again. In virtual time, one that was invalid would be so again."""
        request = self._request
        again = request.retry if request.engine == "virtual" else {"invalid", *request.retry}
        due = {
            key: states[key][1] if key in states else 0
            for key in wanted
            if (key not in states or states[key][0] in again) and key not in self._had
        }
        self._had |= due.keys()
        self.planned = len(wanted)
        return due

    def _up_to_next_look(self, campaign: CampaignInfo | None, states: States) -> Due:
        reached = self._reached(states)
        stops = {} if campaign is None else self._looked(campaign, reached)
        self._stopped = len(stops)
        looks = self._request.design.looks
        limits = {
            place: stops[place].repetitions
            if place in stops
            else next(look for look in looks if look > repetitions)
            for place, repetitions in reached.items()
        }
        keys = [key for key in self._request.keys if key.repetition < limits[_place(key)]]
        return self._due(keys, states)

    def _reached(self, states: States) -> dict[Place, int]:
        """The last look that each place has all trials for; 0 for none."""
        design = self._request.design
        ended = Counter((key.workload, key.point, key.repetition) for key in states)
        whole = Counter(group[:2] for group, count in ended.items() if count == len(design.variants))
        return {
            place: max((look for look in design.looks if look <= whole[place]), default=0)
            for place in self._places
        }

    def _looked(self, campaign: CampaignInfo, reached: Mapping[Place, int]) -> dict[Place, Stop]:
        """The places of ours that need no more, after a look at those that may be so."""
        campaign = self._database.campaign(campaign.name) or campaign
        to_look_at = {
            place: count for place, count in reached.items() if count and place not in campaign.stops
        }
        if to_look_at:
            # Imported here: pandas and SciPy take longer to load than most commands take to run.
            from fecbench.results.analysis import deciding

            if found := deciding.stops(self._database, campaign, to_look_at):
                campaign = self._database.stop(campaign.id, found)
        return {place: stop for place, stop in campaign.stops.items() if place in reached}


def _place(key: TrialKey) -> Place:
    return key.workload, key.point
