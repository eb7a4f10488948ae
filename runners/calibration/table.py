"""The table of a calibration: measurements, each with its bound."""

from typing import Literal, NamedTuple

from pydantic import BaseModel, computed_field

Kind = Literal["full", "under load", "brief"]


class Bounds(NamedTuple):
    """Bounds of the delay error, in µs."""

    p50: float
    p99: float
    max: float


class Measurement(BaseModel):
    """A line of the table."""

    name: str
    value: float
    bound: float | None
    """The value is good when it is at most this. Without a bound it is always good."""
    unit: str

    @computed_field  # type: ignore[prop-decorator]
    @property
    def good(self) -> bool:
        return self.bound is None or self.value <= self.bound

    def __str__(self) -> str:
        value = f"{self.name} is {self.value:.4g} {self.unit}".rstrip()
        return value if self.bound is None else f"{value}, the bound is {self.bound:g}"


class Table(BaseModel):
    """Measurements of a link, with their time."""

    kind: Kind
    at: str
    """Time of day, by ISO 8601."""
    backend: str
    real_time: bool | None
    """Whether every link was granted SCHED_FIFO: without it, other load delays a link. None: the backend has
    no process that could be granted it."""
    measurements: list[Measurement]
    attempt: int = 1
    """Counts from 1."""

    @computed_field  # type: ignore[prop-decorator]
    @property
    def good(self) -> bool:
        return not self.broken()

    def broken(self) -> list[Measurement]:
        """The lines whose bound does not hold."""
        return [line for line in self.measurements if not line.good]
