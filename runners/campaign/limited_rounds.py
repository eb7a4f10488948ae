"""The rounds of a campaign that runs until one verdict over all its networks, or until its time is over.

All networks get the same number of repetitions, which grows from look to look. A round is a lot of groups
that takes some seconds, so that the remaining time is checked often enough. Looks need no record: the same
trials give the same verdict to every later start.

An emulated pair with an invalid trial is in no ratio, and the time of its other trial is wasted. So this pair
is run again first, a few times, before another pair.
"""

import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence

from fecbench.looks import looks_of_builds
from fecbench.quantities import counted
from fecbench.results.store.database import Database
from fecbench.results.store.records import CampaignInfo, Group, TrialKey
from fecbench.runners.campaign.request import Request
from fecbench.runners.campaign.rounds import Due, States

LOT_S = 10.0
"""Approximate length of a lot."""
FIRST_LOT = 4
"""Groups, before anything is known of how long they take."""
AGAIN = 2
"""Lots in which a pair with an invalid trial is run again."""
GROWTH = 8
"""A lot is at most so many times as large as the one before, which may have been quick by chance."""

Decides = Callable[[CampaignInfo], bool]
"""Whether the trials that there are decide."""


class LimitedRounds:
    """Lots of trials (`campaign.Rounds`), until the verdict, the end of the time or of the repetitions."""

    def __init__(
        self,
        request: Request,
        database: Database,
        limit_s: float,
        decides: Decides,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._database = database
        self._decides = decides
        self._clock = clock
        self._ends_at = clock() + limit_s
        self._lot = (0, clock())
        """Number of groups in the last lot, and its time."""
        self._looks = looks_of_builds(request.design.repetitions)
        self._groups: dict[int, dict[Group, list[TrialKey]]] = {}
        """Groups of one repetition of all networks, by repetition, in the order of the design."""
        for key in request.keys:
            self._groups.setdefault(key.repetition, {}).setdefault(key.group, []).append(key)
        self._again_where = set() if request.engine == "virtual" else {"invalid"}
        """The states after which another attempt may end otherwise."""
        self._lots: Counter[Group] = Counter()
        """Number of lots that each group was in."""
        self._looked_at = 0
        self._looks_made = 0
        self._starts_before = 0
        """Earlier starts, which have looked at it when they ended."""
        self.is_decided = False
        self.is_over = False
        """Whether it ended because its time did."""
        self.planned = 0

    @property
    def why(self) -> str:
        """The reason for which it ended, in words; and that earlier starts may have looked, too.

        The looks of one start may err in 5 % of cases together, whatever those of others do.
        """
        again, before = "", self._starts_before
        if before and self._lots:
            again = (
                f"; {counted(before, 'earlier start', 'has/have')} trials here: if"
                f" {'it' if before == 1 else 'each'} gave an answer, too, all answers together may err in"
                f" up to {5 * (before + 1)} % of cases"
            )
        if self.is_decided:
            return f"decided after {counted(self._looked_at, 'repetition')} of each network{again}"
        if self.is_over:
            missed = next((look for look in self._looks if look > self._looked_at), self._looks[-1])
            return f"the time is over before each network has {counted(missed, 'repetition')}{again}"
        return f"all {counted(self._looks[-1], 'repetition')} of each network are there{again}"

    @property
    def share(self) -> float:
        """The last look's share of all errors that its looks may make together.

        Each planned look has an equal share. When its time is over, it looks once more, whatever the results
        are, and that look has the shares of the later ones.
        """
        count = len(self._looks)
        if self.is_over and not self._starts_before:
            return (count - self._looks_made) / count
        return 1 / count

    @property
    def state(self) -> str:
        left_s = max(0.0, self._ends_at - self._clock())
        return (
            f"after {self._looked_at} of up to {counted(self._looks[-1], 'repetition')},"
            f" {left_s / 60:.1f} min left"
        )

    def first(self, campaign: CampaignInfo | None) -> Due:
        """The next lot that is missing, after a look where one is due; nothing where all is over."""
        states = {} if campaign is None else self._database.states(campaign.id)
        if campaign is not None and states and not self._lots:
            self._starts_before = max(1, len(self._database.starts(campaign.id)))
        for look in self._looks:
            missing = {
                group: due
                for repetition in range(look)
                for group, keys in self._groups.get(repetition, {}).items()
                if (due := self._due(group, keys, states))
            }
            if missing:
                return self._next_lot(missing, len(states))
            if look > self._looked_at and campaign is not None:
                self._looked_at = look
                self._looks_made += 1
                self.is_decided = self._decides(campaign)
            if self.is_decided:
                break
        return {}

    def next(self, campaign: CampaignInfo) -> Due:
        """Return the next trials after the previous round was run, like `first`."""
        return self.first(campaign)

    def goes_on(self) -> bool:
        """Whether another group may begin: a lot may take longer than the one before promised."""
        return self._clock() < self._ends_at

    def _due(self, group: Group, keys: Sequence[TrialKey], states: States) -> Due:
        """Return the trials of a group to run: those without a result, and a few times those that are
        invalid."""
        if not self._lots[group]:
            missing = [key for key in keys if key not in states or states[key][0] in self._again_where]
        elif self._lots[group] <= AGAIN:
            missing = [key for key in keys if key in states and states[key][0] in self._again_where]
        else:
            missing = []
        return {key: states[key][1] if key in states else 0 for key in missing}

    def _next_lot(self, missing: Mapping[Group, Due], there: int) -> Due:
        """Return as many groups as LOT_S, or the remaining time, allows.

        Groups that were run before come first, since lots follow one order.
        """
        now = self._clock()
        left_s = self._ends_at - now
        if left_s <= 0:
            self.is_over = True
            return {}
        size, since = self._lot
        count = FIRST_LOT
        if size:
            fitting = size / max(now - since, 1e-3) * min(LOT_S, left_s)
            count = max(1, min(int(fitting), GROWTH * size))
        groups = list(missing)[:count]
        self._lot = (len(groups), now)
        self._lots.update(groups)
        due = {key: attempts for group in groups for key, attempts in missing[group].items()}
        self.planned = there + sum(not attempts for attempts in due.values())
        return due
