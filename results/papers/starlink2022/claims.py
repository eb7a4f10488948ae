"""The claims of the slides, judged by ratios: their link is not ours, and its times are not compared.

Judged as `results.papers.claims` says. How long the bursts on their link were, and which code they had, the
slides do not say. So FEC gains where it does at one mean length of bursts at least, and it does no harm where
it does none at any. A claim of gain would be wrong if the whole interval were at 1 or above at every length;
the one of no harm, if it were above 1.01 at one; the one of where the gain is largest, if one of its two
differences were below 0 at every length.
"""

from __future__ import annotations

from collections.abc import Iterator

import pandas as pd

from fecbench.results.analysis.pairing import with_fec
from fecbench.results.papers.claims import Claim, all_hold, one_holds, shown
from fecbench.results.papers.starlink2022.slides import LAST, STATISTICS, STRATA, TABLE
from fecbench.results.papers.starlink2022.strata import Gain, Ratio, bursts, gains, ratios
from fecbench.results.store.records import CampaignInfo

# Ours: an upload takes some 250 ms, and 1 % of that is what four packets take over 20 Mbps.
_LEAST_HARM = 0.01
_P95 = tuple(STATISTICS)[-1]

Table = dict[tuple[str, str, str, str], Ratio]
Gains = dict[tuple[str, str], list[Gain]]


def claims(frame: pd.DataFrame, campaign: CampaignInfo) -> list[Claim]:
    table = ratios(frame, campaign)
    of_last = gains(frame, campaign, _P95)
    lengths = list(bursts(campaign).values())
    return [
        claim for variant in with_fec(campaign) for claim in _of_variant(table, of_last, variant, lengths)
    ]


def _of_variant(table: Table, of_last: Gains, variant: str, lengths: list[str]) -> Iterator[Claim]:
    for stratum in STRATA:
        for statistic in STATISTICS:
            yield _of_cell(table, variant, lengths, stratum, statistic)
    slides = [TABLE[stratum, _P95].ratio for stratum in STRATA]

    def smaller(level: float) -> list[bool | None]:
        return [_is_largest(of_last[variant, burst], level) for burst in lengths]

    measured = "; ".join(
        f"{burst}: {' and '.join(f'{gain.estimate():.3f}' for gain in of_last[variant, burst])}"
        for burst in lengths
    )
    yield Claim(
        f"{variant}: how far the ratio of 95th percentiles {LAST} is below that of all, and of those with"
        " losses",
        f"above 0: {slides[0] - slides[2]:.3f} and {slides[1] - slides[2]:.3f} (judged here: both, at one"
        " mean length of bursts at least)",
        measured,
        one_holds(smaller),
    )


def _is_largest(of_last: list[Gain], level: float) -> bool | None:
    """Whether both gains are above 0. That may fail by mistake of either: so it fails by half the level."""
    if all(gain.estimate(level).above(0) for gain in of_last):
        return True
    return False if False in [gain.estimate(level / 2).above(0) for gain in of_last] else None


def _of_cell(table: Table, variant: str, lengths: list[str], stratum: str, statistic: str) -> Claim:
    slides = TABLE[stratum, statistic]
    of_lengths = [table[variant, burst, stratum, statistic] for burst in lengths]
    is_harmless = (stratum, statistic) == ("all", "median")
    if is_harmless:
        judged = f"no harm: at most {1 + _LEAST_HARM:g} at every mean length of bursts"
        holds = all_hold(lambda level: [ratio.estimate(level).below(1 + _LEAST_HARM) for ratio in of_lengths])
    else:
        judged = "below 1 at one mean length of bursts at least"
        holds = one_holds(lambda level: [ratio.estimate(level).below(1) for ratio in of_lengths])
    return Claim(
        f"{variant}: {statistic} of uploads, {stratum}, with FEC / without",
        f"{slides.ratio:.2f} ({slides.with_fec_ms:.0f} / {slides.without_ms:.0f} ms; judged here: {judged})",
        "; ".join(_measured(burst, ratio) for burst, ratio in zip(lengths, of_lengths, strict=True)),
        holds,
    )


def _measured(burst: str, ratio: Ratio) -> str:
    times = " / ".join(shown(1e3 * time, ".0f") for time in (ratio.with_fec_s, ratio.without_s))
    return f"{burst}: {ratio.estimate():.3f}, {times} ms, {ratio.pairs} pairs"
