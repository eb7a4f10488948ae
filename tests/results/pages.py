"""The text of a report's page, without the files and the figures, which take most of the time to make."""

import html
import re

from fecbench.results.figures.saving import Drawing
from fecbench.results.report.collecting import collect
from fecbench.results.report.drawings import Drawings
from fecbench.results.report.page import page
from fecbench.results.store.database import Database
from fecbench.results.store.records import CampaignInfo


def page_of(
    database: Database, campaign: CampaignInfo, metric: str = "", first_attempts: bool = False
) -> str:
    """The source, in which a sentence stands in the place of each figure."""
    document = collect(database, campaign, metric, first_attempts)
    absent = Drawing(sentence="It is not drawn.")
    explained, reproduced = [[absent]] * len(document.explained), [absent] * len(document.reproduced)
    return page(document, Drawings(absent, [], [], explained, reproduced))


def text_of(source: str) -> str:
    """The words of a page, with one space between any two."""
    source = re.sub("<(style|script).*?</(style|script)>", "", source, flags=re.DOTALL)
    return " ".join(html.unescape(re.sub("<[^>]+>", " ", source)).split())
