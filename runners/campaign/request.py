"""What a user asked to be run, checked whole before a database is opened."""

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
from fecbench.runners.implementations.finding import Implementations
from fecbench.runners.implementations.implementation import EngineName
from fecbench.runners.refusal import Refusal
from fecbench.runners.tasks.task import VIRTUAL, Carrier
from fecbench.topologies.topology import resolve_backend

Kept = Literal["failed", "all"]


@dataclass(frozen=True)
class Keep:
    """Which trials' files are moved into a folder instead of being removed."""

    which: Kept
    """`failed`: those that are not ok."""
    folder: Path


@dataclass(frozen=True)
class Sample:
    """A part of a campaign in virtual time that is to be emulated, as a campaign keeps it."""

    campaign: str
    """The campaign in virtual time."""
    share: float
    """Of its groups."""
    trials: int
    arms: Sequence[str] = ()
    """The labels of the variants that are emulated; none: all."""

    def document(self) -> dict[str, Any]:
        """Return what provenance keeps."""
        of_all = {"campaign": self.campaign, "share": self.share, "trials": self.trials}
        return of_all | ({"arms": list(self.arms)} if self.arms else {})


@dataclass(frozen=True, kw_only=True)
class Request:
    """A campaign to be run, or to be gone on with."""

    experiment: Experiment
    keys: Sequence[TrialKey]
    """The trials that are wanted, in order of running."""
    filters: Sequence[str] = ()
    """By which they were chosen of all."""
    name: str
    """Of the campaign."""
    backend: Carrier
    """Of its trials; virtual: they are run in virtual time."""
    jobs: Jobs
    resume: bool = False
    """Whether there must be such a campaign."""
    retry: frozenset[State] = frozenset()
    """Besides what is missing, trials in these states are run again."""
    calibrate: bool = True
    stop_when_alike: bool = False
    """Whether it ends when the endpoints of its first trials all fail for one reason."""
    keep: Keep | None = None
    crosscheck: Sample | None = None
    """What of another campaign it emulates."""
    interop: Mapping[str, Any] | None = None
    """Of an interoperability campaign, the `ends`, and the `cells` of pairs that cannot meet."""

    @property
    def engine(self) -> EngineName:
        """Who carries its trials out."""
        return engine_of(self.backend)

    @property
    def design(self) -> Design:
        return self.experiment.design


def engine_of(backend: str) -> EngineName:
    """Who carries out trials whose packets are carried so."""
    return "virtual" if backend == VIRTUAL else "local"


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
    beside_virtual: bool = False,
    part_of_checked: bool = False,
) -> Request:
    """Everything about a campaign that can be known before a database is opened; raises on any bad input.

    Without a name, the campaign has the design's. What is emulated beside a campaign in virtual time may have
    a design that says what endpoints take of a processor there. `part_of_checked`: the design has a few
    points of one that was checked, and what reached somebody there may reach nobody at these.
    """
    if not name.isprintable():
        raise Refusal(f"--campaign {name!r}: must be one line of printable text")
    experiment = Experiment(design, design.plan().points, implementations)
    check_filters(design, filters)
    keys = filtered(trial_keys(design, len(experiment.points)), filters)
    carrier: Carrier = VIRTUAL if backend == VIRTUAL else resolve_backend(backend)
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
    )
