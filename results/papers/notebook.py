"""The part of a notebook about a paper: its figures with their claims, and where our experiments differ."""

from __future__ import annotations

from collections.abc import Iterator

import pandas as pd

from fecbench.results import papers
from fecbench.results.figures.nothing import NothingToDraw
from fecbench.results.papers.claim import PaperFigure, size_and_ours
from fecbench.results.reading import Campaign, Results


def show(database: Results, number: str) -> None:
    """Display a figure of a paper ("Fig. 5") from each campaign that reproduces it, and the paper's claims
    beside what was measured. Says what is missing."""
    reproduced = [
        (campaign, figure)
        for campaign in _campaigns(database)
        for figure in papers.figures_of(campaign.info)
        if figure.number.endswith(number)
    ]
    if not reproduced:
        print(f"{number}: this database has no campaign for it.")
    for campaign, figure in reproduced:
        _show_figure(campaign, figure)


def _show_figure(campaign: Campaign, figure: PaperFigure) -> None:
    trials = campaign.trials()
    _display_markdown(
        f"**{figure.number}, campaign `{campaign.info.name}`, {campaign.info.engine}.** {figure.caption}"
    )
    try:
        _display(figure.draw(trials, campaign.info))
    except NothingToDraw as nothing:
        print(nothing)
        return
    claims = [
        (claim.text, claim.paper, size_and_ours(claim.size, claim.ours), claim.measured, claim.verdict)
        for claim in figure.claims(trials, campaign.info)
    ]
    table = pd.DataFrame(claims, columns=["claim", "paper", "paper's size, ours", "measured", "verdict"])
    _display(table.style.hide(axis="index"))


def show_differences(database: Results) -> None:
    """Display, for each campaign, where it differs from the experiment of its paper."""
    for campaign in _campaigns(database):
        trials = campaign.trials()
        sentences = [
            sentence
            for figure in papers.figures_of(campaign.info)
            for sentence in figure.differences(trials, campaign.info)
        ]
        items = (f"- {sentence}" for sentence in dict.fromkeys(sentences))
        _display_markdown("\n".join([f"Campaign `{campaign.info.name}`, {campaign.info.engine}:\n", *items]))


def _campaigns(database: Results) -> Iterator[Campaign]:
    """Return the campaigns that reproduce something: a sample that only checks another one does not."""
    campaigns = (database[name] for name in database.campaigns()["campaign"])
    return (campaign for campaign in campaigns if campaign.info.checked is None)


def _display_markdown(text: str) -> None:
    # Imported here: notebooks have it, and others need none.
    from IPython.display import Markdown

    _display(Markdown(text))  # type: ignore[no-untyped-call]


def _display(content: object) -> None:
    from IPython.display import display

    display(content)  # type: ignore[no-untyped-call]
