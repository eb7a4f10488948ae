"""The trials that a campaign has to run, round by round. There is one round of all missing trials. A campaign
that runs until its results decide has a round up to each look at them.

Only the database records the looks, so that an interrupted campaign continues where it was, and several
processes that share it agree.
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

    def __init__(self, request: Request, database: Database, *, after: int | None = None) -> None:
        """`after` is the last trial of before, when another process has begun to go on with the campaign:
        what it, and others, have run since are attempts of this time."""
        self._request = request
        self._database = database
        self._after = after
        self._is_until_decided = bool(request.design.until) and request.crosscheck is None
        self._had: set[TrialKey] = set()
        """The trials of rounds before."""
        self.planned = 0
        """Number of trials that should have a result after the last round."""
        self._places = dict.fromkeys(map(_place, request.keys)) if self._is_until_decided else {}
        self._stopped = 0

    def first(self, campaign: CampaignInfo | None) -> Due:
        """Return the trials that a campaign lacks now. It may not have begun."""
        states = {} if campaign is None else self._database.states(campaign.id)
        if self._is_until_decided:
            return self._up_to_next_look(campaign, states)
        return self._due(self._request.keys, states, self._before(campaign, states))

    @property
    def state(self) -> str:
        """Return how many places have enough repetitions, in words."""
        places = f"{len(self._places):,} points"
        return f"{self._stopped:,} of {places} and workloads have enough repetitions"

    def next(self, campaign: CampaignInfo) -> Due:
        """Return the trials that are missing after the previous round was run; none at the campaign's end."""
        return self.first(campaign) if self._is_until_decided else {}

    def goes_on(self) -> bool:
        """Whether another group may begin."""
        return True

    def _before(self, campaign: CampaignInfo | None, states: States) -> States:
        """Return the states before this time."""
        if campaign is None or self._after is None:
            return states
        return self._database.states(campaign.id, up_to=self._after)

    def _due(self, keys: Sequence[TrialKey], states: States, before: States) -> Due:
        """Return those of these trials that have no result, an invalid one, or a state that is to be run
        again, now and before this time, with their attempts before.

        In virtual time, an invalid trial would be invalid again; in the field, it would not be run beside
        the others of its block. So neither is repeated.
        """
        request = self._request
        again = {"invalid", *request.retry} if request.engine == "local" else request.retry

        def is_lacking(key: TrialKey, states: States) -> bool:
            return key not in states or states[key][0] in again

        due = {
            key: before[key][1] if key in before else 0
            for key in keys
            if key not in self._had and is_lacking(key, states) and is_lacking(key, before)
        }
        self._had |= due.keys()
        self.planned = len(keys)
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
        return self._due(keys, states, self._before(campaign, states))

    def _reached(self, states: States) -> dict[Place, int]:
        """The last look that each place has all trials for; 0 for none."""
        design = self._request.design
        counts = Counter((key.workload, key.point, key.repetition) for key in states)
        whole = Counter(group[:2] for group, count in counts.items() if count == len(design.variants))
        return {
            place: max((look for look in design.looks if look <= whole[place]), default=0)
            for place in self._places
        }

    def _looked(self, campaign: CampaignInfo, reached: Mapping[Place, int]) -> dict[Place, Stop]:
        """Look at the places that may be decided, and return those of ours that need no more trials."""
        campaign = self._database.campaign(campaign.name) or campaign
        to_look_at = {
            place: count for place, count in reached.items() if count and place not in campaign.stops
        }
        if to_look_at:
            # Imported here: pandas and SciPy take longer to load than most commands take to run.
            from fecbench.results.analysis import deciding

            if new_stops := deciding.stops(self._database, campaign, to_look_at):
                campaign = self._database.stop(campaign.id, new_stops)
        return {place: stop for place, stop in campaign.stops.items() if place in reached}


def _place(key: TrialKey) -> Place:
    return key.workload, key.point
