"""The pairs of which a trial failed or timed out: in both builds, in the old one alone, in the new one
alone.

They are in no ratio. A pair that fails in both builds would have the ratio 1, and two builds would look more
equal the more often they fail. A pair that fails in the new build alone is a finding. In virtual time one is
enough: it fails again with its seed. An emulated one may have been disturbed by the machine, so their number
is judged. A trial that is ok, but lacks a time since that is longer than any, fails too: a live video that
never began.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from fecbench.results.analysis.outcomes import COUNTED
from fecbench.results.analysis.quantiles import fisher_greater
from fecbench.results.gate.overall import rows_of_pairs, values_of
from fecbench.results.store.records import CampaignInfo

SUSPECTED = 0.15
"""The p-value below which the new build may fail more often. Where emulated trials have a lower one, the
report does not say that they fail no more often."""
MOST = 3
"""Failing pairs that are shown with the commands that replay them."""


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


def failed_of(frame: pd.DataFrame, campaign: CampaignInfo) -> Failed:
    """Return which pairs of a frame of trials failed."""
    old, new = rows_of_pairs(frame, COUNTED)
    worst = np.isinf(values_of(frame, campaign))
    of_old, of_new = worst[old], worst[new]
    of_kinds = {"both": of_old & of_new, "new_alone": of_new & ~of_old, "old_alone": of_old & ~of_new}
    failing_pairs = [
        _failing_pair(kind, frame.iloc[old[pair]], frame.iloc[new[pair]])
        for kind in ("new_alone", "both")
        for pair in np.flatnonzero(of_kinds[kind])[:MOST]
    ]
    counts = {kind: int(of_kind.sum()) for kind, of_kind in of_kinds.items()}
    places = len(frame[["workload", "point"]].iloc[old].drop_duplicates())
    return Failed(**counts, run=len(old), places=places, pairs=tuple(failing_pairs[:MOST]))


def _failing_pair(kind: str, old: pd.Series, new: pd.Series) -> FailingPair:
    point, repetition = int(old["point"]), int(old["repetition"])
    return FailingPair(kind, str(old["workload"]), point, repetition, int(old["id"]), int(new["id"]))


def is_deterministic(campaign: CampaignInfo) -> bool:
    """Return whether a trial of this campaign ends in the same way each time."""
    return campaign.engine == "virtual"
