"""Losses that a model made are not refused, and others are: how often, by simulation.

`make test-slow` prints the shares, which docs/losses-and-links.md has.
"""

import re
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import pytest
from numpy.typing import NDArray

from fecbench.dropper.fit import Fit, fit
from fecbench.dropper.goodness_of_fit import SIMULATED, likeness
from fecbench.dropper.model import GilbertElliott, Uniform, markov, verdicts

Verdicts = NDArray[np.bool_]
Random = np.random.Generator
RECORDINGS = {2_000: 100, 20_000: 100, 100_000: 25}
"""Number of recordings of each length, to measure how often they are refused."""


def by_chance(shares: float | NDArray[np.float64], packets: int, random: Random) -> Verdicts:
    """Lose each packet with a probability of its own, or all with one."""
    lost: Verdicts = random.random(packets) < shares
    return lost


def blackouts(length: int, every: int, share: float) -> Callable[[int, Random], Verdicts]:
    """Lose so many packets in a row at regular times, and single ones with this share."""

    def record(packets: int, random: Random) -> Verdicts:
        lost = by_chance(share, packets, random)
        lost[(np.arange(packets) >= every) & (np.arange(packets) % every < length)] = True
        return lost

    return record


def step(packets: int, random: Random) -> Verdicts:
    return by_chance(np.where(np.arange(packets) < packets // 2, 0.005, 0.04), packets, random)


def drift(packets: int, random: Random) -> Verdicts:
    return by_chance(np.linspace(0.005, 0.02, packets), packets, random)


def made_by(model: Uniform | GilbertElliott) -> Callable[[int, Random], Verdicts]:
    return lambda packets, random: verdicts(model, int(random.integers(2**63)), packets)


class Source(NamedTuple):
    """A source of losses, and the number of packets from which its losses are refused in 95 of 100
    recordings; None for a model, whose losses are refused in two of 100 at most."""

    record: Callable[[int, Random], Verdicts]
    found_from: int | None


SOURCES = {
    "uniform, 0.5 %": Source(made_by(Uniform(0.005)), None),
    "uniform, 2 %": Source(made_by(Uniform(0.02)), None),
    "uniform, 10 %": Source(made_by(Uniform(0.1)), None),
    "markov, p 0.01, r 0.4": Source(made_by(markov(0.01, 0.4)), None),
    "markov, p 0.002, r 0.1": Source(made_by(markov(0.002, 0.1)), None),
    "ge, p 0.005, r 0.1, k 0.998, h 0.6": Source(made_by(GilbertElliott(0.005, 0.1, 0.998, 0.6)), None),
    "ge, p 0.01, r 0.1, k 0.99, h 0.3": Source(made_by(GilbertElliott(0.01, 0.1, 0.99, 0.3)), None),
    "20 lost in each 1,500, and 0.2 %": Source(blackouts(20, 1500, 0.002), 20_000),
    "5 lost in each 500, and 1 %": Source(blackouts(5, 500, 0.01), 20_000),
    "a step from 0.5 to 4 %": Source(step, 20_000),
    "a drift from 0.5 to 2 %": Source(drift, 40_000),
}


def fits(source: Source, packets: int, recordings: int) -> list[Fit]:
    random = np.random.default_rng(packets)
    return [fit(source.record(packets, random), seed) for seed in range(recordings)]


@pytest.mark.parametrize("name", [name for name, source in SOURCES.items() if source.found_from is None])
def test_losses_that_a_model_made_are_not_refused(name: str) -> None:
    results = fits(SOURCES[name], 20_000, 2)
    assert [fitted.usable for fitted in results] == [True] * 2, [fitted.why for fitted in results]


@pytest.mark.parametrize("name", [name for name, source in SOURCES.items() if source.found_from])
def test_losses_that_no_model_makes_are_refused(name: str) -> None:
    source = SOURCES[name]
    results = fits(source, source.found_from or 0, 2)
    assert [fitted.usable for fitted in results] == [False] * 2, [fitted.why for fitted in results]


def test_a_right_model_is_refused_in_one_of_a_hundred() -> None:
    """The model has its own parameters, not fitted ones: nothing reduces the share."""
    for model in (Uniform(0.03), markov(0.02, 0.4)):
        random = np.random.default_rng(8)
        refusal = [
            not likeness(made_by(model)(1500, random), model, 1000 * number).is_like for number in range(60)
        ]
        assert sum(refusal) <= 3, model  # of 0.6 on average: so few come with a probability of 99.7 %


def test_what_differs_is_said() -> None:
    results = fit(blackouts(20, 1500, 0.002)(40_000, np.random.default_rng(1)))
    # Two of three windows of 1,000 packets have one blackout.
    assert re.match(r"6\d % \(of the model's \d %\) of windows of 1000 packets have 2\d to 2\d", results.why)
    assert results.why.endswith(
        f"of {SIMULATED} simulations are as far from it in any comparison; use the"
        " recorded losses as a pattern"
    )


def test_a_longer_recording_sees_smaller_differences() -> None:
    random = np.random.default_rng(2)
    short, long = (fit(made_by(markov(0.02, 0.4))(packets, random)).seen_from for packets in (4_000, 40_000))
    assert set(short) < set(long)  # which has windows of 1,000 packets, too
    assert all(long[name] < share for name, share in short.items())


@pytest.mark.slow
@pytest.mark.parametrize("name", SOURCES)
def test_how_often_losses_are_refused(name: str) -> None:
    source = SOURCES[name]
    for packets, recordings in RECORDINGS.items():
        results = fits(source, packets, recordings)
        few = sum("too few" in fitted.why for fitted in results)
        refusal = sum(not fitted.usable for fitted in results)
        print(f"{name}, {packets:,} packets: {refusal} of {recordings} refused, {few} since they are too few")
        if source.found_from is None:
            # A right model is refused in 1 of 100: one of 25 is no surprise.
            assert refusal - few <= max(1, 0.02 * recordings), packets
        elif packets >= source.found_from:
            assert refusal >= 0.95 * recordings, packets
