"""A figure that a paper prints, drawn from our own trials, and what it claims beside what was measured.

A module for each paper makes them; `results.papers` says which belong to a campaign.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pandas as pd
from matplotlib.figure import Figure

from results.database import CampaignInfo


@dataclass(frozen=True)
class Claim:
    """One claim of a paper, and what was measured of the same thing.

    text: what is claimed of what ("completion rate over Wi-Fi from 2 % loss on").
    paper: the paper's value or range, with its section or figure ("below 0.5 (§VI-B)").
    measured: our value, with its interval where there is one; says why when there is none.
    holds: whether the measured agrees with the paper; None when the trials cannot tell.
    """

    text: str
    paper: str
    measured: str
    holds: bool | None


@dataclass(frozen=True)
class PaperFigure:
    """A figure of a paper.

    name: of its files, without a suffix ("rquic2021-fig5").
    number: as the paper numbers it, with the paper's short name ("rQUIC 2021, Fig. 5").
    caption: what is drawn, and how to read it.
    draw: of `frames.trials` and its campaign; raises NothingToDraw.
    claims: of the same, also those that the trials cannot judge; none where there is nothing to draw.
    differences: of the same, sentences: where our experiment departs from the paper's, and what that did to
    the numbers as far as they show it.
    """

    name: str
    number: str
    caption: str
    draw: Callable[[pd.DataFrame, CampaignInfo], Figure]
    claims: Callable[[pd.DataFrame, CampaignInfo], list[Claim]]
    differences: Callable[[pd.DataFrame, CampaignInfo], list[str]]
