"""The figures of each paper that a campaign reproduces.

A design of the catalogue is recognised by the name in its text, whatever its campaign is called:
`rquic2021-bulk`, and all names that go on with a hyphen, as `rquic2021-bulk-short` does.
"""

from __future__ import annotations

from fecbench.results.papers import moskvitin, networking2019, rquic2021, starlink2022, thesis2018
from fecbench.results.papers.claims import PaperFigure
from fecbench.results.store.records import CampaignInfo

# The figures by the beginning of their designs' names. Each paper's package has its part of this table.
FIGURES: dict[str, list[PaperFigure]] = {
    **networking2019.FIGURES,
    **rquic2021.FIGURES,
    **moskvitin.FIGURES,
    **starlink2022.FIGURES,
    **thesis2018.FIGURES,
}


def figures_of(campaign: CampaignInfo) -> list[PaperFigure]:
    """The figures that a report of this campaign adds to its own, in the paper's order; often none.

    A campaign that runs a variant against itself has the design's name, and nothing of a paper's.
    """
    if campaign.kind == "against-itself":
        return []
    name = f"{campaign.design_name}-"
    return [
        figure for design, figures in FIGURES.items() if name.startswith(f"{design}-") for figure in figures
    ]
