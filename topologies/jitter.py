"""Noise of a link's delay: what each frame is delayed besides, by a law, a mean and a seed.

The link knows the law (`wire/jitter.h`); here is what others have to know of it.
"""

from dataclasses import dataclass
from typing import Annotated, Literal, get_args

from fecbench.topologies.left_out import left_out

Law = Literal["uniform", "normal", "pareto"]
LAWS: tuple[Law, ...] = get_args(Law)

MOST_MEANS: dict[Law, float] = {"uniform": 2, "normal": 2, "pareto": 18.5}
"""The most that a frame is ever delayed besides, in means. The least is 0 by every law."""

LARGEST_MEAN_MS = 10_000


@dataclass(frozen=True)
class Jitter:
    """Noise of one direction."""

    mean_ms: float
    law: Law = "uniform"
    seed: Annotated[int | None, left_out()] = None
    """64 bits that decide the noise of each frame by its number; None: each repetition has its own."""

    @property
    def mean_ns(self) -> int:
        return round(self.mean_ms * 1e6)

    @property
    def most_ms(self) -> float:
        return self.mean_ms * MOST_MEANS[self.law]
