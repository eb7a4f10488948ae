"""The network that advice is asked for. Values that no network has are refused."""

import math
from dataclasses import dataclass
from typing import Literal

from fecbench.errors import BadInput

CongestionControl = Literal["cubic", "bbr3"]


@dataclass(frozen=True)
class Network:
    """A network, and the transfer over it, as far as they are known."""

    rtt_ms: float
    bandwidth_mbps: float
    loss: float
    """The share of packets that is lost, 0 to 1."""
    size_bytes: float
    burst: float = 1
    """Mean number of packets lost in a row."""
    congestion_control: CongestionControl = "cubic"
    queue_bdp: float | None = None
    """The queue's limit, in bandwidth-delay products; None where it is not known."""
    by_time: bool = False
    """Whether time ends a burst of losses, and not a number of packets."""

    def __post_init__(self) -> None:
        for name in ("rtt_ms", "bandwidth_mbps", "size_bytes", "queue_bdp"):
            value = getattr(self, name)
            if value is not None and not 0 < value < math.inf:
                raise BadInput(f"{name} = {value:g}: must be above 0, and finite")
        if not 0 <= self.loss < 1:
            raise BadInput(f"loss = {self.loss:g}: must be 0 or more and below 1, such as 0.01 or 1%")
        if not 1 <= self.burst < math.inf:
            raise BadInput(f"burst = {self.burst:g}: must be 1 or more, and finite: packets lost in a row")
        if self.loss == 0 and self.burst > 1:
            raise BadInput(
                f"burst = {self.burst:g}: must be 1 where loss = 0: nothing is lost in a row there"
            )
