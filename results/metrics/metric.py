"""A metric, and how it is named to a person."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, NamedTuple

from fecbench.results.metrics.units import UNITS

Better = Literal["less", "more"]
By = Literal["client", "server", "client and server", "harness", "link"]

MOST_NEIGHBOURS = 4
ENDPOINTS = (
    *("client", "server", "background_client", "background_server", "relay"),
    *(f"background{n}_{role}" for n in range(2, MOST_NEIGHBOURS + 1) for role in ("client", "server")),
)
"""The background is a transfer that competes with the measured one; there may be several."""

_TIMES = {UNITS[suffix] for suffix in ("s", "ms", "us")}


class Comparative(NamedTuple):
    """Words for a variant whose metric is better than the baseline's, and for one whose metric is worse."""

    gain: str
    harm: str


@dataclass(frozen=True)
class Metric:
    """A number of a trial."""

    name: str
    """Name as its reporter writes it (`dct_s`); in a metric of `of`, as in frames (`client.dct_s`)."""
    unit: str
    """Unit as people write it; "" for a number without one."""
    meaning: str
    """Meaning in a sentence; "" where it is not known."""
    better: Better | None
    """Better direction; None where neither is better."""
    by: By | None
    """Reporter that measures it; None where that is not known."""
    words: str = ""
    """Noun in the singular for sentences and axes ("download completion time"); "" where there is none."""
    short: str = ""
    """An abbreviation that readers of the field know."""
    asked: str = ""
    """The question that a figure of its values answers, where there is one that reads better than "how
    large"."""
    absent_is_worst: bool = False
    """A trial that is ok lacks it only where it would be worse than any value, as a percentile of latencies
    is that falls on a message lost."""
    of_any_end: bool = False
    """A trial that failed or timed out has its value, too: it is of somebody else."""
    is_share: bool = False
    """Whether it is a share of something, from 0 to 1."""

    @property
    def more_is_better(self) -> bool:
        """Whether more is better. Without a better direction, less counts as the gain."""
        return self.better == "more"

    @property
    def worst(self) -> float:
        """Value of a trial that failed or timed out: worse than any other."""
        return -math.inf if self.more_is_better else math.inf

    @property
    def greatest(self) -> float:
        """Greatest value that it can have."""
        return 1.0 if self.is_share else math.inf

    @property
    def is_time(self) -> bool:
        return self.unit in _TIMES

    @property
    def comparative(self) -> Comparative:
        """Words for a variant that compares better with the baseline, and worse."""
        if self.better is None:
            return Comparative("lower", "higher")
        is_faster = self.is_time and self.better == "less"
        return Comparative("faster", "slower") if is_faster else Comparative("better", "worse")

    @property
    def sides(self) -> tuple[str, str]:
        """Words for a variant whose ratio to the baseline is below 1, and above 1."""
        if self.better is None:
            return self.comparative
        return ("harms", "helps") if self.more_is_better else ("helps", "harms")

    @property
    def question(self) -> str:
        """Question that a figure of its values answers."""
        return self.asked or f"How large is {self.noun}?"

    @property
    def noun(self) -> str:
        """Noun for a sentence: "the DCT"; its name where there are no words for it."""
        return f"the {self.short or self.words}{self._where}" if self.words else self.name

    @property
    def example(self) -> str:
        """Noun for a sentence about any of its values: "a DCT"."""
        article = "an" if self.words.startswith(("a", "e", "i", "o")) else "a"
        return f"{article} {self.short or self.words}{self._where}" if self.words else self.name

    def statistic(self, name: str) -> str:
        """Return the name of a statistic of it: "median DCT"."""
        return f"{name} {self.short}" if self.short else f"{name} of {self.noun}"

    @property
    def title(self) -> str:
        """Label of an axis, with its unit: "download completion time (s)"."""
        unit = "" if self.unit in self.words.split() else self.unit
        remarks = ", ".join(filter(None, [self._reporter if self.words else "", unit]))
        return f"{self.words or self.name} ({remarks})" if remarks else self.words or self.name

    @property
    def ratio(self) -> str:
        """Name of a ratio of it, without an article: "DCT ratio"."""
        return f"{self.short} ratio" if self.short else f"ratio of {self.noun}"

    def ratio_to(self, baseline: str) -> str:
        """Return the label of an axis of ratios: "DCT / DCT of BASELINE"."""
        divided = self.short or f"{self.words or self.name}{self._where if self.words else ''}"
        return f"{divided} / {self.short or 'that'} of {baseline}"

    @property
    def _reporter(self) -> str:
        """The endpoint, where the words alone would leave it open."""
        source = self.name.partition(".")[0]
        told_apart = self.by == "client and server" or source.startswith("background")
        return source.replace("_", " ") if source in ENDPOINTS and told_apart else ""

    @property
    def _where(self) -> str:
        return f" ({self._reporter})" if self._reporter else ""
