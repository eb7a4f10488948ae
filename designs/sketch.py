"""A design from a few ranges: which networks, which downloads, which arms. Its text is a file to go on with.

A range whose ends are equal is a constant. Factors vary by orders of magnitude, and points fill their space.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from fecbench.designs.error import DesignError
from fecbench.designs.ranges import Range, divided, entry, factor, written

FEWEST_POINTS, MOST_POINTS = 4, 16
FEWEST_REPETITIONS, MOST_REPETITIONS = 10, 10_000
"""Repetitions of each arm at each point: fewer decide nothing, and a design takes no more."""


@dataclass(frozen=True)
class Arm:
    """A variant that is compared."""

    label: str
    implementation: str
    options: dict[str, Any]
    baseline: str = ""
    """The label of the arm that it is compared with; "" for a baseline itself."""


@dataclass(frozen=True, kw_only=True)
class Sketch:
    """Ranges of networks (round trips in ms, rates in Mbit/s, shares of packets lost), sizes, and arms."""

    name: str
    bandwidth_mbps: Range
    rtt_ms: Range
    loss: Range
    burst: Range
    """Mean number of packets lost in a row."""
    queue_bdp: Range
    sizes_bytes: Sequence[int]
    workload: str
    arms: Sequence[Arm]
    trials: int
    """Approximate number of trials."""
    seed: int = 1

    @property
    def has_bursts(self) -> bool:
        return self.burst != (1, 1)

    def text(self) -> str:
        """Return the design file. Raises DesignError for a range that no network has."""
        self._check()
        varied, fixed = self._parameters()
        of_point = len(self.arms) * len(self.sizes_bytes)
        fits = self.trials // (of_point * FEWEST_REPETITIONS)
        points = min(MOST_POINTS, max(FEWEST_POINTS, fits)) if varied else 1
        repetitions = max(round(self.trials / (points * of_point)), FEWEST_REPETITIONS)
        if repetitions > MOST_REPETITIONS:
            most = MOST_REPETITIONS * points * of_point
            raise DesignError(
                f"trials = {self.trials}: must be at most {most} for {points} networks and these variants"
            )
        parts = [
            _lines(
                name=self.name,
                title=f"In which networks does FEC shorten a{'n' if self.workload == 'upload' else ''}"
                f" {self.workload}?",
                seed=self.seed,
                topology="single-path",
            ),
            f"repetitions = {repetitions}   # of each variant in each network; all meet the same losses\n",
            _lines(statistic="mean", margin=0.02)[:-1] + "   # what differs by less is as good\n",
            _lines(timeout_s=60.0),
        ]
        if varied:
            parts.append(
                '\n[plan]\nmethod = "wsp"   # networks that fill the space of the factors\n'
                f"points = {points}\n\n[factors]\n"
            )
            for name, ends in varied.items():
                low, high, scale = factor(ends).values()
                table = f'{{ min = {written(low)}, max = {written(high)}, scale = "{scale}" }}'
                parts.append(f"{name} = {table}{_remark(name)}\n")
        parts.append("\n[constants]\n")
        parts += [f"{entry(name, value)}{_remark(name)}\n" for name, value in fixed.items()]
        sizes = self.sizes_bytes[0] if len(self.sizes_bytes) == 1 else list(self.sizes_bytes)
        parts.append(f"\n[[workloads]]\n{_lines(name=self.workload, size_bytes=sizes)}")
        parts += [f"\n[[variants]]\n{self._variant(arm)}" for arm in self.arms]
        return "".join(parts)

    def _parameters(self) -> tuple[dict[str, Range], dict[str, Any]]:
        """Return the factors, and the constants."""
        ranges = {"bandwidth_mbps": self.bandwidth_mbps, "rtt_ms": self.rtt_ms, "queue_bdp": self.queue_bdp}
        fixed: dict[str, Any] = {}
        if self.loss == (0, 0):
            fixed["loss.model"] = "none"
        else:
            fixed["loss.model"] = "markov" if self.has_bursts else "uniform"
            ranges["loss.rate"] = self.loss
            ranges |= {"loss.burst": self.burst} if self.has_bursts else {}
        varied, single = divided(ranges)
        return varied, single | fixed

    def _variant(self, arm: Arm) -> str:
        whose = {"baseline": arm.baseline} if arm.baseline else {}
        is_first = arm is self.arms[0]
        text = _lines(label=arm.label, implementation=arm.implementation)
        options = ", ".join(entry(name, value) for name, value in arm.options.items())
        text += f"options = {{ {options} }}\n" if options else ""
        return text + (_lines(baseline=True) if is_first else _lines(**whose))

    def _check(self) -> None:
        for name in ("bandwidth_mbps", "rtt_ms", "queue_bdp"):
            low, high = getattr(self, name)
            if low <= 0:
                raise DesignError(f"{name} = {low:g}: must be above 0")
        low, high = self.loss
        if low < 0 or high >= 1:
            wrong = low if low < 0 else high
            raise DesignError(f"loss = {wrong:g}: must be 0 or more, and below 1, such as 0.01 or 1%")
        if low == 0 < high:
            raise DesignError("loss = 0: must be above 0 where it is a range, which varies by its logarithm")
        if self.burst[0] < 1:
            raise DesignError(f"burst = {self.burst[0]:g}: must be 1 or more packets in a row")
        if high == 0 and self.has_bursts:
            raise DesignError(f"burst = {self.burst[1]:g}: nothing is lost in a row where loss = 0")


_REMARKS = {
    "rtt_ms": "the round trip without a queue, half of it each way",
    "queue_bdp": "of the bandwidth-delay product",
    "loss.rate": "the share of packets that are lost",
    "loss.burst": "packets in a row, on average",
    "loss.model": "each packet on its own; markov: several in a row",
}


def _remark(name: str) -> str:
    return f"   # {_REMARKS[name]}" if name in _REMARKS else ""


def _lines(**values: Any) -> str:
    return "".join(f"{entry(name, value)}\n" for name, value in values.items())
