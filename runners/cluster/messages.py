"""Lines of JSON between our processes and their messengers, never an object of ours.

A line that cannot be read, for example one of another version, is refused.
"""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

from fecbench.results.store.records import State

WHY_CHARACTERS = 500
"""The longest reason."""


class Message(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Join(Message):
    """A request to a worker: take part in this campaign of that database."""

    fecbench: str
    """The version that asks."""
    database: str
    campaign: str
    filters: list[str] = []
    retry: list[State] = []
    after: int = 0
    """The last trial before this run of the campaign: a trial that is run again is run once since."""
    calibrate: bool = True
    stop_when_alike: bool = False


class Answer(Message):
    """The answer of a worker, when it does not take part any more."""

    host: str
    state: Literal["done", "left", "refused"]
    """`done`: nothing is left to be run. `left`: it may be asked again. `refused`: it takes no group."""
    why: str = ""


# Lines of the messenger of `fecbench run`


class Workers(Message):
    """The workers that are at the scheduler. It comes once connected, and then again and again."""

    kind: Literal["workers"] = "workers"
    addresses: list[str]


class Outcome(Message):
    """The answer of a worker, or why there is none."""

    kind: Literal["outcome"] = "outcome"
    worker: str
    answer: Answer


News = Workers | Outcome
NEWS: TypeAdapter[News] = TypeAdapter(Annotated[News, Field(discriminator="kind")])


# Lines of the messenger of `fecbench worker`, and those that it reads


class Connected(Message):
    kind: Literal["connected"] = "connected"


class Asked(Message):
    """Somebody asks to take part in a campaign."""

    kind: Literal["asked"] = "asked"
    number: int
    join: Join


class Withdrawn(Message):
    """A request of which nobody waits for the answer any more."""

    kind: Literal["withdrawn"] = "withdrawn"
    number: int


Call = Connected | Asked | Withdrawn
CALLS: TypeAdapter[Call] = TypeAdapter(Annotated[Call, Field(discriminator="kind")])


class Reply(Message):
    """The answer to a request."""

    number: int
    answer: Answer
