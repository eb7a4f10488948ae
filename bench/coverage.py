"""Coverage of printed intervals, and how often a difference as large as the margin is called "no difference
that matters".

Campaigns are drawn from distributions of which the truth is known, and go the way that a campaign's trials
go: pairs, ratios, intervals, verdicts. An interval of 95 % should hold the truth in 95 % of cases, and the
verdict should be wrong in 5 % of cases at most.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import product

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from fecbench.looks import looks
from fecbench.results.analysis import intervals
from fecbench.results.analysis.averages import average_of, ratio_over
from fecbench.results.analysis.intervals import FEWEST, FEWEST_OF_TAIL
from fecbench.results.analysis.pairing import Pairing, paired
from fecbench.results.analysis.point_statistic import p95
from fecbench.results.metrics import DEFAULT
from fecbench.results.store.records import DEFAULT_MARGIN, P95

POINTS = 2000
MOST = 300
"""Repetitions of a campaign that runs until it is decided."""
MANY = 1_000_000
TRUE_LOG = math.log(1 / 1.1)
"""The logarithm of the ratio over networks, of which averages are compared with the truth."""
OFF, ON = "off", "on"

Floats = NDArray[np.float64]
Shape = tuple[int, int]
Arms = Callable[[np.random.Generator, Shape], tuple[Floats, Floats]]


@dataclass(frozen=True)
class Row:
    """An interval over some units (repetitions of a point, or points), of two arms of one kind."""

    of: str
    arms: str
    units: int
    holds: float
    """The share of intervals that hold the truth."""
    at_least: float
    at_most: float
    """The bounds of `holds`."""


def alike(random: np.random.Generator, shape: Shape) -> tuple[Floats, Floats]:
    """Draw arms that meet the same losses, which cause most of the spread."""
    losses = random.lognormal(0, 0.4, shape)
    return losses * random.lognormal(0, 0.03, shape), losses * random.lognormal(0, 0.03, shape)


def independent(random: np.random.Generator, shape: Shape) -> tuple[Floats, Floats]:
    """Draw arms whose losses have independent costs."""
    return random.lognormal(0, 0.3, shape), random.lognormal(0, 0.3, shape)


def steadier(random: np.random.Generator, shape: Shape) -> tuple[Floats, Floats]:
    """The variant takes a fifth less, and its spread is a quarter."""
    return random.lognormal(0, 0.4, shape), 0.8 * random.lognormal(0, 0.1, shape)


def delayed(random: np.random.Generator, shape: Shape) -> tuple[Floats, Floats]:
    """The baseline alone is delayed, in two trials of five."""
    delays = random.exponential(1, shape) * (random.random(shape) < 0.4)
    return random.lognormal(0, 0.02, shape) * (1 + delays), random.lognormal(0, 0.02, shape)


ARMS: dict[str, Arms] = {draw.__name__: draw for draw in (alike, independent, steadier, delayed)}
REPETITIONS = {"median": (FEWEST, 8, 20, 50), "mean": (FEWEST, 20, 50), P95: (FEWEST_OF_TAIL,)}


def bounds(statistic: str, arms: str) -> tuple[float, float]:
    """Return the bounds of the share of a point's intervals that contain the truth.

    The median of few values jumps from one of them to the next. So its intervals are too short or too long;
    ours are too long, most of all where both arms meet the same losses. Means do not know of the delays that
    are not among their values.
    """
    if statistic == "mean":
        return (0.75 if arms == "delayed" else 0.92), 0.97
    return 0.93, 1.0


def rows(points: int = POINTS) -> Iterator[Row]:
    """Yield the printed rows, which `make test-slow` compares with their bounds."""
    for statistic, counts in REPETITIONS.items():
        for repetitions in counts:
            for name, arms in ARMS.items():
                holds = of_points(arms, repetitions, points, statistic)
                yield Row(f"a point's {statistic}", name, repetitions, holds, *bounds(statistic, name))
    for networks in (20, 40, 120):
        yield Row("the median over points", "any", networks, over_points(networks, points // 4), 0.93, 0.98)


def of_points(arms: Arms, repetitions: int, points: int, statistic: str) -> float:
    """Return how often the interval of a point contains the ratio of the statistics of very many
    repetitions."""
    random = np.random.default_rng(repetitions)
    baseline, variant = (_of_many(arm[0], statistic) for arm in arms(random, (1, MANY)))
    table = intervals.ratio_intervals(pairing(*arms(random, (points, repetitions)), statistic), statistic)
    return float(table["low"].le(variant / baseline).mul(table["high"].ge(variant / baseline)).mean())


def attainable(pairs: int) -> float:
    """The least confidence from 95 % on that a two-sided exact test of the signs or ranks of pairs may have:
    each of 2^pairs patterns of signs is as likely."""
    patterns = 1 << pairs
    return 1 - 2 * (patterns // 40) / patterns


def over_points(networks: int, campaigns: int) -> float:
    """Return how often the interval of the median ratio contains that of all networks: ratios are 0.9, times
    a skewed distribution."""
    random = np.random.default_rng(networks)
    ratios = 0.9 * np.exp(random.exponential(0.3, (campaigns, networks)) - 0.3 * np.log(2))
    table = np.array(
        [intervals.median_interval(ratios_of_campaign, range(networks)) for ratios_of_campaign in ratios]
    )
    return float(((table[:, 0] <= 0.9) & (table[:, 1] >= 0.9)).mean())


def wrongly_equivalent(repetitions: int, statistic: str, points: int = POINTS) -> float:
    """Return how often a variant that is slower by exactly the margin is said to make no difference that
    matters."""
    random = np.random.default_rng(repetitions)
    baseline, variant = (random.lognormal(0, 0.01, (points, repetitions)) for _ in range(2))
    pairs = pairing(baseline, (1 + DEFAULT_MARGIN) * variant, statistic)
    verdict = intervals.ratio_intervals(pairs, statistic, margins=DEFAULT_MARGIN)["verdict"]
    return float((verdict == "equivalent").mean())


def pairing(
    baseline: Floats,
    variant: Floats,
    statistic: str = "median",
    metric: str = DEFAULT,
    stops: NDArray[np.int64] | None = None,
) -> Pairing:
    """Return the pairing of two arms' values, each points × repetitions, on one workload; `stops`: of a
    campaign that ran each point until so many repetitions decided it."""
    points, repetitions = baseline.shape
    trials = {
        "workload": "download",
        "point": np.tile(np.repeat(np.arange(points), repetitions), 2),
        "repetition": np.tile(np.arange(repetitions), 2 * points),
        "variant": np.repeat([OFF, ON], points * repetitions),
        "state": "ok",
        metric: np.concatenate([baseline.ravel(), variant.ravel()]),
    }
    frame = pd.DataFrame(trials)
    if stops is None:
        return paired(frame, OFF, ON, metric, statistic)
    frame = frame[frame["repetition"].to_numpy() < stops[frame["point"].to_numpy()]]
    return paired(frame, OFF, ON, metric, statistic, looks(repetitions)[0])


def _of_many(values: Floats, statistic: str) -> float:
    if statistic == P95:
        return p95(pd.Series(values))
    return float(np.mean(values) if statistic == "mean" else np.median(values))


def ever_decided(arms: Arms, repetitions: int, statistic: str, points: int, shared_by: int) -> float:
    """Return how many points of equal arms are called gain or harm at any of several looks
    (`fecbench.looks`), when `shared_by` looks share the chance to err."""
    baseline, variant = arms(np.random.default_rng(repetitions), (points, repetitions))
    ever = np.zeros(points, dtype=np.bool_)
    for look in looks(repetitions):
        pairing_so_far = pairing(baseline[:, :look], variant[:, :look], statistic)
        verdict = intervals.ratio_intervals(pairing_so_far, statistic, looks=shared_by)["verdict"]
        ever |= (verdict != "undecided").to_numpy()
    return float(ever.mean())


@dataclass(frozen=True)
class Averages:
    """Averages over networks in campaigns that run each network until its results decide."""

    bias: float
    """The mean amount by which their logarithms are too low, so that a gain looks greater than it is."""
    holds: float
    """The share of their intervals that hold the truth."""


def averages_until_decided(
    statistic: str, networks: int, campaigns: int, seed: int
) -> tuple[Averages, Averages]:
    """Return the averages as they are printed, and as they would be over all repetitions. The log ratios of
    networks are normal about TRUE_LOG, most of them beyond the margin."""
    random = np.random.default_rng(seed)
    baseline, variant = independent(random, (campaigns * networks, MOST))
    variant = variant * np.exp(random.normal(TRUE_LOG, 0.05, (campaigns * networks, 1)))
    stops = _stops(baseline, variant, statistic)
    stopped = pairing(baseline, variant, statistic, stops=stops)
    return _averages(stopped.averaged, networks, statistic), _averages(stopped, networks, statistic)


def _stops(baseline: Floats, variant: Floats, statistic: str) -> NDArray[np.int64]:
    """Return the repetitions after which `results.analysis.deciding` stops each network."""
    stops = np.full(len(baseline), MOST)
    goes_on = np.arange(len(baseline))
    for look in looks(MOST)[:-1]:
        so_far = pairing(baseline[goes_on, :look], variant[goes_on, :look], statistic)
        table = intervals.ratio_intervals(so_far, statistic, margins=DEFAULT_MARGIN, looks=len(looks(MOST)))
        ends = table["verdict"].isin(intervals.EFFECTS if statistic == "mean" else intervals.VERDICTS[:3])
        stops[goes_on[ends]] = look
        goes_on = goes_on[~ends]
    return stops


def _averages(of_networks: Pairing, networks: int, statistic: str) -> Averages:
    average = average_of(of_networks.ratios, statistic)
    of_campaigns = of_networks.ratios.groupby(of_networks.ratios["point"] // networks)
    estimates = [ratio_over(rows, rows["point"], average) for _, rows in of_campaigns]
    holds = [estimate.low <= math.exp(TRUE_LOG) <= estimate.high for estimate in estimates]
    logs = [math.log(estimate.value) for estimate in estimates]
    return Averages(TRUE_LOG - float(np.mean(logs)), float(np.mean(holds)))


def wrongly_equal_so_far(statistic: str, points: int = POINTS) -> float:
    """Return how often the first of four looks finds no difference that matters in a variant that takes six
    times as long in one trial of a hundred, 5 % longer on average."""
    random = np.random.default_rng(1)
    shape = points, looks(MOST)[0]
    baseline, variant = (random.lognormal(0, 0.01, shape) for _ in range(2))
    pairs = pairing(baseline, variant * np.where(random.random(shape) < 0.01, 6, 1), statistic)
    table = intervals.ratio_intervals(pairs, statistic, margins=DEFAULT_MARGIN, looks=len(looks(MOST)))
    return float((table["verdict"] == "equivalent").mean())


def run() -> list[str]:
    """Print all tables; what misses its bounds."""
    missed = []
    table = Table(title="95 % intervals that hold the truth", title_justify="left")
    for heading in ("of", "arms", "units", "%", "bounds", "attainable"):
        table.add_column(heading, justify="left" if heading in ("of", "arms") else "right")
    for row in rows():
        ends = f"{100 * row.at_least:.0f} to {100 * row.at_most:.0f}"
        exact = f"{100 * attainable(row.units):.1f}" if row.of == "a point's median" else "-"
        table.add_row(row.of, row.arms, str(row.units), f"{100 * row.holds:.1f}", ends, exact)
        if not row.at_least <= row.holds <= row.at_most:
            missed.append(f"{row.of}, {row.arms}, {row.units}: {100 * row.holds:.1f} % is not {ends} %")
    Console().print(table)
    table = Table(title="Slower by the margin, and called no difference that matters", title_justify="left")
    for heading in ("statistic", "repetitions", "%", "bound"):
        table.add_column(heading, justify="left" if heading == "statistic" else "right")
    for statistic, counts in REPETITIONS.items():
        for repetitions in counts:
            share = wrongly_equivalent(repetitions, statistic)
            table.add_row(statistic, str(repetitions), f"{100 * share:.1f}", "5")
            if share > 0.05:
                missed.append(
                    f"{statistic} of {repetitions}: {100 * share:.1f} % are wrongly equivalent, not 5"
                )
    Console().print(table)
    table = Table(
        title=f"Equal, looked at {len(looks(MOST))} times, and called gain or harm", title_justify="left"
    )
    for heading in ("statistic", "arms", "%", "bound", "% if looks did not share"):
        table.add_column(heading, justify="left" if heading in ("statistic", "arms") else "right")
    for statistic, arms in product(("median", "mean"), (alike, independent)):
        shared, alone = (
            ever_decided(arms, MOST, statistic, POINTS // 4, count) for count in (len(looks(MOST)), 1)
        )
        table.add_row(statistic, arms.__name__, f"{100 * shared:.1f}", "5", f"{100 * alone:.1f}")
        if shared > 0.07:  # 5 %, and what chance makes of it with so few points
            missed.append(f"{statistic}, {arms.__name__}: {100 * shared:.1f} % are decided at a look, not 5")
    Console().print(table)
    table = Table(title="Averages over networks that stop where their results decide", title_justify="left")
    for heading in ("of", "% too far from 1", "bound", "holds %", "bounds", "% too far, of all", "holds %"):
        table.add_column(heading, justify="left" if heading == "of" else "right")
    for statistic in ("mean", "median"):
        first, of_all = averages_until_decided(statistic, 40, POINTS // 20, seed=40)
        printed = (f"{100 * value:.1f}" for value in (first.bias, 0.4, first.holds))
        table.add_row(
            *(statistic, *printed, "90 to 100"),
            *(f"{100 * value:.1f}" for value in (of_all.bias, of_all.holds)),
        )
        if abs(first.bias) > 0.004 or first.holds < 0.9:  # 0 and 95 %, and what chance makes of 100 campaigns
            missed.append(f"{statistic} over networks: {first}")
    Console().print(table)
    Console().print(
        "Of a variant whose mean is 5 % longer, by rare delays, the first look would say that nothing differs"
        f" in {100 * wrongly_equal_so_far('mean'):.0f} % of cases"
    )
    return missed
