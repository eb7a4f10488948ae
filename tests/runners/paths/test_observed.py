"""A path by probes and volleys: rates, queues and losses are those of the link that they were sent over."""

import math
from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

from fecbench.dropper.clocked import TimedGilbertElliott, is_bad
from fecbench.dropper.model import GilbertElliott, Uniform, verdicts
from fecbench.runners.paths.observed import FULL_BYTES, Observed, longest_wait_ms, path_of
from fecbench.runners.paths.path import Path

Floats = NDArray[np.float64]
Verdicts = NDArray[np.bool_]
Losses = Callable[[Floats], Verdicts]
RTT_MS = 50.0
PACKETS = 100
APART_S = 20e-6
BLOCKS = 40


def volley(rate_mbps: float, queue_packets: int, begins_s: float) -> tuple[Floats, Floats]:
    """Times at which the packets of a volley are sent, and leave a queue of drop-tail."""
    sent_s = begins_s + APART_S * np.arange(PACKETS)
    service_s = FULL_BYTES * 8 / (1e6 * rate_mbps)
    left_s = np.full(PACKETS, math.nan)
    departures = list[float]()
    for number, at_s in enumerate(sent_s):
        waiting = sum(departure > at_s for departure in departures)
        if waiting < queue_packets:
            departures.append(max([at_s, *departures[-1:]]) + service_s)
            left_s[number] = departures[-1]
    return sent_s, left_s + RTT_MS / 2e3


def path_over(losses: Losses, rate_mbps: float = 20, queue_packets: int = 60, blocks: int = BLOCKS) -> Path:
    """The path of blocks over a link: 120 probes and a volley each."""
    times, volleys = list[Floats](), list[tuple[Floats, Floats]]()
    for block in range(blocks):
        times.append(10 * block + 0.02 * np.arange(120))
        volleys.append(volley(rate_mbps, queue_packets, 10 * block + 3.0))
    probe_s = np.concatenate(times)
    on_link = np.concatenate([probe_s, *(came_s[np.isfinite(came_s)] for _, came_s in volleys)])
    order = np.argsort(on_link, kind="stable")
    lost = np.empty(on_link.size, dtype=np.bool_)
    lost[order] = losses(on_link[order])
    at = probe_s.size
    for _, came_s in volleys:
        places = np.flatnonzero(np.isfinite(came_s))
        came_s[places[lost[at : at + places.size]]] = math.nan
        at += places.size
    round_trips = np.full(probe_s.size, RTT_MS) + np.abs(
        np.random.default_rng(1).normal(0, 0.1, probe_s.size)
    )
    return path_of(Observed(probe_s, lost[: probe_s.size], volleys), round_trips, "down")


def by_packets(p: float, r: float, seed: int = 5) -> Losses:
    return lambda times: verdicts(GilbertElliott(p, r, 1.0, 0.0), seed, times.size)


def by_time(share: float, bad_s: float, seed: int = 5) -> Losses:
    model = TimedGilbertElliott(bad_s * (1 - share) / share, bad_s, 1.0, 0.0)
    return lambda times: is_bad(model, seed, np.round((times - times[0]) * 1e9).astype(np.int64))


def none(times: Floats) -> Verdicts:
    return np.zeros(times.size, dtype=np.bool_)


@pytest.mark.parametrize("rate_mbps", [0.5, 5, 20, 100, 300])
@pytest.mark.parametrize("losses", [none, by_packets(0.02, 0.4)], ids=["lossless", "lossy"])
def test_the_rate_is_that_of_the_link(rate_mbps: float, losses: Losses) -> None:
    rate = path_over(losses, rate_mbps).bandwidth_mbps
    assert rate is not None and rate.value == pytest.approx(rate_mbps, rel=0.02)
    assert rate.low <= rate_mbps <= rate.high


def test_a_link_that_is_faster_than_volleys_has_no_upper_bound() -> None:
    rate = path_over(none, 2000).bandwidth_mbps
    assert rate is not None and rate.high == math.inf and 400 < rate.low <= rate.value <= 2000


@pytest.mark.parametrize("losses", [none, by_packets(0.02, 0.4), by_time(0.03, 0.02)])
def test_a_queue_that_volleys_fill_is_measured_and_its_losses_are_left_out(losses: Losses) -> None:
    path = path_over(losses, queue_packets=60)
    holds_ms = 60 * FULL_BYTES * 8 / 20e3
    assert path.queue_bdp is not None
    assert path.queue_bdp.value * RTT_MS == pytest.approx(holds_ms, rel=0.05)
    assert path.queue_losses >= BLOCKS * 30
    deep = path_over(losses, queue_packets=200)
    assert deep.queue_bdp is None and deep.queue_losses == 0


def test_losses_and_their_bursts_are_those_of_the_link() -> None:
    for loss in (none, Uniform(0.01)):
        model = loss if callable(loss) else lambda times: verdicts(Uniform(0.01), 3, times.size)
        path = path_over(model)
        assert path.loss is not None and path.loss.low <= (0 if loss is none else 0.01) <= path.loss.high
    held_counts = {"share": 0, "burst": 0}
    for seed in range(20):
        path = path_over(by_packets(0.01, 0.4, seed))
        assert path.loss is not None and path.burst is not None
        held_counts["share"] += path.loss.low <= 0.01 / 0.41 <= path.loss.high
        held_counts["burst"] += path.burst.low <= 2.5 <= path.burst.high
    assert min(held_counts.values()) >= 16, held_counts


def test_a_volley_whose_first_packets_are_lost_makes_no_losses_of_its_full_queue() -> None:
    volleys = [volley(20, 60, 10.0 * block) for block in range(40)]
    for _, came_s in volleys[::5]:
        came_s[:30] = math.nan
    observed = Observed(0.02 * np.arange(200), np.zeros(200, dtype=np.bool_), volleys)
    assert path_of(observed, np.full(200, RTT_MS), "down").lost == 8 * 30


@pytest.mark.parametrize("queue_packets", [60, 200])
def test_intervals_of_the_share_hold_it_where_time_ends_long_bursts(queue_packets: int) -> None:
    count_held, shares = 0, list[float]()
    for seed in range(20):
        path = path_over(by_time(0.03, 0.02, seed), queue_packets=queue_packets)
        assert path.loss is not None
        count_held += path.loss.low <= 0.03 <= path.loss.high
        shares.append(path.loss.value)
    assert count_held >= 16 and np.mean(shares) == pytest.approx(0.03, rel=0.15), (count_held, shares)


def test_volleys_at_another_pace_than_the_others_tell_nothing_of_the_queue() -> None:
    observed = [volley(20, 60, 10.0 * block) for block in range(20)]
    stalled = [
        (sent, np.nanmin(came_at) + 3 * (came_at - np.nanmin(came_at))) for sent, came_at in observed[:3]
    ]
    seen_all = Observed(0.02 * np.arange(200), np.zeros(200, dtype=np.bool_), [*stalled, *observed[3:]])
    path = path_of(seen_all, np.full(200, RTT_MS), "down")
    assert path.queue_bdp is not None
    assert path.queue_bdp.value * RTT_MS == pytest.approx(60 * FULL_BYTES * 8 / 20e3, rel=0.05)


def test_time_and_packets_that_end_a_burst_are_told_apart() -> None:
    ends = [path_over(by_packets(0.01, 0.4, seed)).ends for seed in range(10)]
    assert ends.count("packets") >= 7 and "time" not in ends
    timed = [path_over(by_time(0.03, 0.01, seed)) for seed in range(10)]
    assert [path.ends for path in timed].count("time") >= 7
    assert "packets" not in [path.ends for path in timed]
    lasts = [path.burst_s for path in timed if path.burst_s is not None]
    assert sum(one.low <= 0.01 <= one.high for one in lasts) >= 0.7 * len(lasts)


def test_too_few_volleys_have_no_rate_and_lost_ones_are_no_error() -> None:
    assert path_over(none, blocks=4).bandwidth_mbps is None
    gone_s = np.full(PACKETS, math.nan)
    observed = Observed(
        np.arange(50) * 0.02, np.zeros(50, dtype=np.bool_), [(np.arange(PACKETS) * 1e-5, gone_s)]
    )
    path = path_of(observed, np.full(50, RTT_MS), "up")
    assert path.bandwidth_mbps is None and path.queue_bdp is None and longest_wait_ms(observed) == 0
