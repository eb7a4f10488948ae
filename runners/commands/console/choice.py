"""The database, campaign or design that a command means.

Each is loaded when a command asks for it: a plan needs no database, and a table of results no design.
"""

from __future__ import annotations

import dataclasses
import logging
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fecbench.hints import nearest
from fecbench.quantities import counted
from fecbench.results.store.postgresql_url import is_url
from fecbench.results.store.records import FEWEST_OF_P95, P95, CampaignInfo, StoredTrial
from fecbench.results.store.sqlite_file import check_file
from fecbench.runners.commands.console import arguments
from fecbench.runners.commands.console.terminal import note
from fecbench.runners.refusal import Refusal

if TYPE_CHECKING:
    from fecbench.designs import Design
    from fecbench.results.store.database import Database
    from fecbench.runners.implementations.finding import Implementations

_log = logging.getLogger(__name__)


def open_database(db: str, *, create: bool = False, read_only: bool = False) -> Database:
    """The results database; the default one is told on standard error. `create` makes an absent one, and of a
    `read_only` one nothing can be changed."""
    if not is_url(db):
        check_file(db, create=create)
    from fecbench.results.store.database import Database

    database = Database.open(db, create=create, read_only=read_only)
    _log.info("opened the database %s", database.address)
    if db == arguments.DATABASE:
        note(f"the database is {db} in this folder; choose another with --db or FECBENCH_DB")
    return database


def campaigns_of(database: Database, name: str, *, samples: bool = False) -> list[CampaignInfo]:
    """The campaign of that name, or all of them for no name, but for `samples` that only check another one.

    Raises Refusal when there is none.
    """
    campaigns = database.campaigns()
    if not campaigns:
        raise Refusal(f"{database.address}: is empty: no campaign was run into it")
    chosen = [campaign for campaign in campaigns if name == campaign.name]
    if not name:
        names = {campaign.name for campaign in campaigns}
        chosen = [campaign for campaign in campaigns if samples or campaign.checked not in names]
    if not chosen:
        hint = nearest(name, [campaign.name for campaign in campaigns])
        raise Refusal(f"{database.address}: has no campaign {name!r}; {hint}")
    return chosen


def one_campaign(database: Database, name: str) -> CampaignInfo:
    """The campaign of that name, or the only one. Raises Refusal when a name is needed."""
    chosen = campaigns_of(database, name)
    if len(chosen) > 1:
        known = ", ".join(campaign.name for campaign in chosen)
        raise Refusal(
            f"{database.address}: has {counted(len(chosen), 'campaign')}: choose with --campaign one"
            f" of {known}"
        )
    return chosen[0]


def comparing(
    database: Database,
    campaign: CampaignInfo,
    metric: str,
    margin: float | None = None,
    statistic: str | None = None,
) -> CampaignInfo:
    """The campaign with this metric compared on all its workloads, by this margin and this statistic of
    repetitions; as it is for none.

    Raises Refusal for a metric that no trial has, and for p95 of too few repetitions.
    """
    from fecbench.results.metrics import choose

    if statistic == P95 and campaign.repetitions < FEWEST_OF_P95:
        raise Refusal(
            f"--statistic {P95}: needs {FEWEST_OF_P95} repetitions or more; campaign {campaign.name!r} has"
            f" {campaign.repetitions}"
        )
    if campaign.until_decided and statistic not in (None, campaign.statistic):
        raise Refusal(
            f"--statistic {statistic}: campaign {campaign.name!r} stopped where its {campaign.statistic}"
            f" decided: run the design with statistic = {statistic!r} instead"
        )
    campaign = dataclasses.replace(
        campaign,
        margin=campaign.margin if margin is None else margin,
        statistic=statistic or campaign.statistic,
    )
    from fecbench.results.analysis import frames

    if metric and metric not in (known := frames.metric_names(database, campaign)):
        hint = nearest(metric, known)
        raise Refusal(f"{database.address}: campaign {campaign.name!r}: no trial measured {metric!r}; {hint}")
    return choose(campaign, metric)


def one_trial(database: Database, campaign: str, number: int) -> tuple[CampaignInfo, StoredTrial]:
    """The run of this id, and its campaign; that of the given name, or any for none."""
    campaigns = {info.id: info for info in campaigns_of(database, campaign, samples=True)}
    stored = database.trial(None, number)
    if stored is None or stored.campaign_id not in campaigns:
        place = f"campaign {campaign!r}" if campaign else "it"
        raise Refusal(f"{database.address}: {place} has no trial {number}: see fecbench show --trials")
    return campaigns[stored.campaign_id], stored


def implementations_in(folders: Sequence[Path] | None) -> Implementations:
    """Return our implementations, those in these folders, and those of the environment's."""
    from fecbench.runners.implementations.finding import in_folders

    return in_folders(folders or [])


def design_of(named: Path) -> Design:
    """The design in this file, or the one of the catalogue that has this name."""
    from fecbench import designs

    if named.exists():
        _log.info("read the design %s", named)
        return designs.load(named)
    known = designs.catalogue()
    if str(named) not in known:
        hint = nearest(named.stem, known)
        raise Refusal(f"{named}: cannot be read: no such file, nor a design of the catalogue; {hint}")
    _log.info("read the design %s of the catalogue", known[str(named)])
    return designs.load(known[str(named)])


def options_of_builds(given: Sequence[str]) -> dict[str, Any]:
    """Options of both builds; a value that is no TOML is a text. Raises Refusal for another form."""
    options = {}
    for text in given:
        name, equals, value = text.partition("=")
        if not (name and equals):
            raise Refusal(f"--option {text}: must be NAME=VALUE, such as scheme=none")
        try:
            options[name] = tomllib.loads(f"value = {value}")["value"]
        except tomllib.TOMLDecodeError:
            options[name] = value
    return options
