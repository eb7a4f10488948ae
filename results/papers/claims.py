"""A figure that a paper prints, drawn from our own trials, and what it claims beside what was measured.

A module for each paper makes them; `results.papers` says which belong to a campaign. A claim is judged by the
interval that is shown with what was measured: it agrees where the whole interval lies in what is claimed,
differs where none of it does, and otherwise the trials cannot tell. A claim of "about", "none" or "no
difference" has a tolerance, which stands beside it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Self, TypeVar

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from scipy import stats

from results.analysis.intervals import FEWEST, LEVEL
from results.analysis.units import number
from results.figures.nothing import NothingToDraw
from results.store.records import CampaignInfo

NOT_MEASURED = "not measured"

_Sentence = TypeVar("_Sentence")


@dataclass(frozen=True)
class Claim:
    """One claim of a paper, and what was measured of the same thing."""

    text: str
    """What is claimed of what ("completion rate over Wi-Fi from 2 % loss on")."""
    paper: str
    """The paper's value or range, with its section or figure ("below 0.5 (§VI-B)")."""
    measured: str
    """Our value, with its interval where there is one; says why when there is none."""
    holds: bool | None
    """Whether the measured agrees with the paper; None when the trials cannot tell."""

    @property
    def verdict(self) -> str:
        return {True: "agrees", False: "differs", None: "cannot tell"}[self.holds]


@dataclass(frozen=True)
class Estimate:
    """A measured value and its interval; NaN for what there is none of.

    Each question about it is answered by the whole interval: True, False, or None where a part of the
    interval says so and another part doesn't, or where there is none.
    """

    value: float = math.nan
    low: float = math.nan
    high: float = math.nan

    @classmethod
    def of_mean(cls, values: pd.Series) -> Self:
        """The mean of values that are not negative, and Student's interval; none of fewer than FEWEST values,
        and none where one is ∞: so is the mean then.

        The interval takes the mean of so many values for normal: it knows nothing of a great value that is
        too rare to be among them.
        """
        if len(values) < FEWEST or np.isinf(values).any():
            return cls(float(values.mean()))
        half = stats.t.ppf(1 - LEVEL / 2, len(values) - 1) * values.std() / math.sqrt(len(values))
        mean = float(values.mean())
        return cls(mean, max(0, mean - half), mean + half)

    def below(self, bound: float) -> bool | None:
        return True if self.high < bound else False if self.low >= bound else None

    def above(self, bound: float) -> bool | None:
        return True if self.low > bound else False if self.high <= bound else None

    def within(self, least: float, most: float) -> bool | None:
        if least <= self.low and self.high <= most:
            return True
        return False if self.high < least or self.low > most else None

    def exceeds(self, other: Estimate) -> bool | None:
        return True if self.low > other.high else False if self.high <= other.low else None

    def near_or_below(self, other: Estimate, by: float) -> bool | None:
        """Whether it is at most `by` above the other."""
        return True if self.high <= other.low + by else False if self.low > other.high + by else None

    def __format__(self, form: str) -> str:
        if math.isnan(self.value):
            return NOT_MEASURED
        return f"{shown(self.value, form)} ({self.interval(form)})"

    def interval(self, form: str) -> str:
        """The interval in words, its ends in this format."""
        if math.isnan(self.low):
            return "no interval"
        return f"{shown(self.low, form)} to {shown(self.high, form)}"


def shown(value: float, form: str) -> str:
    """A number in this format, with a space before its percent sign."""
    return number(value, form).replace("%", " %")


@dataclass(frozen=True)
class Share:
    """Of how many units (points, loss patterns) something is true."""

    count: int
    units: int
    unknown: int = 0
    """Units beyond these that were run, but nobody can tell: both arms timed out, or one failed."""

    @classmethod
    def of(cls, true: pd.Series, known: pd.Series) -> Self:
        """Of one value a unit: whether it is true of the unit, where that is known."""
        return cls(int((true & known).sum()), int(known.sum()), int((~known).sum()))

    @property
    def estimate(self) -> Estimate:
        """With the exact binomial interval, wide enough for whatever is true of the unknown units.

        It takes the units for independent draws. Points of a space-filling design are spread more evenly, so
        of them it is rather too wide.

        None for fewer than FEWEST known units.
        """
        if self.units < FEWEST:
            return Estimate(self.count / self.units if self.units else math.nan)
        all_units = self.units + self.unknown
        least, most = (
            stats.binomtest(count, all_units).proportion_ci(1 - LEVEL)
            for count in (self.count, self.count + self.unknown)
        )
        return Estimate(self.count / self.units, float(least.low), float(most.high))

    def __str__(self) -> str:
        unknown = f", {self.unknown} unknown" if self.unknown else ""
        if not self.units:
            return f"{NOT_MEASURED}{unknown}"
        share = self.estimate
        return f"{shown(share.value, '.0%')} of {self.units}{unknown} ({share.interval('.0%')})"


def all_hold(judgements: Iterable[bool | None]) -> bool | None:
    """Whether a claim about several things holds of all of them: False where one fails, None where one is
    open, or where there is none."""
    of_all = set(judgements)
    return False if False in of_all else None if None in of_all or not of_all else True


def one_holds(judgements: Iterable[bool | None]) -> bool | None:
    """Whether a claim holds of one thing at least: True where one holds, None where one is open, or where
    there is none."""
    of_all = set(judgements)
    return True if True in of_all else None if None in of_all or not of_all else False


@dataclass(frozen=True)
class PaperFigure:
    """A figure of a paper."""

    name: str
    """Of its files, without a suffix ("rquic2021-fig5")."""
    number: str
    """As the paper numbers it, with the paper's short name ("rQUIC 2021, Fig. 5")."""
    caption: str
    """What is drawn, and how to read it."""
    draw: Callable[[pd.DataFrame, CampaignInfo], Figure]
    """Of `frames.trials` and its campaign; raises NothingToDraw."""
    claims: Callable[[pd.DataFrame, CampaignInfo], list[Claim]]
    """Of the same, also those that the trials cannot judge; none where there is nothing to draw."""
    differences: Callable[[pd.DataFrame, CampaignInfo], list[str]]
    """Of the same, sentences: where our experiment departs from the paper's, with numbers as far as the
    trials show what that did."""


def none_without_a_figure(write: Callable[..., list[_Sentence]]) -> Callable[..., list[_Sentence]]:
    """`write`, but nothing where the figure cannot be drawn: in its place stands what the campaign lacks."""

    def write_or_nothing(frame: pd.DataFrame, campaign: CampaignInfo) -> list[_Sentence]:
        try:
            return write(frame, campaign)
        except NothingToDraw:
            return []

    return write_or_nothing
