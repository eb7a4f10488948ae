"""aioquic's congestion controllers with a given initial window, which also count what they are told.

aioquic tells its logger of packets that a probe sends again as of lost ones; a controller learns which
packets were declared lost."""

from collections.abc import Iterable
from dataclasses import dataclass

from aioquic.quic.congestion.base import QuicCongestionControl, register_congestion_control
from aioquic.quic.congestion.cubic import CubicCongestionControl
from aioquic.quic.congestion.reno import RenoCongestionControl
from aioquic.quic.packet_builder import QuicSentPacket

NAME = "counting"
CONTROLLERS = {"reno": RenoCongestionControl, "cubic": CubicCongestionControl}


@dataclass
class Counts:
    """Counters of the controllers of an endpoint."""

    packets_lost: int = 0


def register(controller: str, initial_window: int) -> Counts:
    """Register one of aioquic's under NAME, with an initial window in packets."""
    counts = Counts()
    own = CONTROLLERS[controller]

    class Counting(own):  # type: ignore[misc, valid-type]
        def __init__(self, *, max_datagram_size: int) -> None:
            super().__init__(max_datagram_size=max_datagram_size)
            self.congestion_window = initial_window * max_datagram_size

        def on_packets_lost(self, *, now: float, packets: Iterable[QuicSentPacket]) -> None:
            packets = list(packets)
            counts.packets_lost += len(packets)
            super().on_packets_lost(now=now, packets=packets)

    def make(*, max_datagram_size: int) -> QuicCongestionControl:
        return Counting(max_datagram_size=max_datagram_size)

    register_congestion_control(NAME, make)
    return counts
