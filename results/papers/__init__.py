"""The figures of each paper that a campaign reproduces.

A design of the catalogue is recognised by the name in its text, whatever its campaign is called:
`rquic2021-bulk`, and all names that go on with a hyphen, as `rquic2021-bulk-short` does.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fecbench.results.papers.claim import PaperFigure
    from fecbench.results.store.records import CampaignInfo

PAPERS = ("moskvitin", "networking2019", "rquic2021", "starlink2022", "thesis2018")
"""The packages of the papers: the names of a paper's designs begin with that of its package.

A package is loaded for a campaign of its paper alone: what draws figures takes longer to load than the page
of another campaign takes to write. Its FIGURES are lists of figures by the beginning of their designs' names.
"""


def figures_of(campaign: CampaignInfo) -> list[PaperFigure]:
    """The figures that a report of this campaign adds to its own, in the paper's order; often none.

    A campaign that runs a variant against itself has the design's name, and nothing of a paper's.
    """
    if campaign.kind == "against-itself":
        return []
    name = f"{campaign.design_name}-"
    return [
        figure
        for paper in PAPERS
        if name.startswith(paper)
        for design, figures in import_module(f"{__name__}.{paper}").FIGURES.items()
        if name.startswith(f"{design}-")
        for figure in figures
    ]
