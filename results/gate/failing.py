"""The pairs of which a trial failed or timed out: in both builds, in the old one alone, in the new one
alone.

They are in no ratio. A pair that fails in both builds would have the ratio 1, and two builds would look more
equal the more often they fail. A pair that fails in the new build alone is a finding. In virtual time one is
enough: it fails again with its seed. An emulated one may have been disturbed by the machine, so their number
is judged.
"""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd

from fecbench.results.analysis.outcomes import COUNTED, is_worst
from fecbench.results.analysis.pairing import PAIR
from fecbench.results.analysis.quantiles import fisher_greater
from fecbench.results.gate.overall import NEW, OLD
from fecbench.results.store.records import CampaignInfo

SUSPECTED = 0.15
"""The p-value below which the new build may fail more often. Where emulated trials have a lower one, the
report does not say that they fail no more often."""
MOST = 3
"""Failing pairs that are shown with the commands that replay them."""
_KINDS = ("both", "new_alone", "old_alone")
_NUMBERS = ("point", "repetition", "id_old", "id_new")


@dataclass(frozen=True)
class FailingPair:
    """A pair of which at least one trial failed or timed out."""

    kind: str
    """The builds in which it failed: "both", "new_alone" or "old_alone"."""
    workload: str
    point: int
    repetition: int
    old_trial: int
    new_trial: int


@dataclass(frozen=True)
class Failed:
    """The numbers of pairs that failed, of those that both builds have run."""

    both: int = 0
    old_alone: int = 0
    new_alone: int = 0
    run: int = 0
    """Pairs of two trials that the harness vouches for, whether they failed or not."""
    places: int = 0
    """Number of networks, each with each workload, that have such a pair."""
    pairs: tuple[FailingPair, ...] = ()
    """Some of them: of the new build alone first."""

    @property
    def any(self) -> int:
        return self.both + self.old_alone + self.new_alone

    def lost(self, deterministic: bool) -> float:
        """Return the share of pairs whose absence from the ratios may hide that the new build is slower."""
        hiding = self.both + (0 if deterministic else self.new_alone)
        return hiding / self.run if self.run else 0.0

    def p_value(self, deterministic: bool) -> float:
        """Return the probability of so many failures of the new build if both fail as often: in virtual time,
        where a trial ends in the same way each time, none where it fails alone; else of Fisher's exact
        test."""
        if not self.new_alone:
            return 1.0
        if deterministic:
            return 0.0
        old, new = self.both + self.old_alone, self.both + self.new_alone
        return fisher_greater((new, self.run - new), (old, self.run - old))


NONE = Failed()


def failed_of(frame: pd.DataFrame) -> Failed:
    """Return which pairs of a frame of trials failed."""
    counted = frame[frame["state"].isin(COUNTED)]
    counted = counted.assign(worst=is_worst(counted))
    arms = [counted.loc[counted["variant"] == arm, [*PAIR, "worst", "id"]] for arm in (OLD, NEW)]
    run = arms[0].merge(arms[1], on=PAIR, suffixes=("_old", "_new")).sort_values(PAIR, ignore_index=True)
    old, new = (run[f"worst_{arm}"].astype(bool) for arm in (OLD, NEW))
    of_kinds = {"both": old & new, "new_alone": new & ~old, "old_alone": old & ~new}
    failing_pairs = [
        FailingPair(kind, str(row["workload"]), *(int(row[name]) for name in _NUMBERS))
        for kind in ("new_alone", "both")
        for row in run[of_kinds[kind]].head(MOST).to_dict("records")
    ]
    counts = {kind: int(of_kinds[kind].sum()) for kind in _KINDS}
    places = len(run[["workload", "point"]].drop_duplicates())
    return Failed(**counts, run=len(run), places=places, pairs=tuple(failing_pairs[:MOST]))


def is_deterministic(campaign: CampaignInfo) -> bool:
    """Return whether a trial of this campaign ends in the same way each time."""
    return campaign.engine == "virtual"
