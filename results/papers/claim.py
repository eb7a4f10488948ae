"""A figure that a paper prints, drawn from our own trials, and what it claims beside what was measured.

A module for each paper makes them; `results.papers` says which belong to a campaign. A claim is judged by the
interval that is shown with what was measured: it agrees where the whole interval lies in what is claimed,
differs where none of it does, and otherwise the trials cannot tell. A claim of "about", "none" or "no
difference" has a tolerance, which stands beside it. A claim that one thing exceeds another is judged by the
interval of their difference. A claim about several things (`all_hold`, `one_holds`) is as sure as one about a
single thing, however many they are.

"Shorter", "longer", "better", "more" count by more than the margin that the engine vouches for
(`tolerances.vouched_by`), and the papers' words of size by no less than what `words` takes them for. A claim
that does not agree by that size, but would by any difference, however small, agrees in direction alone
(`Claim.verdict`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, Self, TypeVar

import numpy as np
import pandas as pd

from fecbench.results.analysis.intervals import FEWEST, LEVEL
from fecbench.results.analysis.quantiles import share_interval, t_quantile
from fecbench.results.figures.nothing import NothingToDraw
from fecbench.results.metrics.units import number
from fecbench.results.store.records import CampaignInfo

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NOT_MEASURED = "not measured"

_DCT, _STALLED = "client.dct_s", "stalled_s"
# Ours: a fifth of 5 %, the tolerance of "no difference", for which share of its time a valid trial may stall.
_MOST_STALLS = 0.01

Verdict = Literal["agrees", "agrees in direction", "differs", "cannot tell"]

_Sentence = TypeVar("_Sentence")


@dataclass(frozen=True)
class Claim:
    """One claim of a paper, and what was measured of the same thing."""

    text: str
    """The subject of the claim ("completion rate over Wi-Fi from 2 % loss on")."""
    paper: str
    """The paper's value or range, with its section or figure ("below 0.5 (§VI-B)")."""
    measured: str
    """Our value, with its interval where there is one; says why when there is none."""
    holds: bool | None
    """Whether the measured agrees with the paper, in size, too; None when the trials cannot tell."""
    in_direction: bool | None = False
    """Whether it would by any difference, however small; None when the trials cannot tell. It is False where
    a claim is of no direction."""
    size: str = ""
    """The size that the paper's words or numbers are taken for ("above 50 %, by more than 1 %")."""
    ours: str = ""
    """Our value of the same, without its interval."""

    @property
    def verdict(self) -> Verdict:
        """Agrees in direction where that is sure and the size is not, be it refuted or open. Differs where
        the size is refuted, and the direction is, too, or open."""
        if self.in_direction and not self.holds:
            return "agrees in direction"
        verdicts: dict[bool | None, Verdict] = {True: "agrees", False: "differs", None: "cannot tell"}
        return verdicts[self.holds]

    @property
    def is_open(self) -> bool:
        """Whether more trials could tell more: of its size, or of its direction where the size is refuted."""
        return self.holds is None or (not self.holds and self.in_direction is None)


def size_and_ours(size: str, ours: str) -> str:
    """The column of a table that has both."""
    return f"{size}; ours {ours}" if size else "–"


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
    def of_mean(cls, values: pd.Series, level: float = LEVEL, least: float = 0.0) -> Self:
        """The mean of values that are at least `least`, and Student's interval of confidence 1 - `level`;
        none of fewer than FEWEST values, and none where one is ∞: so is the mean then. NaN is no value.

        The interval takes the mean of so many values for normal: it knows nothing of a great value that is
        too rare to be among them.
        """
        measured = values.to_numpy(np.float64)
        measured = measured[~np.isnan(measured)]
        if len(measured) < FEWEST or np.isinf(measured).any():
            return cls(float(measured.mean()) if len(measured) else math.nan)
        half = t_quantile(1 - level / 2, len(measured) - 1) * measured.std(ddof=1) / math.sqrt(len(measured))
        mean = float(measured.mean())
        return cls(mean, max(least, mean - half), mean + half)

    def below(self, bound: float) -> bool | None:
        return True if self.high < bound else False if self.low >= bound else None

    def above(self, bound: float) -> bool | None:
        return True if self.low > bound else False if self.high <= bound else None

    def within(self, least: float, most: float) -> bool | None:
        if least <= self.low and self.high <= most:
            return True
        return False if self.high < least or self.low > most else None

    def minus(self, other: Estimate) -> Estimate:
        """Return how far it is above the other, of which the trials are others: they share no seeds, as
        those of different points do.

        The interval has the confidence of theirs. It is made of the four distances from values to ends, as
        the spread of a difference is of two spreads, since both are rarely wrong at once (Zou and Donner,
        "Construction of confidence limits about effect measures", Statistics in Medicine 27, 2008). A gap
        between the two intervals would be too much to ask: with two of 95 %, equal values have one in 0.6 %
        of cases.
        """
        difference = self.value - other.value
        low = difference - math.hypot(self.value - self.low, other.high - other.value)
        high = difference + math.hypot(self.high - self.value, other.value - other.low)
        return Estimate(difference, low, high)

    def scaled(self, factor: float) -> Estimate:
        return Estimate(factor * self.value, factor * self.low, factor * self.high)

    def exceeds(self, other: Estimate, by: float = 0.0) -> bool | None:
        """Whether it is more than 1 + `by` times the other."""
        return self.minus(other.scaled(1 + by)).above(0)

    def shorter(self, by: float = 0.0) -> bool | None:
        """Whether a ratio of times is below 1 by more than this: below 1 / (1 + `by`)."""
        return self.below(1 / (1 + by))

    def longer(self, by: float = 0.0) -> bool | None:
        """Whether a ratio of times is above 1 + `by`."""
        return self.above(1 + by)

    def near_or_below(self, other: Estimate, by: float) -> bool | None:
        """Whether it is at most `by` above the other."""
        difference = self.minus(other)
        return True if difference.high <= by else False if difference.low > by else None

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
    """The share of units (points, loss patterns) of which something is true."""

    count: int
    units: int
    unknown: int = 0
    """Units beyond these that were run, and have no verdict: neither arm got through, or one of them cannot
    be vouched for."""

    @classmethod
    def of(cls, true: pd.Series, is_known: pd.Series) -> Self:
        """Return the share of one value a unit: whether it is true of the unit, where that is known."""
        return cls(int((true & is_known).sum()), int(is_known.sum()), int((~is_known).sum()))

    @property
    def estimate(self) -> Estimate:
        return self.at(LEVEL)

    def at(self, level: float) -> Estimate:
        """Return the share with the exact binomial interval of confidence 1 - `level`, wide enough for
        whatever is true of the unknown units.

        It takes the units for independent draws. Points of a space-filling design are spread more evenly, so
        for them it is rather too wide.

        No interval for fewer than FEWEST known units.
        """
        if self.units < FEWEST:
            return Estimate(self.count / self.units if self.units else math.nan)
        all_units = self.units + self.unknown
        low, _ = share_interval(self.count, all_units, level)
        _, high = share_interval(self.count + self.unknown, all_units, level)
        return Estimate(self.count / self.units, low, high)

    def __str__(self) -> str:
        unknown = f", {self.unknown} unknown" if self.unknown else ""
        if not self.units:
            return f"{NOT_MEASURED}{unknown}"
        share = self.estimate
        return f"{shown(share.value, '.0%')} of {self.units}{unknown} ({share.interval('.0%')})"


Judgements = Callable[[float], Iterable[bool | None]]
"""Judgements of several things, one each, by intervals of a confidence of 1 - the given level."""


def all_hold(judged: Judgements) -> bool | None:
    """Whether a claim about several things holds of all of them; None where the trials cannot tell, or where
    there is none.

    True where each holds by its own interval of confidence 1 - LEVEL. For the claim to hold by mistake, that
    one has to mislead of which it is not true (Berger, "Multiparameter hypothesis testing and acceptance
    sampling", Technometrics 24, 1982). For it to fail by mistake, any one may: so of m things, one fails only
    by an interval of confidence 1 - LEVEL / m (Bonferroni; Holm's procedure asks the same of the first one).
    """
    of_all = list(judged(LEVEL))
    if of_all and all(of_all):
        return True
    return False if False in of_all and False in judged(LEVEL / len(of_all)) else None


def one_holds(judged: Judgements) -> bool | None:
    """Whether a claim holds of one thing at least: none of them may fail to hold of each."""
    no_one_holds = all_hold(
        lambda level: [None if judgement is None else not judgement for judgement in judged(level)]
    )
    return None if no_one_holds is None else not no_one_holds


def beside_stalls(claim: Claim, frame: pd.DataFrame, baseline: str, variant: str) -> Claim:
    """Return a claim whose tolerance is no more than what a valid trial may have lost to a busy machine,
    with the share of their time for which the endpoints of each arm were kept from running.

    A loss of time that both share is in no ratio. Where the shares (medians of the ok trials of `frame`)
    differ by more than _MOST_STALLS, the machine may have made the difference, or hidden it, and the trials
    cannot tell.
    """
    if not {_STALLED, _DCT} <= set(frame.columns):
        return claim
    ok = frame[frame["state"] == "ok"]
    share = ok[_STALLED] / ok[_DCT]
    of_arms = [float(share[ok["variant"] == arm].median()) for arm in (baseline, variant)]
    if any(map(math.isnan, of_arms)):
        return claim
    of_baseline, of_variant = (shown(share, ".1%") for share in of_arms)
    stalls = f"; stalled for {of_variant} of the time, the baseline for {of_baseline}"
    alike = abs(of_arms[1] - of_arms[0]) <= _MOST_STALLS
    return replace(claim, measured=claim.measured + stalls, holds=claim.holds if alike else None)


@dataclass(frozen=True)
class PaperFigure:
    """A figure of a paper."""

    name: str
    """The name of its files, without a suffix ("rquic2021-fig5")."""
    number: str
    """The paper's number, with the paper's short name ("rQUIC 2021, Fig. 5")."""
    caption: str
    """The subject of the drawing, and how to read it."""
    draw: Callable[[pd.DataFrame, CampaignInfo], Figure]
    """The drawing of `frames.trials` and its campaign; raises NothingToDraw."""
    claims: Callable[[pd.DataFrame, CampaignInfo], list[Claim]]
    """The claims about the same, also those that the trials cannot judge; none where there is nothing to
    draw."""
    differences: Callable[[pd.DataFrame, CampaignInfo], list[str]]
    """Sentences about the same: where our experiment departs from the paper's, with numbers as far as the
    trials show what that did. None, either, where there is nothing to draw."""

    def __post_init__(self) -> None:
        for name in ("claims", "differences"):
            object.__setattr__(self, name, _none_without_a_figure(getattr(self, name)))


def _none_without_a_figure(write: Callable[..., list[_Sentence]]) -> Callable[..., list[_Sentence]]:
    """`write`, but nothing where the figure cannot be drawn: in its place stands what the campaign lacks."""

    def write_or_nothing(frame: pd.DataFrame, campaign: CampaignInfo) -> list[_Sentence]:
        try:
            return write(frame, campaign)
        except NothingToDraw:
            return []

    return write_or_nothing
