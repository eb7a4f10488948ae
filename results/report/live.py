"""The page of a campaign as a server gives it: made anew when there are new trials, its figures when they
are looked at."""

from __future__ import annotations

import io
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

from fecbench.results.figures.nothing import NothingToDraw
from fecbench.results.figures.saving import SUFFIXES, Drawing, write
from fecbench.results.report.collecting import document_of
from fecbench.results.report.drawings import draw
from fecbench.results.report.evidence import gather
from fecbench.results.report.exploring import explorer
from fecbench.results.report.page import TEMPLATES, Live, page
from fecbench.results.store.database import Database
from fecbench.results.store.records import CampaignInfo, State

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TABLES = ("summary", "ratios", "points", "trials", "metrics")
_REST = 4.0  # a page is version anew after so many times as long as it took, at the soonest


@dataclass
class _Figures:
    """The figures of a page, none of which is drawn yet (`drawings.Drawer`)."""

    address: str
    figures: dict[str, Callable[[], Figure]] = field(default_factory=dict)

    def draw(self, name: str, caption: str, draw: Callable[[], Figure]) -> Drawing:
        while name in self.figures:
            name += "-2"
        self.figures[name] = draw
        files = tuple(Path(f"{name}{suffix}") for suffix in SUFFIXES)
        return Drawing(caption, files=files, url=f"{self.address}/{quote(files[0].name, safe='')}")


@dataclass(frozen=True)
class _Version:
    """A page that was version."""

    ids: tuple[int, int, int]
    html: str
    trials: int
    figures: _Figures
    saved: dict[str, tuple[str, bytes]]
    """Figures that were drawn, by the names of their files: kind of content, and content."""
    free_at: float
    """Moment from which it may be version anew."""


class LivePages:
    """The pages of a database's campaigns. One thread at a time may use it."""

    def __init__(self, database: Database, clock: Callable[[], float] = time.monotonic) -> None:
        self._database = database
        self._clock = clock
        self._versions: dict[str, _Version] = {}

    def html(self, campaign: CampaignInfo) -> str:
        """Return the page of a campaign. Raises DatabaseError when it cannot be read."""
        return self._page(campaign).html

    def count(self, campaign: CampaignInfo) -> int:
        """Return how many valid trials `html` has now."""
        return self._page(campaign).trials

    def figure(self, campaign: CampaignInfo, name: str) -> tuple[str, bytes] | None:
        """Return the kind of content and the content of a figure, by the name of its file; None: there is
        none of that name."""
        version = self._versions.get(campaign.name) or self._page(campaign)
        stem, dot, suffix = name.rpartition(".")
        draw = version.figures.figures.get(stem)
        if draw is None or f"{dot}{suffix}" not in SUFFIXES:
            return None
        if name not in version.saved:
            version.saved[name] = _picture(draw, f"{dot}{suffix}")
        return version.saved[name]

    def _page(self, campaign: CampaignInfo) -> _Version:
        version, ids = self._versions.get(campaign.name), self._database.last_ids()
        if version is None or (version.ids != ids and self._is_due(campaign, version)):
            version = self._versions[campaign.name] = self._make(campaign, ids)
        return version

    def _is_due(self, campaign: CampaignInfo, version: _Version) -> bool:
        """Whether a page with new trials may be made: of a campaign that has ended, at once."""
        return (
            self._clock() >= version.free_at
            or sum(self._database.states_of(campaign.id).values()) >= campaign.planned_trials
        )

    def _make(self, campaign: CampaignInfo, ids: tuple[int, int, int]) -> _Version:
        start_s = self._clock()
        figures = _Figures(f"/campaign/{quote(campaign.name, safe='')}/figure")
        evidence = gather(self._database, campaign)
        drawings = draw(figures, evidence)
        counts = evidence.run["state"].value_counts()
        states = {str(state): int(count) for state, count in counts.items() if count}
        trials = sum(states.values()) - states.get("invalid", 0)
        live = Live(TABLES, trials, states, campaign.planned_trials)
        html = page(document_of(evidence), drawings, explorer(evidence), live)
        return _Version(ids, html, trials, figures, {}, self._clock() + _REST * (self._clock() - start_s))


def campaigns_page(address: str, campaigns: Sequence[tuple[CampaignInfo, Mapping[State, int]]]) -> str:
    """Return a page that lists campaigns, each with the states of its trials."""
    return TEMPLATES.get_template("campaigns.html").render(
        address=address,
        campaigns=[(info, sum(states.values()), sorted(states.items())) for info, states in campaigns],
        tables=TABLES,
    )


def beside_page(names: Sequence[str]) -> str:
    """Return a page that has the pages of these campaigns beside each other."""
    return TEMPLATES.get_template("beside.html").render(names=names)


def _picture(draw: Callable[[], Figure], suffix: str) -> tuple[str, bytes]:
    try:
        figure = draw()
    except NothingToDraw as nothing:
        from xml.sax.saxutils import escape

        text = f'<text x="8" y="24" font-family="sans-serif" font-size="14">{escape(str(nothing))}</text>'
        svg = f'<svg xmlns="http://www.w3.org/2000/svg" width="900" height="40">{text}</svg>'
        return "image/svg+xml", svg.encode()
    kinds = {".png": "image/png", ".svg": "image/svg+xml", ".pdf": "application/pdf"}
    content = io.BytesIO()
    write(figure, content, suffix)
    return kinds[suffix], content.getvalue()
