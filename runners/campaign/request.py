"""A user's request to run a campaign, checked whole before a database is opened."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from fecbench.designs import Design
from fecbench.results.store.records import State, TrialKey
from fecbench.runners.campaign.checks import check
from fecbench.runners.campaign.experiment import Experiment
from fecbench.runners.campaign.order import check_filters, filtered, trial_keys
from fecbench.runners.engines.admission import Jobs
from fecbench.runners.implementations.engine_name import EngineName
from fecbench.runners.implementations.finding import Implementations
from fecbench.runners.refusal import Refusal
from fecbench.runners.tasks.task import FIELD, VIRTUAL, Carrier
from fecbench.topologies.topology import resolve_backend

Kept = Literal["failed", "all"]


@dataclass(frozen=True)
class Keep:
    """The trials whose files are moved into a folder instead of being removed."""

    which: Kept
    """`failed`: the trials that are not ok."""
    folder: Path


@dataclass(frozen=True)
class Sample:
    """A part of a campaign in virtual time that is to be emulated, as a campaign keeps it."""

    campaign: str
    """The campaign in virtual time."""
    share: float
    """Share of its groups."""
    trials: int
    arms: Sequence[str] = ()
    """The labels of the variants that are emulated; none: all."""

    def document(self) -> dict[str, Any]:
        """Return what provenance keeps."""
        of_all = {"campaign": self.campaign, "share": self.share, "trials": self.trials}
        return of_all | ({"arms": list(self.arms)} if self.arms else {})


@dataclass(frozen=True, kw_only=True)
class Request:
    """A campaign to run, or to continue."""

    experiment: Experiment
    keys: Sequence[TrialKey]
    """The trials that are wanted, in order of running."""
    filters: Sequence[str] = ()
    """Filters that chose these trials of all."""
    name: str
    """Name of the campaign."""
    backend: Carrier
    """Carrier of its trials' packets; virtual: they are run in virtual time."""
    jobs: Jobs
    resume: bool = False
    """Whether there must be such a campaign."""
    retry: frozenset[State] = frozenset()
    """States of trials that are run again, besides those that are missing."""
    calibrate: bool = True
    stop_when_alike: bool = False
    """Whether it ends when the endpoints of its first trials all fail for one reason."""
    keep: Keep | None = None
    crosscheck: Sample | None = None
    """The sample of another campaign that it emulates."""
    field: Mapping[str, Any] | None = None
    """The path of trials in the field, for the campaign's provenance: its `path`, its `server`."""
    interop: Mapping[str, Any] | None = None
    """The `ends` of an interoperability campaign, and the `cells` of pairs that cannot meet."""

    @property
    def engine(self) -> EngineName:
        """The engine that runs its trials."""
        return engine_of(self.backend)

    @property
    def design(self) -> Design:
        return self.experiment.design


def engine_of(backend: str) -> EngineName:
    """Return the engine that runs trials with this carrier of packets."""
    return "virtual" if backend == VIRTUAL else "field" if backend == FIELD else "local"


def request(
    design: Design,
    implementations: Implementations,
    *,
    name: str = "",
    backend: Carrier = "auto",
    jobs: Jobs = 1,
    filters: Sequence[str] = (),
    resume: bool = False,
    retry: Collection[State] = (),
    calibrate: bool = True,
    stop_when_alike: bool = False,
    keep: Keep | None = None,
    field: Mapping[str, Any] | None = None,
    beside_virtual: bool = False,
    part_of_checked: bool = False,
) -> Request:
    """Everything about a campaign that can be known before a database is opened; raises on any bad input.

    Without a name, the campaign has the design's. The design of an emulation beside a campaign in virtual
    time may say what endpoints take of a processor there. `part_of_checked`: the design has a few points of a
    checked one, and parameters that reached a trial there may reach none at these points.
    """
    if not name.isprintable():
        raise Refusal(f"--campaign {name!r}: must be one line of printable text")
    experiment = Experiment(design, design.plan().points, implementations)
    check_filters(design, filters)
    keys = filtered(trial_keys(design, len(experiment.points)), filters)
    carrier: Carrier = resolve_backend(backend) if engine_of(backend) == "local" else backend
    check(
        experiment,
        engine_of(backend),
        carrier,
        beside_virtual=beside_virtual,
        part_of_checked=part_of_checked,
    )
    return Request(
        experiment=experiment,
        keys=keys,
        filters=tuple(filters),
        name=name or design.name,
        backend=carrier,
        jobs=jobs,
        resume=resume,
        retry=frozenset(retry),
        calibrate=calibrate,
        stop_when_alike=stop_when_alike,
        keep=keep,
        field=field,
    )
