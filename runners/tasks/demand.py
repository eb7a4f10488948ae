"""What a transfer cannot do without, however good an implementation is: less is impossible."""

from dataclasses import dataclass

from fecbench.topologies.link import Direction


@dataclass(frozen=True)
class Demand:
    """What no implementation can do a transfer without, however good it is: less is impossible.

    Nothing is known of a workload that demands nothing.
    """

    up_bytes: int = 0
    """Of the content, from the client to the server. It cannot be compressed: it is pseudo-random."""
    down_bytes: int = 0
    round_trips: int = 0
    """How often something has to go up and be answered, one after another."""
    pauses_s: float = 0.0
    """What the endpoints wait between these round trips of their own will."""
    may_be_lost: bool = False
    """Whether any of the content may fail to arrive."""

    def arriving_bytes(self, direction: Direction) -> int:
        """Of the content that goes in this direction, what arrives in any case."""
        sent = self.up_bytes if direction == "up" else self.down_bytes
        return 0 if self.may_be_lost else sent
