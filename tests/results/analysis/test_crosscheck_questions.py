"""The power of a cross-check's criteria: right simulators seldom differ, and estimates are right."""

import math
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from fecbench.results.analysis import crosscheck_questions, tolerances
from fecbench.results.analysis.criterion import Differences, Verdict
from fecbench.results.analysis.far_off import excess_interval, far
from fecbench.results.analysis.intervals import FEWEST, LEVEL
from fecbench.results.analysis.tolerances import FAR_EITHER_SHARE, FAR_SHARE

Floats = NDArray[np.float64]
N = 30
MANY = 400
CHANCE = 3 * math.sqrt(LEVEL * (1 - LEVEL) / MANY)
LOW, HIGH = math.log(0.97), math.log(1.01)


def differences(
    y: Floats, met_a_loss: Iterable[bool] = (), far_either: float = FAR_EITHER_SHARE
) -> Differences:
    lost = np.array(list(met_a_loss) or [True] * len(y))
    return Differences(
        y, np.full(len(y), LOW), np.full(len(y), HIGH), math.log(1.1), math.log(1.02), lost, far_either
    )


def verdict_of(drawing: Differences) -> Verdict:
    return crosscheck_questions.verdict(crosscheck_questions.asked(drawing))


def small_noise(random: np.random.Generator, n: int) -> Floats:
    """Return the noise of emulated trials that lose nothing."""
    return random.normal(-0.008, 0.005, n)


def tails_alike(random: np.random.Generator, n: int) -> Floats:
    """Return differences with alike tails: in each engine another trial in ten waits for a timer, and takes
    two to five times as long as without."""
    waits = [random.random(n) < 0.1 for _ in range(2)]
    took = [np.where(waiting, 1 + random.pareto(2, n).clip(1, 4), 1.0) for waiting in waits]
    noise: Floats = small_noise(random, n) + np.log(took[0]) - np.log(took[1])
    return noise


def at_the_end_of_the_tolerance(random: np.random.Generator, n: int) -> Floats:
    noise: Floats = random.normal(HIGH, 0.02, n)
    return noise


def chaos(random: np.random.Generator, n: int) -> Floats:
    """Long transfers in bursts of losses, of which each comes out otherwise: a third is far off."""
    noise: Floats = random.standard_t(3, n) * 0.1
    return noise


def test_a_right_simulator_differs_in_the_share_level_at_most() -> None:
    for draw in (small_noise, tails_alike, at_the_end_of_the_tolerance, chaos):
        for n in (8, N):
            random = np.random.default_rng(1)
            either = tolerances.far_either(short=draw is not chaos)
            drawing = [differences(draw(random, n), random.random(n) < 0.6, either) for _ in range(MANY)]
            share = np.mean([verdict_of(sample) == "differs" for sample in drawing])
            print(f"{draw.__name__}, {n} trials: {share:.1%} differ")
            assert share <= LEVEL + CHANCE, (draw, n)


def test_a_right_simulator_agrees_where_machines_are_quiet() -> None:
    for n in (16, N):
        random = np.random.default_rng(2)
        results = [verdict_of(differences(small_noise(random, n), random.random(n) < 0.6)) for _ in range(50)]
        assert results == ["agrees"] * 50, n


def test_a_simulator_that_is_wrong_in_three_of_ten_trials_is_found_by_chance_too() -> None:
    """The number of wrong trials varies by chance: it is not always nine of thirty."""
    random = np.random.default_rng(3)
    results = [
        verdict_of(differences(small_noise(random, N) + math.log(2) * (random.random(N) < 0.3)))
        for _ in range(MANY)
    ]
    print(f"{results.count('differs') / MANY:.0%} differ, {results.count('agrees') / MANY:.0%} agree")
    assert results.count("differs") > 0.7 * MANY
    assert results.count("agrees") == 0


def test_a_simulator_that_is_wrong_in_three_of_ten_trials_never_agrees() -> None:
    for factor in (1.1, 1.5, 0.5):
        random = np.random.default_rng(4)
        wrong = np.arange(N) % 10 < 3
        for _ in range(50):
            assert verdict_of(differences(small_noise(random, N) + math.log(factor) * wrong)) != "agrees", (
                factor
            )


def test_the_interval_of_an_excess_holds_it_in_95_percent() -> None:
    for shares in ((0.05, 0.05), (0.25, 0.02), (0.1, 0.3)):
        random = np.random.default_rng(5)
        hits = []
        for _ in range(2000):
            above, below, _ = random.multinomial(N, [*shares, 1 - sum(shares)])
            low, high = excess_interval(int(above), int(below), N)
            hits.append(low <= shares[0] - shares[1] <= high)
        assert np.mean(hits) > 0.94, shares


def test_an_excess_turns_about_with_its_sides() -> None:
    for above, below in ((0, 0), (3, 1), (0, 9), (30, 0)):
        low, high = excess_interval(above, below, N)
        assert excess_interval(below, above, N) == (-high, -low)
        assert -1 <= low <= (above - below) / N <= high <= 1


def test_of_trials_of_which_none_is_far_off_the_fewest_are_wanted_whose_interval_is_within_the_bound() -> (
    None
):
    needed = FEWEST + (far(differences(np.zeros(FEWEST))).more or 0)
    assert excess_interval(0, 0, needed)[1] <= FAR_SHARE < excess_interval(0, 0, needed - 1)[1]


def test_as_many_more_as_it_says_decide() -> None:
    """The estimate holds in four of five cases if the sample shows how trials spread: here in most."""
    random = np.random.default_rng(6)
    decided: list[bool] = []
    while len(decided) < 60:
        n = int(random.integers(8, 30))
        spread = random.uniform(0.01, 0.12)
        answers = crosscheck_questions.asked(differences(random.normal(-0.01, spread, n)))
        if crosscheck_questions.verdict(answers) == "cannot tell":
            more = crosscheck_questions.more_trials(answers)
            if more is not None and more < 5000:
                again = differences(random.normal(-0.01, spread, n + more))
                decided.append(verdict_of(again) != "cannot tell")
    print(f"{np.mean(decided):.0%} are decided")
    assert np.mean(decided) > 0.6


def test_what_is_decided_needs_no_more_trials() -> None:
    answers = crosscheck_questions.asked(differences(np.full(N, -0.01)))
    assert (crosscheck_questions.verdict(answers), crosscheck_questions.more_trials(answers)) == ("agrees", 0)


def test_too_few_trials_need_as_many_as_can_agree() -> None:
    for n in range(crosscheck_questions.FEWEST):  # type: ignore[attr-defined]
        more = crosscheck_questions.more_trials(crosscheck_questions.asked(differences(np.full(n, -0.01))))
        assert more is not None
        assert verdict_of(differences(np.full(n + more, -0.01))) == "agrees"
        assert verdict_of(differences(np.full(n + more - 1, -0.01))) == "cannot tell"


def test_a_small_stratum_may_differ_but_is_not_waited_for() -> None:
    lost = np.arange(60) < 10
    noise = np.random.default_rng(7).normal(-0.01, 0.004, 60)
    assert verdict_of(differences(noise, lost)) == "agrees"
    wrong = np.where(lost, noise + 0.15, noise)
    assert verdict_of(differences(wrong, lost)) == "differs"
