"""Laws of the verdict on a new build."""

import math
from dataclasses import replace

from hypothesis import assume, given
from hypothesis import strategies as st

from fecbench.results.gate.overall import Measured, Ratio
from fecbench.results.gate.verdict import is_settled, verdict_of

MARGIN = 0.02
OPPOSITE = {"faster": "slower", "slower": "faster"}

logs = st.floats(-0.5, 0.5)
widths = st.floats(0, 0.3)
ratios = st.builds(lambda log, width: Ratio(*map(math.exp, (log, log - width, log + width))), logs, widths)
several = st.dictionaries(st.sampled_from(["a", "b", "c"]), ratios, max_size=3)
measurements = st.builds(Measured, ratios, several, st.just(100))


def inverse(ratio: Ratio) -> Ratio:
    return Ratio(1 / ratio.value, 1 / ratio.high, 1 / ratio.low)


@given(ratios)
def test_exchanged_builds_have_the_opposite_verdict(ratio: Ratio) -> None:
    ends = {ratio.low, ratio.high}
    assume(all(abs(end - bound) > 1e-9 for end in ends for bound in (1 + MARGIN, 1 / (1 + MARGIN))))
    verdict = verdict_of(Measured(ratio, {}, 100), MARGIN)
    assert verdict_of(Measured(inverse(ratio), {}, 100), MARGIN) == OPPOSITE.get(verdict, verdict)


@given(measurements, st.floats(1e-6, 0.3), widths)
def test_another_workload_that_is_surely_slower_makes_any_verdict_slower(
    measured: Measured, above: float, width: float
) -> None:
    low = (1 + MARGIN) * math.exp(above)
    workload = Ratio(low * math.exp(width), low, low * math.exp(2 * width))
    with_it = replace(measured, workloads={**measured.workloads, "d": workload})
    assert verdict_of(with_it, MARGIN) == "slower"


@given(measurements, st.floats(0, 0.3))
def test_wider_intervals_decide_no_more(measured: Measured, more: float) -> None:
    def wider(ratio: Ratio) -> Ratio:
        return Ratio(ratio.value, ratio.low * math.exp(-more), ratio.high * math.exp(more))

    before = verdict_of(measured, MARGIN)
    workloads = {label: wider(ratio) for label, ratio in measured.workloads.items()}
    after = verdict_of(Measured(wider(measured.overall), workloads, 100), MARGIN)
    # A workload that was surely slower, or surely faster, may be unsure now; the overall ratio then speaks.
    if before == "undecided":
        assert after == "undecided"
    if after == "slower":
        assert before == "slower"


@given(measurements)
def test_nothing_is_slower_with_a_greater_margin_that_was_not_before(measured: Measured) -> None:
    if verdict_of(measured, 2 * MARGIN) == "slower":
        assert verdict_of(measured, MARGIN) == "slower"


@given(several)
def test_without_an_overall_interval_no_verdict_is_good(workloads: dict[str, Ratio]) -> None:
    measured = Measured(Ratio(1.0, math.nan, math.nan), workloads, 60)
    assert verdict_of(measured, MARGIN) in ("slower", "undecided")


SIDES: list[tuple[float, float, str]] = [
    (1.03, 1.1, "slower"),
    (0.9, 0.97, "faster"),
    (0.99, 1.01, "no difference that matters"),
    (0.99, 1.03, "undecided"),
    (0.97, 1.01, "undecided"),
    (1.01, 1.03, "undecided"),
]


def test_the_interval_is_held_against_the_margin_on_both_sides() -> None:
    for low, high, verdict in SIDES:
        assert verdict_of(Measured(Ratio(math.sqrt(low * high), low, high), {}, 100), MARGIN) == verdict, (
            low,
            high,
        )


@given(measurements)
def test_what_is_settled_has_a_verdict_and_no_workload_is_open_behind_an_equal_mean(
    measured: Measured,
) -> None:
    verdict = verdict_of(measured, MARGIN)
    if is_settled(measured, MARGIN):
        assert verdict != "undecided"
    if verdict == "no difference that matters" and is_settled(measured, MARGIN):
        alone = [verdict_of(Measured(ratio, {}, 1), MARGIN) for ratio in measured.workloads.values()]
        assert set(alone) <= {verdict}
