"""The least that a transfer needs, however good an implementation is: less is impossible."""

from dataclasses import dataclass

from fecbench.topologies.link import Direction


@dataclass(frozen=True)
class Demand:
    """The least that a transfer needs, however good an implementation is: less is impossible.

    A workload without demands is one of which nothing is known.
    """

    up_bytes: int = 0
    """Bytes of content from the client to the server. They are pseudo-random, so they cannot be
    compressed."""
    down_bytes: int = 0
    round_trips: int = 0
    """Number of requests that follow each other, each after the answer to the previous one."""
    pauses_s: float = 0.0
    """Time for which the endpoints themselves wait between these round trips."""
    may_be_lost: bool = False
    """Whether any of the content may fail to arrive."""

    def arriving_bytes(self, direction: Direction) -> int:
        """Return how many bytes of content arrive in this direction in any case."""
        sent = self.up_bytes if direction == "up" else self.down_bytes
        return 0 if self.may_be_lost else sent
