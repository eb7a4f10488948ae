"""What passes between the harness and a client of the workload `requests` in the course of a trial
(quic-impls/contract/requests.md)."""

import json
from typing import Annotated, Literal, NamedTuple, Protocol, TypeVar, cast

from pydantic import BaseModel, ConfigDict, Field, NonNegativeInt, TypeAdapter

Instant = Annotated[float, Field(ge=0, le=1e9, allow_inf_nan=False)]
"""Seconds of the clock that both ends of a trial have."""


class Progress(BaseModel):
    """A client says that so much of the object that is on its way has arrived."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)
    event: Literal["progress"]
    bytes: NonNegativeInt
    requested_at: Instant
    at: Instant


class Object(BaseModel):
    """A client says that an object has arrived, whole and right, or that it was given up."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)
    event: Literal["object", "stopped"]
    bytes: NonNegativeInt
    """Those that have arrived."""
    requested_at: Instant
    """When it had read what asks for it."""
    first_byte_at: Instant
    done_at: Instant

    @property
    def whole(self) -> bool:
        return self.event == "object"


Said = Annotated[Object | Progress, Field(discriminator="event")]
"""What a client says in the course of a trial."""
SAID: TypeAdapter[Object | Progress] = TypeAdapter(Said)


T = TypeVar("T", bound=Object | Progress)


class Line(NamedTuple):
    """What a client is to read, and when."""

    at_s: float
    get: int | None = None
    """So many bytes are asked for."""
    tell_every_s: float | None = None
    """So often the client tells their progress; None: it does not."""
    stop: bool = False
    """What is on its way is given up. Where nothing is asked for and nothing given up, its input ends."""

    @property
    def text(self) -> str | None:
        """None: the end."""
        if self.stop:
            return json.dumps({"stop": True})
        if self.get is None:
            return None
        often = {} if self.tell_every_s is None else {"tell_every_s": self.tell_every_s}
        return json.dumps({"get": self.get, **often})


class Conversation(Protocol):
    """What a client is to be asked for, object by object. Times are seconds since it read the first line."""

    def begin(self) -> list[Line]:
        """What it is to read at first."""
        ...

    def heard(self, said: Object | Progress) -> list[Line]:
        """What it is to read now, in the place of all that it has not read yet."""
        ...


class Dialogue:
    """A conversation by the clock of the trial, and what was said in it."""

    def __init__(self, conversation: Conversation) -> None:
        self._conversation = conversation
        self.said: list[Object | Progress] = []
        self.begun = False

    def begin(self, now_s: float) -> list[Line]:
        """What the client is to read from now on."""
        self.begun = True
        return _moved(self._conversation.begin(), now_s)

    @property
    def ended(self) -> int:
        """How many objects have arrived or were given up."""
        return sum(isinstance(said, Object) for said in self.said)

    def heard(self, said: Object | Progress) -> list[Line]:
        """The same, after it has said this."""
        self.said.append(said)
        began_s = self.said[0].requested_at
        return _moved(self._conversation.heard(since(said, began_s)), began_s)


def since(said: T, began_s: float) -> T:
    """The same by a clock that begins with the first request. What cannot be is left to the judge."""
    times = [name for name in type(said).model_fields if name == "at" or name.endswith("_at")]
    moved = {name: max(0.0, getattr(said, name) - began_s) for name in times}
    return cast("T", said.model_copy(update=moved))


def _moved(lines: list[Line], by_s: float) -> list[Line]:
    return [line._replace(at_s=line.at_s + by_s) for line in lines]
