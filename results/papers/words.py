"""The papers' words for shares and sizes, and what each is taken for.

The papers do not say how many "most" are, or how much "considerably" is. These bounds are ours, one for each
word, whichever paper it stands in. A change of 20 % is a time that is 1.2 times as long, or as long divided
by 1.2: so exchanging the arms exchanges the verdicts.
"""

from __future__ import annotations

from dataclasses import dataclass

from fecbench.results.analysis.margins import percent
from fecbench.results.analysis.tolerances import SHORT_BYTES, vouched_by
from fecbench.results.metrics.units import size
from fecbench.results.papers.claim import Estimate
from fecbench.results.store.records import EngineWord


@dataclass(frozen=True)
class ShareWord:
    """A word for how many: of points, loss patterns, downloads."""

    words: tuple[str, ...]
    least: float = 0.0
    most: float = 1.0

    def judge(self, share: Estimate) -> bool | None:
        """Whether a share is what the word says. A majority is more than its bound, and no less."""
        return share.above(self.least) if self is MOST else share.within(self.least, self.most)

    @property
    def taken_for(self) -> str:
        if self is MOST:
            return f"above {percent(self.least)}"
        return f"at least {percent(self.least)}" if self.most == 1.0 else f"at most {percent(self.most)}"


@dataclass(frozen=True)
class SizeWord:
    """A word for how much longer or shorter, more or less."""

    words: tuple[str, ...]
    least: float
    """The least size as a share: 0.2 is a factor of 1.2."""

    def beyond(self, margin: float) -> float:
        """The least change that counts: the word's, and no less than what the engine vouches for."""
        return max(self.least, margin)


MOST = ShareWord(("most", "the majority", "often", "generally"), least=0.5)
VAST_MAJORITY = ShareWord(("the vast majority",), least=0.8)
ALWAYS = ShareWord(("always", "all"), least=0.9)
NONE = ShareWord(("none", "never", "not"), most=0.1)

MORE = SizeWord(("shorter", "longer", "better", "more", "fewer"), 0.0)
SLIGHTLY = 0.05
"""The greatest change that is slight, or that can hardly be appreciated."""
NOTICEABLY = SizeWord(("noticeably", "clearly", "visibly"), 0.05)
SIGNIFICANTLY = SizeWord(("significantly",), 0.1)
CONSIDERABLY = SizeWord(("considerably", "strongly"), 0.2)
DRASTICALLY = SizeWord(("drastically",), 0.3)
MUCH = SizeWord(("much", "a lot"), 1.0)

SHARES = (MOST, VAST_MAJORITY, ALWAYS, NONE)
SIZES = (NOTICEABLY, SIGNIFICANTLY, CONSIDERABLY, DRASTICALLY, MUCH)


def table() -> str:
    """Return the meaning of each word, as a table of Markdown."""
    rows = [
        *((word.words, f"{word.taken_for} of the points, loss patterns or downloads") for word in SHARES),
        (MORE.words, f"by more than the margin: {_margins()}"),
        (("slightly", "hardly"), f"by at most {percent(SLIGHTLY)}"),
        *((word.words, f"by more than {percent(word.least)}, and the margin") for word in SIZES),
        (("a number",), "that number, within the margin: a gain is as great at least, and beyond the margin"),
        (("a bound (“below 50 %”)",), "that bound, as it is printed"),
    ]
    lines = ["| a paper's word | is taken for |", "|---|---|"]
    lines += [f"| {', '.join(words)} | {taken_for} |" for words, taken_for in rows]
    return "\n".join(lines)


def _margins() -> str:
    """Return the margins that the engines vouch for in ratios, in words."""
    of_short = {name: _vouched("virtual", short=True, statistic=name) for name in ("median", "mean", "p95")}
    of_others = {name: _vouched("virtual", statistic=name) for name in of_short}
    virtual = (
        f"{of_short['median']} of transfers of up to {size(SHORT_BYTES)} and {of_others['median']} of others,"
        f" of means {of_short['mean']} and {of_others['mean']},"
        f" of 95th percentiles {of_short['p95']} and {of_others['p95']}"
    )
    return f"{_vouched('emulated')} emulated; in virtual time {virtual}"


def _vouched(engine: EngineWord, *, short: bool = False, statistic: str = "median") -> str:
    return percent(vouched_by(engine, short=short, statistic=statistic))
