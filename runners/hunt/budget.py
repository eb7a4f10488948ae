"""Division of the trials of a hunt among its parts.

Most go into looking once at many networks: what lies in one in ten thousand is found by nothing else.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from fecbench.quantities import counted
from fecbench.runners.refusal import Refusal

ARMS = 2
START_REPETITIONS = 6
"""The fewest that an interval is of (`intervals.FEWEST`)."""
START, SCAN, CONFIRM = 0.1, 0.4, 0.1
"""Share of all pairs."""
EMULATED_TRIALS = 240
"""Emulated trials of a hunt for networks in which engines disagree, by default: some minutes."""


@dataclass(frozen=True)
class Round:
    """A round of the search."""

    repetitions: int
    share: float
    """Share of all pairs."""
    new: float
    """Share of its networks that are neighbours of the most promising ones."""


ROUNDS = (Round(2, 0.1, 0.2), Round(4, 0.08, 0.35), Round(8, 0.08, 0.5))
"""The other pairs shrink the confirmed networks, confirm them again and look around them."""


@dataclass(frozen=True)
class Budget:
    """A number of pairs of trials, and of repetitions of each confirmation."""

    pairs: int
    repetitions: int

    @property
    def trials(self) -> int:
        return ARMS * self.pairs

    @property
    def start_networks(self) -> int:
        return int(START * self.pairs) // START_REPETITIONS

    @property
    def scan_networks(self) -> int:
        return int(SCAN * self.pairs)

    def round_networks(self, of: Round) -> int:
        """Return the number of networks of a round of the search."""
        return int(of.share * self.pairs) // of.repetitions

    @property
    def confirmed_networks(self) -> int:
        return max(1, int(CONFIRM * self.pairs) // self.repetitions)


def fewest_trials(repetitions: int) -> int:
    """Return the least budget of a hunt that can confirm one network."""
    return math.ceil(ARMS * repetitions / CONFIRM)


def budget(trials: int, repetitions: int) -> Budget:
    """Raises Refusal for too few trials to confirm anything."""
    if trials < (fewest := fewest_trials(repetitions)):
        raise Refusal(
            f"--trials {trials}: is too few to confirm one network, which takes"
            f" {counted(repetitions, 'repetition')} of"
            f" both variants in a tenth of the trials: must be {fewest} or more"
        )
    return Budget(trials // ARMS, repetitions)
