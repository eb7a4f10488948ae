"""Simulators that are wrong in a part of their trials, or in what they send: a cross-check sees each of them.

A median sees none of these. And a right simulator passes, whatever chance does to single trials.
"""

import math
from collections.abc import Callable
from dataclasses import replace

import pytest

from fecbench.results.analysis import agreement_in_words
from fecbench.results.analysis.agreement import Agreement
from fecbench.results.store.records import TrialKey
from tests.results.analysis.twin_campaigns import OFF, ON_TIME, QOE, XOR, Ended, Run, as_it_is, one

N = 30


def ends(share: float = 1.0, **otherwise: float) -> Run:
    """Return the usual ends of trials, but for this share of them, which end `otherwise`."""

    def ended(key: TrialKey) -> Ended:
        return as_it_is(key)._replace(**(otherwise if key.point < round(share * N) else {}))

    return ended


def slow(key: TrialKey) -> Ended:
    """Twice as long in 30 % of the trials."""
    result = as_it_is(key)
    return result._replace(dct_s=result.dct_s * (2 if key.point % 10 < 3 else 1))


def test_one_that_is_wrong_by_two_in_three_of_ten_trials(compare: Callable[..., Agreement]) -> None:
    result = compare(virtual=slow, points=N)
    dct = one(result, OFF)
    assert (result.verdict, dct.verdict) == ("differs", "differs")
    assert dct.quantiles[0.5] == 0
    assert agreement_in_words.headline(result).startswith("Virtual and emulated differ: 2 of ")


def test_one_that_is_on_time_in_a_third_of_the_trials_that_were_late_throughout(
    compare: Callable[..., Agreement],
) -> None:
    result = compare(ends(1 / 3, on_time=0.9), ends(1 / 3, on_time=0.0), points=N, metric=ON_TIME)
    late = one(result, OFF, ON_TIME)
    assert (late.n, late.verdict) == (N, "differs")
    assert late.quantiles[0.05] == pytest.approx(-0.9)


def test_one_that_has_another_share_of_late_messages(compare: Callable[..., Agreement]) -> None:
    for virtual, emulated in ((0.995, 0.960), (0.960, 0.995)):
        result = compare(ends(on_time=virtual), ends(on_time=emulated), points=N, metric=ON_TIME)
        late = one(result, OFF, ON_TIME)
        assert late.verdict == "differs", (virtual, emulated)
        assert late.quantiles[0.5] == pytest.approx(emulated - virtual), (virtual, emulated)
        assert late.tolerance == (-0.005, 0.005), (virtual, emulated)


def test_one_that_sends_all_of_it_twice_and_is_as_fast(compare: Callable[..., Agreement]) -> None:
    result = compare(virtual=ends(sent_bytes=24_000, sent_packets=24), points=N)
    assert one(result, OFF).verdict == "agrees"
    assert one(result, OFF, "server.bytes_sent").verdict == "differs"
    assert one(result, OFF, "server.packets_sent").verdict == "differs"
    assert result.verdict == "differs"


def test_one_that_is_wrong_where_packets_are_lost_alone(compare: Callable[..., Agreement]) -> None:
    def most_lose_nothing(factor: float) -> Run:
        def ended(key: TrialKey) -> Ended:
            lost = key.point >= 80
            result = as_it_is(key)
            return result._replace(dct_s=result.dct_s * (factor if lost else 1), lost=lost)

        return ended

    result = compare(most_lose_nothing(1.1), most_lose_nothing(1), points=100)
    dct = one(result, OFF)
    assert dct.verdict == "differs"
    differing = [(item.stratum, item.statistic) for item in dct.criteria if item.differs]
    assert ("met a loss", "mean") in differing
    # The slowest twenty met a loss: their 95th percentile is that of the whole.
    assert {item for item in differing if item[0] == "all"} == {("all", "tail")}
    assert result.met_a_loss == 40
    assert "where a packet was lost" in " ".join(agreement_in_words.sentences(result))


def test_a_zero_is_a_value(compare: Callable[..., Agreement]) -> None:
    result = compare(ends(dct_s=1.0), ends(1 / 3, dct_s=0.0), points=N)
    dct = one(result, OFF)
    assert (dct.n, dct.verdict) == (N, "differs")
    both = compare(ends(on_time=0.0), ends(on_time=0.0), points=N, metric=ON_TIME)
    assert one(both, OFF, ON_TIME).verdict == "agrees"
    assert one(both, XOR, ON_TIME, ratio=True).n == N


def test_emulated_messages_may_be_late_while_endpoints_waited_for_a_processor(
    compare: Callable[..., Agreement],
) -> None:
    def late(stalled_share: float) -> Run:
        def ended(key: TrialKey) -> Ended:
            result = as_it_is(key)
            return result._replace(on_time=0.97, stalled_s=stalled_share * result.dct_s)

        return ended

    verdicts = {
        share: one(compare(as_it_is, late(share), points=N, metric=ON_TIME), OFF, ON_TIME).verdict
        for share in (0.0, 0.02, 0.03)
    }
    assert verdicts == {0.0: "differs", 0.02: "differs", 0.03: "agrees"}
    # It excuses no virtual message that is late.
    other_way = compare(ends(on_time=0.97), lambda key: late(0.03)(key)._replace(on_time=1.0), metric=ON_TIME)
    assert one(other_way, OFF, ON_TIME).verdict == "differs"


def test_a_timeout_says_nothing_of_a_handshake(compare: Callable[..., Agreement]) -> None:
    def ended(key: TrialKey) -> Ended:
        return as_it_is(key)._replace(state="timeout" if key.point < 5 else "ok")

    result = compare(virtual=ended, points=N)
    assert one(result, OFF).n == N
    assert one(result, OFF, "client.handshake_s").n == N - 5
    assert one(result, OFF, "client.handshake_s").verdict == "agrees"
    assert one(result, OFF, "server.bytes_sent").verdict == "agrees"


def test_a_headline_says_how_many_more_would_decide(compare: Callable[..., Agreement]) -> None:
    def spread(key: TrialKey) -> Ended:
        result = as_it_is(key)
        factor = {0: 1.2, 1: 1 / 1.2}.get(key.point % 5, 1) if key.variant == XOR else 1
        return result._replace(dct_s=result.dct_s * factor)

    result = compare(virtual=spread, points=20)
    assert [item.verdict for item in result.comparisons].count("cannot tell") == 2
    assert result.verdict == "cannot tell"  # for the ratio is not known to 1 %
    assert result.more is not None
    (mean,) = result.pooled
    assert mean.more is not None and mean.more >= 80
    assert agreement_in_words.headline(result) == (
        "No disagreement found: 7 of 9 comparisons agree, for 2 the sample is too small"
        f" ({result.more} more would decide); to 1 %, cannot tell of 1 of 1 mean ratios"
        " (10 times the 20 groups of the design would not decide)."
    )
    sentences = agreement_in_words.sentences(result)
    assert "The design has 20 groups of a workload" in sentences[-1]
    assert any(item.startswith(f"{XOR} to {OFF}, download-10000: the mean ratio is ") for item in sentences)
    assert any("95th percentiles" in item for item in sentences)
    assert "(10 times the 0 groups of the design would not decide)" in agreement_in_words.headline(
        replace(result, groups=0)
    )


def test_a_hundred_trials_that_are_equal_agree_to_one_percent(compare: Callable[..., Agreement]) -> None:
    result = compare(points=100)
    assert result.verdict == "agrees"
    assert agreement_in_words.headline(result) == (
        "No disagreement found: all 9 comparisons agree; to 1 %, the mean ratio agrees."
    )
    few = compare(points=99)
    assert (few.verdict, few.more, few.more_to_one_percent) == ("cannot tell", 0, 1)
    assert agreement_in_words.headline(few) == (
        "No disagreement found: all 9 comparisons agree; to 1 %, cannot tell of 1 of 1 mean ratios"
        " (1 more would decide)."
    )


def test_a_mean_ratio_that_is_beyond_one_percent_differs(compare: Callable[..., Agreement]) -> None:
    def flattering(key: TrialKey) -> Ended:
        result = as_it_is(key)
        return result._replace(dct_s=result.dct_s * (0.98 if key.variant == XOR else 1))

    result = compare(virtual=flattering, points=100, size_bytes=50_000)
    assert result.count("differs") == 0
    assert result.verdict == "differs"
    assert agreement_in_words.headline(result) == (
        "Virtual and emulated differ: 1 of 1 mean ratios differ by more than 1 %."
    )


def test_high_losses_are_asked_by_themselves(compare: Callable[..., Agreement]) -> None:
    def run(factor: float) -> Run:
        def ended(key: TrialKey) -> Ended:
            result = as_it_is(key)
            worst = key.point % 10 == 0
            return result._replace(
                dct_s=result.dct_s * (factor if worst else 1), packets_lost=4 if worst else key.point % 2
            )

        return ended

    result = one(compare(run(0.9), run(1), points=200, size_bytes=50_000), OFF)
    (mean,) = (item for item in result.criteria if (item.stratum, item.statistic) == ("high losses", "mean"))
    assert (mean.n, mean.differs) == (20, True)
    assert mean.value == pytest.approx(math.log(0.9))


def test_a_tail_is_of_the_times_that_virtual_trials_took(compare: Callable[..., Agreement]) -> None:
    """The log ratio to a timeout tells no time."""

    def ends_of(slow_s: float, slow: range, timeouts: range) -> Run:
        return lambda key: as_it_is(key)._replace(
            dct_s=slow_s if key.point in slow else 10.0, state="timeout" if key.point in timeouts else "ok"
        )

    result = compare(ends_of(20, range(8), range(0)), ends_of(10, range(0), range(4)), points=100)
    tail = one(result, OFF).of("all", "tail")
    assert tail is not None and tail.value == pytest.approx(math.log(2))
    both = compare(ends_of(10, range(0), range(10)), ends_of(10, range(0), range(10, 20)), points=100)
    tail = one(both, OFF).of("all", "tail")
    assert tail is not None and tail.value == 0 and not math.isnan(tail.interval[0])


def test_scores_below_0_are_compared_and_have_no_ratio(compare: Callable[..., Agreement]) -> None:
    def scores(*values: float) -> Run:
        return lambda key: as_it_is(key)._replace(qoe=values[key.point % len(values)])

    for virtual, end in ((scores(-4.0, 1.0), -0.5), (scores(-2.0, -1.0), -1.0), (scores(-1.0, 1.0), 1.0)):
        result = compare(virtual, scores(-2.0, 1.0), points=N, metric=QOE)
        score = one(result, OFF, QOE)
        assert score.n == N and score.verdict == "differs"
        assert sorted([score.quantiles[0.05], score.quantiles[0.95]]) == pytest.approx(sorted([0.0, end]))
        assert not [item for item in result.comparisons if item.baseline] and not result.pooled
    assert one(compare(scores(-2.0), scores(-2.0), metric=QOE), OFF, QOE).verdict == "agrees"
