"""The bounds by which a trial is judged. They are a part of its task, so that each trial keeps its own."""

from pydantic import BaseModel, ConfigDict

from fecbench.topologies.link import LinkSettings


class Validity(BaseModel):
    """Every bound of the judge. Of the shares, and the least that they stand for, the larger one holds.

    The completion time is what the client reported; of a trial that timed out, its time limit.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    late_share_of_owd: float = 0.05
    """A frame is late when it leaves a link later than this share of its shorter one-way delay."""
    late_at_least_ms: float = 1.0
    """A frame that leaves its link by less than this after its time is never late."""
    late_frames_share: float = 0.01
    """Of the frames of a direction, so many may be late."""
    late_time_share: float = 0.05
    """Of the completion time, late frames of a direction may have been overdue for so much."""
    late_time_at_least_s: float = 0.005
    stall_share: float = 0.05
    """Of the completion time, endpoints may have been kept from running for so much. Of the limit for a
    server's start or end, too: an endpoint that was kept for longer is not to blame when it passes."""
    stall_at_least_s: float = 0.005
    stolen_share: float = 0.05
    """Of the completion time, a hypervisor may have taken so much of a CPU. As for stalls, of a server's
    start and end."""
    stolen_at_least_s: float = 0.01
    """The kernel counts stolen time in steps of 10 ms: a single step says nothing."""
    unjudged_share: float = 0.01
    """Of the packets that leave a link, the loss model may have left out so many: not UDP, another port."""
    unjudged_at_least: int = 20
    """Messages of the kernel, such as ICMP's, are no traffic of the endpoints."""
    clock_s: float = 0.005
    """By so much an endpoint's clock may differ from the harness's over a transfer."""
    overrun_s: float = 10.0
    """By so much the harness may find a client's time limit over too late."""
    rate_share: float = 1.05
    """A link may have carried so much of its rate over a transfer: its shaper lets bursts out, too."""
    least_share: float = 0.99
    """Of the least time that a transfer can take by its link, so much must have passed: a link's rate has an
    error, too."""
    closing_packets: int = 8
    """Of the packets that an endpoint received, its peer may have sent so many after it had reported: those
    that close the connection."""
    coalesced_packets: int = 100
    """So many QUIC packets of a direction may have shared a frame with another one: those of handshakes."""
    short_packets: int = 10
    """A content that fits into so many packets may have come before its sender had room for a repair symbol,
    or in loss probes, which carry no symbols: those of both ends count."""

    def late_bound_us(self, link: LinkSettings) -> int:
        """How late a frame may leave a link before it counts as late."""
        owd_ms = min(link.up.least_owd_ms, link.down.least_owd_ms)
        return round(max(self.late_at_least_ms, self.late_share_of_owd * owd_ms) * 1000)


USUAL = Validity()
"""The bounds of every campaign."""
