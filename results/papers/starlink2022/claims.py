"""The claims of the slides, judged by ratios: their link is not ours, and its times are not compared.

Judged as `results.papers.claim` says. A gain agrees with the slides' where it is as great at least, and
beyond the margin; a smaller one agrees in direction. How long the bursts on their link were, and which code
they had, the slides do not say. So FEC gains where it does at one mean length of bursts at least, and it does
no harm where it does none at any.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import pandas as pd

from fecbench.quantities import counted
from fecbench.results.analysis.intervals import LEVEL
from fecbench.results.analysis.pairing import with_fec
from fecbench.results.papers.claim import Claim, all_hold, one_holds, shown
from fecbench.results.papers.forms import bound_of, margin_of, ours
from fecbench.results.papers.starlink2022.slides import LAST, SIZE_BYTES, STATISTICS, STRATA, TABLE
from fecbench.results.papers.starlink2022.strata import Gain, Ratio, bursts, gains, ratios
from fecbench.results.papers.words import MORE, NOTICEABLY
from fecbench.results.store.records import CampaignInfo

# Ours: an upload takes some 250 ms, and 1 % of that is what four packets take over 20 Mbps.
_LEAST_HARM = 0.01
_P95 = tuple(STATISTICS)[-1]
_ALL = next(iter(STRATA))
_ANYWHERE = "at one mean length of bursts at least"

Table = dict[tuple[str, str, str, str], Ratio]
Gains = dict[tuple[str, str], list[Gain]]


def claims(frame: pd.DataFrame, campaign: CampaignInfo) -> list[Claim]:
    table = ratios(frame, campaign)
    of_last = gains(frame, campaign, _P95)
    lengths = list(bursts(campaign).values())
    margins = {
        "median": margin_of(campaign, SIZE_BYTES, statistic="median"),
        _P95: margin_of(campaign, SIZE_BYTES, statistic="p95"),
    }
    return [
        claim
        for variant in with_fec(campaign)
        for claim in _of_variant(table, of_last, variant, lengths, margins)
    ]


def _of_variant(
    table: Table, of_last: Gains, variant: str, lengths: list[str], margins: dict[str, float]
) -> Iterator[Claim]:
    for stratum in STRATA:
        for statistic in STATISTICS:
            yield _of_cell(table, variant, lengths, stratum, statistic, margins[statistic])
    slides = [TABLE[stratum, _P95].ratio for stratum in STRATA]
    gains_of_slides = [slide - slides[-1] for slide in slides[:-1]]
    least = [gain - margins[_P95] for gain in gains_of_slides]

    def is_smaller(by: list[float]) -> bool | None:
        return one_holds(lambda level: [_is_largest(of_last[variant, burst], by, level) for burst in lengths])

    measured = "; ".join(
        f"{burst}: {' and '.join(f'{gain.estimate():.3f}' for gain in of_last[variant, burst])}"
        for burst in lengths
    )
    yield Claim(
        f"{variant}: how far the ratio of 95th percentiles {LAST} is below that of all, and of those with"
        " losses",
        " and ".join(f"{gain:.3f}" for gain in gains_of_slides),
        measured,
        holds=is_smaller(least),
        in_direction=is_smaller([0.0] * len(least)),
        size=f"above {' and '.join(f'{gain:.3f}' for gain in least)}, {_ANYWHERE}",
        ours=", ".join(
            " and ".join(ours(gain.value, ".2f") for gain in of_last[variant, burst]) for burst in lengths
        ),
    )


def _is_largest(of_last: list[Gain], by: list[float], level: float) -> bool | None:
    """Whether both gains are above these."""
    pairs = list(zip(of_last, by, strict=True))
    return all_hold(lambda part: [gain.estimate(level * part / LEVEL).above(least) for gain, least in pairs])


def _of_cell(
    table: Table, variant: str, lengths: list[str], stratum: str, statistic: str, margin: float
) -> Claim:
    slides = TABLE[stratum, statistic]
    of_lengths = [table[variant, burst, stratum, statistic] for burst in lengths]
    times = f"{slides.with_fec_ms:.0f} / {slides.without_ms:.0f}"
    judged = partial(
        Claim,
        f"{variant}: {statistic} of uploads, {stratum}, with FEC / without",
        f"{_words(stratum, statistic)}{slides.ratio:.2f} ({times} ms)",
        "; ".join(_measured(burst, ratio) for burst, ratio in zip(lengths, of_lengths, strict=True)),
        ours=", ".join(ours(ratio.value, ".2f") for ratio in of_lengths),
    )
    if (stratum, statistic) == (_ALL, "median"):
        most = 1 + _LEAST_HARM
        return judged(
            holds=all_hold(lambda level: [ratio.estimate(level).below(most) for ratio in of_lengths]),
            size=f"no harm: below {most:g} at every mean length of bursts",
        )
    bound = bound_of(slides.ratio, margin, MORE if stratum == _ALL else NOTICEABLY)
    return judged(
        holds=one_holds(lambda level: [ratio.estimate(level).below(bound) for ratio in of_lengths]),
        in_direction=one_holds(lambda level: [ratio.estimate(level).shorter() for ratio in of_lengths]),
        size=f"below {bound:.3g}, {_ANYWHERE}",
    )


def _words(stratum: str, statistic: str) -> str:
    """The slides' words, where there are any."""
    if stratum != _ALL:
        return "“noticeable improvement when losses happen”: "
    return "“no harm in median”: " if statistic == "median" else ""


def _measured(burst: str, ratio: Ratio) -> str:
    times = " / ".join(shown(1e3 * time, ".0f") for time in (ratio.with_fec_s, ratio.without_s))
    return f"{burst}: {ratio.estimate():.3f}, {times} ms, {counted(ratio.pairs, 'pair')}"
