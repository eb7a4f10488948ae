"""What passes between the harness and a client of the workload `requests` in the course of a trial
(quic-impls/contract/requests.md)."""

import json
from typing import Annotated, Literal, NamedTuple, Protocol

from pydantic import BaseModel, ConfigDict, Field, NonNegativeInt

Instant = Annotated[float, Field(ge=0, le=1e9, allow_inf_nan=False)]
"""Seconds of the clock that both ends of a trial have."""


class Object(BaseModel):
    """A client says that an object has arrived, whole and right."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)
    event: Literal["object"]
    bytes: NonNegativeInt
    requested_at: Instant
    """When it had read what asks for it."""
    first_byte_at: Instant
    done_at: Instant


class Line(NamedTuple):
    """What a client is to read, and when."""

    at_s: float
    get: int | None
    """So many bytes are asked for; None: its input ends."""

    @property
    def text(self) -> str | None:
        """None: the end."""
        return None if self.get is None else json.dumps({"get": self.get})


class Conversation(Protocol):
    """What a client is to be asked for, object by object. Times are seconds since it read the first line."""

    def begin(self) -> list[Line]:
        """What it is to read at first."""
        ...

    def heard(self, arrived: Object) -> list[Line]:
        """What it is to read now, in the place of all that it has not read yet."""
        ...


class Dialogue:
    """A conversation by the clock of the trial, and what was said in it."""

    def __init__(self, conversation: Conversation) -> None:
        self._conversation = conversation
        self.objects: list[Object] = []
        self.begun = False

    def begin(self, now_s: float) -> list[Line]:
        """What the client is to read from now on."""
        self.begun = True
        return _moved(self._conversation.begin(), now_s)

    def heard(self, arrived: Object) -> list[Line]:
        """The same, after it has said this."""
        self.objects.append(arrived)
        began_s = self.objects[0].requested_at
        return _moved(self._conversation.heard(since(arrived, began_s)), began_s)


def since(arrived: Object, began_s: float) -> Object:
    """The same by a clock that begins with the first request. What cannot be is left to the judge."""
    times = {
        name: max(0.0, getattr(arrived, name) - began_s)
        for name in ("requested_at", "first_byte_at", "done_at")
    }
    return arrived.model_copy(update=times)


def _moved(lines: list[Line], by_s: float) -> list[Line]:
    return [line._replace(at_s=line.at_s + by_s) for line in lines]
