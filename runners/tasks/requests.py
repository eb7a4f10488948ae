"""Messages between the harness and a client of the workload `requests` during a trial
(quic-impls/contract/requests.md)."""

import json
from typing import Annotated, Literal, NamedTuple, Protocol, TypeVar, cast

from pydantic import BaseModel, ConfigDict, Field, NonNegativeInt, TypeAdapter

Instant = Annotated[float, Field(ge=0, le=1e9, allow_inf_nan=False)]
"""Seconds of the clock that both ends of a trial have."""


class Progress(BaseModel):
    """A client's message that so much of the object on its way has arrived."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)
    event: Literal["progress"]
    bytes: NonNegativeInt
    requested_at: Instant
    at: Instant


class Object(BaseModel):
    """A client's message that an object has arrived, whole and right, or was given up."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)
    event: Literal["object", "stopped"]
    bytes: NonNegativeInt
    """Bytes that have arrived."""
    requested_at: Instant
    """Time at which the client had read the request."""
    first_byte_at: Instant
    done_at: Instant

    @property
    def whole(self) -> bool:
        return self.event == "object"


Said = Annotated[Object | Progress, Field(discriminator="event")]
"""A message of a client during a trial."""
SAID: TypeAdapter[Object | Progress] = TypeAdapter(Said)


T = TypeVar("T", bound=Object | Progress)


class Line(NamedTuple):
    """A line for a client to read, and its time."""

    at_s: float
    get: int | None = None
    """Number of bytes to request."""
    tell_every_s: float | None = None
    """Interval at which the client reports progress; None: it does not."""
    stop: bool = False
    """Whether the client gives up the object on its way. A line without `get` and `stop` ends the client's
    input."""

    @property
    def text(self) -> str | None:
        """The text of the line; None: the end of the input."""
        if self.stop:
            return json.dumps({"stop": True})
        if self.get is None:
            return None
        often = {} if self.tell_every_s is None else {"tell_every_s": self.tell_every_s}
        return json.dumps({"get": self.get, **often})


class Conversation(Protocol):
    """Requests to a client, object by object. Times are seconds since it read the first line."""

    def begin(self) -> list[Line]:
        """Return the first lines for the client."""
        ...

    def heard(self, message: Object | Progress) -> list[Line]:
        """Return the next lines for the client. They replace all lines that it has not read yet."""
        ...


class Dialogue:
    """A conversation by the clock of the trial, and its messages."""

    def __init__(self, conversation: Conversation) -> None:
        self._conversation = conversation
        self.said: list[Object | Progress] = []
        self.begun = False

    def begin(self, now_s: float) -> list[Line]:
        """Return the lines for the client from now on."""
        self.begun = True
        return _moved(self._conversation.begin(), now_s)

    @property
    def ended(self) -> int:
        """Number of objects that have arrived or were given up."""
        return sum(isinstance(message, Object) for message in self.said)

    def heard(self, message: Object | Progress) -> list[Line]:
        """Return the lines for the client after this message of it."""
        self.said.append(message)
        began_s = self.said[0].requested_at
        return _moved(self._conversation.heard(since(message, began_s)), began_s)


def since(message: T, began_s: float) -> T:
    """Return the same message with times since the first request. Negative times become 0: the judge checks
    them."""
    times = [name for name in type(message).model_fields if name == "at" or name.endswith("_at")]
    moved = {name: max(0.0, getattr(message, name) - began_s) for name in times}
    return cast("T", message.model_copy(update=moved))


def _moved(lines: list[Line], by_s: float) -> list[Line]:
    return [line._replace(at_s=line.at_s + by_s) for line in lines]
