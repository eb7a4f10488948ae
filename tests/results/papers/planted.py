"""Campaigns of a paper's designs, and what is claimed of them."""

import tomllib
from typing import Any

import pandas as pd

from fecbench import designs
from fecbench.results.papers import figures_of
from fecbench.results.papers.claim import Claim
from fecbench.results.store.records import CampaignInfo

Planted = tuple[pd.DataFrame, CampaignInfo]


def design_of(name: str) -> dict[str, Any]:
    """The tables of a design of the catalogue."""
    return tomllib.loads(designs.load(designs.catalogue()[name]).text)


def judged(frame: pd.DataFrame, campaign: CampaignInfo) -> list[Claim]:
    """The claims of all figures of the campaign."""
    return [claim for figure in figures_of(campaign) for claim in figure.claims(frame, campaign)]


def named(claims: list[Claim], *, but: bool) -> list[tuple[str, str]]:
    """Return the claims with another result than `but`."""
    return [(claim.text, claim.measured) for claim in claims if claim.holds is not but]


def assert_drawn(frame: pd.DataFrame, campaign: CampaignInfo) -> None:
    """Assert that each figure of the campaign can be drawn and has sentences beside it."""
    for figure in figures_of(campaign):
        assert figure.draw(frame, campaign).axes
        assert figure.differences(frame, campaign)


def assert_all_hold(planted: Planted, name: str) -> None:
    """Assert that the campaign can be drawn, and that all of its claims, of which there are some, hold."""
    assert_drawn(*planted)
    claims = judged(*planted)
    assert claims, name
    assert named(claims, but=True) == [], name


def assert_none_holds(planted: Planted, name: str) -> None:
    assert named(judged(*planted), but=False) == [], name
