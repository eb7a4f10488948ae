"""Laws of the verdict on a new build."""

import math
from dataclasses import replace

from hypothesis import assume, given
from hypothesis import strategies as st

from fecbench.results.gate.failing import Failed
from fecbench.results.gate.networks import Slower
from fecbench.results.gate.overall import Ratio
from fecbench.results.gate.verdict import Margins, Measured, is_settled, verdict_of

MARGIN = 0.02
MARGINS = Margins(overall=MARGIN, tail=0.05)
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
    verdict = verdict_of(Measured(ratio, {}, 100), MARGINS)
    assert verdict_of(Measured(inverse(ratio), {}, 100), MARGINS) == OPPOSITE.get(verdict, verdict)


@given(measurements, st.floats(1e-6, 0.3), widths)
def test_another_workload_that_is_surely_slower_makes_any_verdict_slower(
    measured: Measured, above: float, width: float
) -> None:
    low = (1 + MARGIN) * math.exp(above)
    workload = Ratio(low * math.exp(width), low, low * math.exp(2 * width))
    with_it = replace(measured, workloads={**measured.workloads, "d": workload})
    assert verdict_of(with_it, MARGINS) == "slower"


@given(measurements, st.floats(0, 0.3))
def test_wider_intervals_decide_no_more(measured: Measured, more: float) -> None:
    def wider(ratio: Ratio) -> Ratio:
        return Ratio(ratio.value, ratio.low * math.exp(-more), ratio.high * math.exp(more))

    before = verdict_of(measured, MARGINS)
    workloads = {label: wider(ratio) for label, ratio in measured.workloads.items()}
    after = verdict_of(Measured(wider(measured.overall), workloads, 100), MARGINS)
    # A workload that was surely slower, or surely faster, may be unsure now; the overall ratio then speaks.
    if before == "undecided":
        assert after == "undecided"
    if after == "slower":
        assert before == "slower"


@given(measurements)
def test_nothing_is_slower_with_a_greater_margin_that_was_not_before(measured: Measured) -> None:
    if verdict_of(measured, Margins(2 * MARGIN, 0.05)) == "slower":
        assert verdict_of(measured, MARGINS) == "slower"


@given(several)
def test_without_an_overall_interval_no_verdict_is_good(workloads: dict[str, Ratio]) -> None:
    measured = Measured(Ratio(1.0, math.nan, math.nan), workloads, 60)
    assert verdict_of(measured, MARGINS) in ("slower", "undecided")


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
        assert verdict_of(Measured(Ratio(math.sqrt(low * high), low, high), {}, 100), MARGINS) == verdict, (
            low,
            high,
        )


@given(measurements)
def test_no_verdict_is_good_while_a_workload_or_the_mean_may_be_above_the_margin(measured: Measured) -> None:
    may_be_slower = any(ratio.at_most > 1 + MARGIN for ratio in measured.ratios.values())
    verdict = verdict_of(measured, MARGINS)
    if may_be_slower:
        assert verdict in ("slower", "undecided")
    if verdict == "no difference that matters":
        ratios = (measured.overall, *measured.workloads.values())
        assert all(1 / (1 + MARGIN) <= ratio.at_least <= ratio.at_most <= 1 + MARGIN for ratio in ratios)


@given(measurements)
def test_what_is_settled_has_a_verdict(measured: Measured) -> None:
    for deterministic in (True, False):
        if is_settled(measured, MARGINS, deterministic):
            assert verdict_of(measured, MARGINS) != "undecided"


EQUAL = Measured(Ratio(1, 0.995, 1.005), {}, 100)
HIGH = Ratio(1.2, 1.1, 1.3)
SOME = Failed(both=3, run=100)


def test_what_else_was_measured_changes_a_good_verdict() -> None:
    for also, verdict in (
        ({"tail": HIGH}, "slower"),
        ({"mean": HIGH}, "slower"),
        ({"mean": Ratio(1.01, 0.9, 1.1)}, "undecided"),
        ({"networks": Slower((7,), suspected=False)}, "slower"),
        ({"fails": True, "networks": Slower((7,), suspected=False)}, "fails"),
        ({"may_fail": True}, "undecided"),
        ({"unseen": 1}, "undecided"),
        ({"unseen": 1, "tail": HIGH}, "slower"),
        ({"lost": 0.051}, "undecided"),
        ({"lost": 0.05}, "no difference that matters"),
        ({"lost": 0.06, "tail": HIGH}, "undecided"),
        ({"unlike": "the arms differ", "tail": HIGH}, "undecided"),
        ({"tail": Ratio(1.04, 1.03, 1.05)}, "no difference that matters"),
    ):
        assert verdict_of(replace(EQUAL, failed=SOME, **also), MARGINS) == verdict, also  # type: ignore[arg-type]


def test_a_suspected_network_is_looked_at_once_more() -> None:
    suspected = replace(EQUAL, networks=Slower((), suspected=True))
    assert verdict_of(suspected, MARGINS) == "no difference that matters"
    assert is_settled(EQUAL, MARGINS, deterministic=True)
    assert not is_settled(suspected, MARGINS, deterministic=True)


def test_only_where_each_trial_would_fail_again_a_campaign_ends_without_any_pair() -> None:
    nothing = Measured(Ratio(math.nan, math.nan, math.nan), {}, 0, failed=Failed(both=36, run=36), lost=1.0)
    assert verdict_of(nothing, MARGINS) == "undecided"
    assert is_settled(nothing, MARGINS, deterministic=True)
    assert not is_settled(nothing, MARGINS, deterministic=False)
