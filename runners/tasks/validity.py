"""The bounds by which a trial is judged. They are a part of its task, so that each trial keeps its own."""

from pydantic import BaseModel, ConfigDict

from fecbench.topologies.link import LinkSettings


class Validity(BaseModel):
    """Bounds of the judge. Where a bound has a share and a minimum, the larger of the two applies.

    The completion time is what the client reported; of a trial that timed out, its time limit.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    late_share_of_owd: float = 0.05
    """A frame is late when it leaves a link later than this share of its shorter one-way delay."""
    late_at_least_ms: float = 1.0
    """A frame that leaves its link by less than this after its time is never late."""
    late_frames_share: float = 0.01
    """Largest share of late frames in a direction."""
    late_time_share: float = 0.05
    """Largest share of the completion time for which late frames may have been overdue in a direction."""
    late_time_at_least_s: float = 0.005
    stall_share: float = 0.05
    """Largest share of the completion time for which endpoints may have been unable to run. It applies to the
    limit for a server's start or end, too: an endpoint that could not run for longer is not to blame."""
    stall_at_least_s: float = 0.005
    stolen_share: float = 0.05
    """Largest share of the completion time that a hypervisor may have taken of a CPU. Like for stalls, it
    applies to a server's start and end, too."""
    stolen_at_least_s: float = 0.01
    """The kernel counts stolen time in steps of 10 ms: a single step says nothing."""
    unjudged_share: float = 0.01
    """Largest share of packets that leave a link unjudged by the loss model: not UDP, or another port."""
    unjudged_at_least: int = 20
    """Messages of the kernel, such as ICMP's, are no traffic of the endpoints."""
    clock_s: float = 0.005
    """Largest difference between the clocks of an endpoint and of the harness over a transfer."""
    overrun_s: float = 10.0
    """Largest delay with which the harness may notice that a client's time limit has passed."""
    rate_share: float = 1.05
    """A link may have carried so much of its rate over a transfer: its shaper lets bursts out, too."""
    least_share: float = 0.99
    """Share of a transfer's shortest possible time that must have passed: the rate of a link has an error,
    too."""
    closing_packets: int = 8
    """Most packets that a peer may have sent after its report, to close the connection, and that the endpoint
    received."""
    coalesced_packets: int = 100
    """Most QUIC packets of a direction that may have shared a frame with another one: those of handshakes."""
    short_packets: int = 10
    """A content that fits into so many packets may have come before its sender had room for a repair symbol,
    or in loss probes, which carry no symbols: those of both ends count. Where the sender declared losses,
    which make its window smaller, one of twice as many may have."""

    def late_bound_us(self, link: LinkSettings) -> int:
        """Return the lateness in µs from which a frame that leaves this link counts as late."""
        owd_ms = min(link.up.least_owd_ms, link.down.least_owd_ms)
        return round(max(self.late_at_least_ms, self.late_share_of_owd * owd_ms) * 1000)


USUAL = Validity()
"""The bounds of every campaign."""
