"""The page of a campaign as a server gives it: made anew when there is something new, its figures when they
are looked at.

A figure has the trials of the page that shows it, also where a newer page has been made meanwhile.
"""

from __future__ import annotations

import io
import itertools
import time
import uuid
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
VERSION = "page"
"""Name in the query of a figure's address: the version of the page that shows it."""
_REST = 4.0  # a page is made anew after so many times as long as it took, at the soonest
_MOST_VERSIONS, _MOST_TRIALS = 20, 50_000
"""Versions of a page whose figures can be drawn: so many, and of so many trials together. 50,000 trials take
some 140 MB."""
_STALE = "The campaign has gone on since this page was made: load the page anew."


@dataclass
class _Figures:
    """The figures of a page, none of which is drawn yet (`drawings.Drawer`)."""

    address: str
    version: str
    figures: dict[str, Callable[[], Figure]] = field(default_factory=dict)

    def draw(self, name: str, caption: str, draw: Callable[[], Figure]) -> Drawing:
        while name in self.figures:
            name += "-2"
        self.figures[name] = draw
        files = tuple(Path(f"{name}{suffix}") for suffix in SUFFIXES)
        url = f"{self.address}/{quote(files[0].name, safe='')}?{VERSION}={self.version}"
        return Drawing(caption, files=files, url=url)


@dataclass(frozen=True)
class _Version:
    """A page that was made."""

    campaign: CampaignInfo
    ids: tuple[int, int, int]
    html: str
    trials: int
    figures: _Figures
    saved: dict[str, tuple[str, bytes]]
    """Figures that were drawn, by the names of their files: kind of content, and content."""
    free_at: float
    """Moment from which it may be made anew."""


class LivePages:
    """The pages of a database's campaigns. One thread at a time may use it."""

    def __init__(self, database: Database, clock: Callable[[], float] = time.monotonic) -> None:
        self._database = database
        self._clock = clock
        self._versions: dict[str, list[_Version]] = {}
        """Versions of each campaign's page, the newest first."""

    def html(self, campaign: CampaignInfo) -> str:
        """Return the page of a campaign. Raises DatabaseError when it cannot be read."""
        return self._page(campaign).html

    def version(self, campaign: CampaignInfo) -> tuple[str, int]:
        """Return the version of what `html` returns now, and how many valid trials it has."""
        page = self._page(campaign)
        return page.figures.version, page.trials

    def figure(self, campaign: CampaignInfo, name: str, number: str = "") -> tuple[str, bytes] | None:
        """Return the kind of content and the content of a figure, by the name of its file; None: there is
        none of that name. `number`: the version of the page that shows it, by default the newest."""
        versions = self._versions.get(campaign.name) or [self._page(campaign)]
        version = next((one for one in versions if number in ("", one.figures.version)), None)
        if version is None:
            return _sentence(_STALE)
        stem, dot, suffix = name.rpartition(".")
        draw = version.figures.figures.get(stem)
        if draw is None or f"{dot}{suffix}" not in SUFFIXES:
            return None
        if name not in version.saved:
            version.saved[name] = _picture(draw, f"{dot}{suffix}")
        return version.saved[name]

    def _page(self, campaign: CampaignInfo) -> _Version:
        versions, ids = self._versions.setdefault(campaign.name, []), self._database.last_ids()
        is_new = not versions or (versions[0].campaign, versions[0].ids) != (campaign, ids)
        if is_new and (not versions or self._is_due(campaign, versions[0])):
            versions.insert(0, self._make(campaign, ids))
            del versions[_count_drawable(versions) :]
        return versions[0]

    def _is_due(self, campaign: CampaignInfo, version: _Version) -> bool:
        """Whether a new page may be made. The last one of a campaign that has ended is made at once."""
        if self._clock() >= version.free_at:
            return True
        states = self._database.states_of(campaign.id)
        run, valid = sum(states.values()), sum(states.values()) - states.get("invalid", 0)
        was = (version.campaign, version.trials)
        return run >= campaign.planned_trials and was != (campaign, valid)

    def _make(self, campaign: CampaignInfo, ids: tuple[int, int, int]) -> _Version:
        start_s = self._clock()
        figures = _Figures(f"/campaign/{quote(campaign.name, safe='')}/figure", uuid.uuid4().hex)
        evidence = gather(self._database, campaign)
        drawings = draw(figures, evidence)
        counts = evidence.run["state"].value_counts()
        states = {str(state): int(count) for state, count in counts.items() if count}
        trials = sum(states.values()) - states.get("invalid", 0)
        live = Live(TABLES, trials, states, campaign.planned_trials, figures.version)
        html = page(document_of(evidence), drawings, explorer(evidence), live)
        took_s = self._clock() - start_s
        return _Version(campaign, ids, html, trials, figures, {}, self._clock() + _REST * took_s)


def _count_drawable(versions: Sequence[_Version]) -> int:
    """Return how many of the versions, the newest first, have few enough trials; the newest always."""
    trials = itertools.accumulate(version.trials for version in versions)
    return max(1, sum(total <= _MOST_TRIALS for total in itertools.islice(trials, _MOST_VERSIONS)))


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
        return _sentence(str(nothing))
    kinds = {".png": "image/png", ".svg": "image/svg+xml", ".pdf": "application/pdf"}
    content = io.BytesIO()
    write(figure, content, suffix)
    return kinds[suffix], content.getvalue()


def _sentence(sentence: str) -> tuple[str, bytes]:
    """Return a picture of a sentence, in the place of a figure."""
    from xml.sax.saxutils import escape

    text = f'<text x="8" y="24" font-family="sans-serif" font-size="14">{escape(sentence)}</text>'
    svg = f'<svg xmlns="http://www.w3.org/2000/svg" width="900" height="40">{text}</svg>'
    return "image/svg+xml", svg.encode()
