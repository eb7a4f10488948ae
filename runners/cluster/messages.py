"""Messages between `fecbench run` and a worker: one line of JSON each way, never an object of ours.

A worker refuses a line that it cannot read, for example one of another version.
"""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

from fecbench.results.store.records import Group, State, TrialKey
from fecbench.runners.campaign.rounds import Due


class Message(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Join(Message):
    """Asks a worker to take part in a campaign."""

    kind: Literal["join"] = "join"
    fecbench: str
    """The version that asks."""
    database: str
    campaign: str
    retry: list[State]
    calibrate: bool
    stop_when_alike: bool = False


class GroupTrials(Message):
    """The trials of one group that are to be run."""

    workload: str
    point: int
    repetition: int
    attempts: dict[str, int]
    """Attempts that there were when the campaign was resumed, by variant in order of running."""

    @property
    def group(self) -> Group:
        return Group(self.workload, self.point, self.repetition)

    @property
    def due(self) -> Due:
        return {
            TrialKey(variant, self.workload, self.point, self.repetition): attempts
            for variant, attempts in self.attempts.items()
        }


class Lot(Message):
    """Proposes groups."""

    kind: Literal["lot"] = "lot"
    database: str
    campaign: str
    groups: list[GroupTrials]


class Leave(Message):
    """The campaign is over: what runs is ended, and nothing is begun."""

    kind: Literal["leave"] = "leave"
    database: str
    campaign: str


Proposal = Join | Lot | Leave
PROPOSALS: TypeAdapter[Proposal] = TypeAdapter(Annotated[Proposal, Field(discriminator="kind")])


class RunTrial(Message):
    """A run of a trial that was committed."""

    variant: str
    workload: str
    point: int
    repetition: int
    state: State
    reason: str
    completion_s: float
    again: bool
    """Whether it is run again."""

    @property
    def key(self) -> TrialKey:
        return TrialKey(self.variant, self.workload, self.point, self.repetition)


class GroupName(Message):
    workload: str
    point: int
    repetition: int

    @property
    def group(self) -> Group:
        return Group(self.workload, self.point, self.repetition)


def name_of(group: Group) -> GroupName:
    return GroupName(workload=group.workload, point=group.point, repetition=group.repetition)


class Answer(Message):
    """The answer of a worker to a proposal."""

    host: str
    refused: str = ""
    """Reason why the host takes no group."""
    joined: bool = False
    """Whether it takes part in the campaign; if not, and not refused, it must be asked to join first."""
    room: int = 0
    """Number of lots that it likes to have at a time."""
    done: list[GroupName] = []
    """Groups of which nothing is left to be run."""
    held: list[GroupName] = []
    """Groups that were not run: another one has claimed them, or the database could not be reached."""
    trials: list[RunTrial] = []
