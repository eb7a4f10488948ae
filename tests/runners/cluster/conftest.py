"""Fixtures of clusters: what workers are asked, and campaigns into a database."""

from pathlib import Path
from typing import Any

from fecbench import __version__, designs
from fecbench.results.store.database import Database
from fecbench.runners.campaign import campaign, order
from fecbench.runners.campaign.experiment import Experiment
from fecbench.runners.campaign.request import Request
from fecbench.runners.cluster.messages import Join
from fecbench.runners.implementations.finding import Implementations
from fecbench.runners.tasks.task import VIRTUAL
from tests.runners.campaign.conftest import believed, little  # noqa: F401 - fixtures
from tests.runners.engines.conftest import HERE


def join_to(database: str = "postgresql://ada/x", campaign: str = "little", **changes: Any) -> Join:
    fields = {"fecbench": __version__, "database": database, "campaign": campaign, "calibrate": False}
    return Join(**{**fields, **changes})


def request_of(path: Path, backend: str = VIRTUAL) -> Request:
    """Return a request for all trials of a design with the simulator that is made up."""
    design = designs.load(path)
    experiment = Experiment(design, design.plan().points, Implementations([HERE]))
    keys = order.trial_keys(design, len(experiment.points))
    return Request(experiment=experiment, keys=keys, name="little", backend=backend, jobs=1, calibrate=False)


def begun(wanted: Request, address: str) -> str:
    """A database that has the campaign, and no trial."""
    with Database.open(address, create=True) as database:
        campaign.begun(wanted, database)
    return address


def messenger_of(manner: str) -> str:
    """Return the program of a messenger that does not do as ours."""
    return f"from tests.runners.cluster.hostile_messenger import behave; behave({manner!r})"
