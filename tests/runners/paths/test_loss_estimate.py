"""Estimates of losses: their intervals hold the truth, and what ends a burst is told or left open."""

from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

from fecbench.runners.paths import LONGEST, Estimate, loss_estimate
from fecbench.runners.paths.loss_estimate import estimated
from fecbench.runners.paths.shares import counted

RECORDINGS = 200


@pytest.fixture(autouse=True)
def fewer_draws(monkeypatch: pytest.MonkeyPatch) -> None:
    """An interval from a fifth of the draws is as wide: what varies is small beside its width."""
    monkeypatch.setattr(loss_estimate, "DRAWS", loss_estimate.DRAWS // 5)


def gilbert(generator: np.random.Generator, p: float, r: float, count: int) -> NDArray[np.bool_]:
    """Losses of Gilbert's model, by the lengths of its stays."""
    lost = list[bool]()
    is_bad = generator.random() < p / (p + r)
    while len(lost) < count:
        lost += [is_bad] * int(generator.geometric(r if is_bad else p))
        is_bad = not is_bad
    return np.array(lost[:count])


@pytest.mark.parametrize(
    ("p", "r", "count"),
    [(0.01, 0.5, 3000), (0.005, 0.25, 5000), (0.02, 0.9, 2000), (0.002, 0.4, 20000), (0.05, 0.2, 3000)],
)
def test_intervals_hold_the_truth_in_95_of_100_recordings(p: float, r: float, count: int) -> None:
    generator = np.random.default_rng(round(1e6 * p * r))
    held_loss = held_burst = 0
    for _ in range(RECORDINGS):
        found = estimated(gilbert(generator, p, r, count))
        held_loss += found.loss.low <= p / (p + r) <= found.loss.high
        held_burst += found.burst.low <= 1 / r <= found.burst.high
    # 200 recordings of 95 % hold it in 180 or more, but for 1 of 500 seeds.
    assert min(held_loss, held_burst) >= 0.9 * RECORDINGS, (held_loss, held_burst)


@pytest.mark.parametrize(
    ("p", "r", "loss_bad", "count"),
    [(0.005, 0.1, 0.5, 10_000), (0.01, 0.05, 0.3, 5000), (0.002, 0.02, 0.5, 20_000)],
)
def test_intervals_hold_the_truth_where_bursts_have_holes(
    p: float, r: float, loss_bad: float, count: int
) -> None:
    generator = np.random.default_rng(round(1e6 * p * r))
    hits = 0
    for _ in range(RECORDINGS):
        share = estimated(gilbert(generator, p, r, count) & (generator.random(count) < loss_bad)).loss
        hits += share.low <= loss_bad * p / (p + r) <= share.high
    assert hits >= 0.9 * RECORDINGS, hits


@pytest.mark.parametrize(("share", "count"), [(0.01, 2000), (0.001, 10_000), (0.05, 500), (0.2, 200)])
def test_single_losses_are_no_bursts(share: float, count: int) -> None:
    generator = np.random.default_rng(count)
    held = clustered = 0
    for _ in range(RECORDINGS):
        found = estimated(generator.random(count) < share)
        held += found.loss.low <= share <= found.loss.high
        clustered += found.burst.low > 1 / (1 - share)
    assert held >= 0.9 * RECORDINGS
    assert clustered <= 0.05 * RECORDINGS


def test_an_interval_of_bursts_is_wider_than_one_of_single_losses() -> None:
    in_bursts = np.zeros(4000, dtype=np.bool_)
    in_bursts[np.arange(100, 4000, 400)[:, np.newaxis] + np.arange(8)] = True
    apart = np.zeros(4000, dtype=np.bool_)
    apart[::50] = True
    assert in_bursts.sum() == apart.sum()
    wide, narrow = estimated(in_bursts).loss, estimated(apart).loss
    assert wide.high - wide.low > 1.5 * (narrow.high - narrow.low)


@pytest.mark.parametrize(
    "estimate", [lambda count: estimated(np.zeros(count, np.bool_)).loss, lambda count: counted(0, count)]
)
@pytest.mark.parametrize(
    ("count", "in_a_row"), [(10, 1), (10, 4), (1000, 1), (1000, 2), (1000, 4), (10**5, 4)]
)
def test_no_loss_gives_an_upper_bound(count: int, in_a_row: int, estimate: Callable[[int], Estimate]) -> None:
    """Recordings without a loss are 5 of 100 at most: no burst begins, and none lasts from before."""
    loss = estimate(count)
    assert loss.value == loss.low == 0 < loss.high < min(1, 3 * LONGEST / count)
    begins = loss.high / (1 - loss.high) / in_a_row
    assert (1 - loss.high) * (1 - begins) ** (count - 1) <= 0.051


def test_packets_that_were_left_out_make_no_burst() -> None:
    lost = np.array([*[False] * 30, True, True, *[False] * 30] * 50)
    follows = np.array([*[True] * 31, False, *[True] * 30] * 50)
    assert estimated(lost).burst.value == 2
    assert estimated(lost, follows).burst.value < 1.1


def timed(
    generator: np.random.Generator, count: int, *, by_time: bool
) -> tuple[NDArray[np.bool_], NDArray[np.float64]]:
    """Packets in trains of 8 with 1 ms between, and 40 ms between trains; bursts of 4 packets, or of 4 ms."""
    gaps_s = np.where(np.arange(count) % 8 == 0, 0.04, 0.001)
    if not by_time:
        return gilbert(generator, 0.01, 0.25, count), np.cumsum(gaps_s)
    at_s = np.cumsum(gaps_s)
    ends, is_bad, lost = 0.0, True, np.zeros(count, dtype=np.bool_)
    while ends < at_s[-1]:
        is_bad = not is_bad
        begin, ends = ends, ends + generator.exponential(0.004 if is_bad else 0.3)
        lost[(at_s >= begin) & (at_s < ends)] = is_bad
    return lost, at_s


def test_what_ends_a_burst_is_told_where_packets_come_unevenly() -> None:
    generator = np.random.default_rng(5)
    held = 0
    for _ in range(10):
        found = estimated(*with_all(*timed(generator, 20_000, by_time=True)))
        assert found.ends == "time" and found.burst_s is not None
        held += found.burst_s.low <= 0.004 <= found.burst_s.high
        assert estimated(*with_all(*timed(generator, 20_000, by_time=False))).ends == "packets"
    assert held >= 8


def test_what_ends_a_burst_is_left_open_where_packets_come_evenly() -> None:
    lost = gilbert(np.random.default_rng(6), 0.01, 0.25, 20_000)
    assert estimated(*with_all(lost, np.arange(20_000) / 1e3)).ends == ""


def with_all(
    lost: NDArray[np.bool_], at_s: NDArray[np.float64]
) -> tuple[NDArray[np.bool_], None, NDArray[np.float64]]:
    return lost, None, at_s


def test_a_count_alone_is_less_sure_than_its_packets() -> None:
    lost = np.zeros(1000, dtype=np.bool_)
    lost[::50] = True
    known, alone = estimated(lost).loss, counted(20, 1000)
    assert alone.value == known.value == 0.02
    assert alone.low < known.low and known.high < alone.high


@pytest.mark.parametrize("bad_s", [0.01, 0.03])
def test_probes_lost_in_a_row_tell_how_long_a_burst_lasts(bad_s: float) -> None:
    generator, hits = np.random.default_rng(7), 0
    at_s = 0.01 * np.arange(6000)
    for _ in range(RECORDINGS // 2):
        stays = generator.exponential(np.tile([1.0, bad_s], 200))
        lost = np.searchsorted(np.cumsum(stays), at_s) % 2 == 1
        burst_s = loss_estimate.lasting(estimated(lost), 0.01)
        hits += burst_s is not None and burst_s.low <= bad_s <= burst_s.high
    assert hits >= 0.9 * RECORDINGS / 2, hits


def test_probes_lost_one_by_one_do_not_tell_how_long_a_burst_lasts() -> None:
    lost = np.random.default_rng(7).random(6000) < 0.01
    assert loss_estimate.lasting(estimated(lost), 0.01) is None
