"""The origin of the times of outages on a topology's links: its client's first frame.

Links are processes of their own, and the frame comes to one of them. So they share the time through memory
that they inherit.
"""

import mmap
import os

_BYTES = 8


class Origin:
    """Made before the links, and closed after them."""

    def __init__(self) -> None:
        self.fd = os.memfd_create("origin")
        os.ftruncate(self.fd, _BYTES)
        self._memory = mmap.mmap(self.fd, _BYTES)

    @property
    def ns(self) -> int | None:
        """The time on CLOCK_MONOTONIC; None as long as no frame arrived."""
        return int.from_bytes(self._memory[:], "little") or None

    @ns.setter
    def ns(self, value: int) -> None:
        self._memory[:] = value.to_bytes(_BYTES, "little")

    def close(self) -> None:
        """Idempotent."""
        if not self._memory.closed:
            self._memory.close()
            os.close(self.fd)
