"""A path as far as a recording tells it: estimates, each a value and the interval that holds the truth."""

import math
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal, Self

Ends = Literal["packets", "time", ""]
Origin = Literal["file", "flag"]
LONGEST = 4.0
"""Losses in a row, on average, that are allowed for where a recording does not tell."""


@dataclass(frozen=True)
class Estimate:
    """A value, and the interval that holds the truth in about 95 of 100 recordings."""

    value: float
    low: float
    high: float
    """Infinite: the recording gives no upper bound."""
    origin: Origin = "file"

    @property
    def is_exact(self) -> bool:
        return self.low == self.high

    def document(self) -> dict[str, Any]:
        high = self.high if math.isfinite(self.high) else None
        return {"value": self.value, "low": self.low, "high": high, "from": self.origin}


def exactly(value: float, origin: Origin = "flag") -> Estimate:
    """Return the estimate of a value that is given."""
    return Estimate(value, value, value, origin)


@dataclass(frozen=True, kw_only=True)
class Path:
    """A path, in the direction in which its losses were seen. None: not known."""

    form: str
    """The form of the file, for a person: "qlog", "ping"."""
    source: str = ""
    """The sender, for a person."""
    rtt_ms: Estimate | None = None
    """Round-trip time without a queue."""
    bandwidth_mbps: Estimate | None = None
    loss: Estimate | None = None
    """The share of packets lost but for those of a full queue, where these can be told apart."""
    burst: Estimate | None = None
    """The number of packets lost in a row, on average."""
    queue_bdp: Estimate | None = None
    ends: Ends = ""
    """End of a burst of losses: a number of packets, or time. Empty: the recording does not tell."""
    burst_s: Estimate | None = None
    """Duration of a burst, where time ends it."""
    packets: int = 0
    """The number of packets that the losses are counted in."""
    lost: int = 0
    queue_losses: int = 0
    """Losses of a full queue, beside `lost`."""
    lasts_s: float | None = None
    notes: tuple[str, ...] = ()

    @property
    def is_lossless(self) -> bool:
        """Whether it was recorded, and no loss was seen."""
        return self.loss is not None and self.loss.origin == "file" and self.loss.value == 0

    def noting(self, *notes: str) -> Self:
        return replace(self, notes=(*self.notes, *notes))

    def document(self) -> dict[str, Any]:
        named = {
            name: value.document() if isinstance(value, Estimate) else value
            for name, value in ((name, getattr(self, name)) for name in asdict(self))
        }
        return named | {"ends": self.ends or None, "notes": list(self.notes)}
