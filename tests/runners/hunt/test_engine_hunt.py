"""Hunts for disagreement of the two engines whose truth is known: it is planted, and no trial is run."""

import math
from collections.abc import Callable

import numpy as np
import pytest

from fecbench.results.analysis.twins import Twins
from fecbench.results.store.records import TrialKey
from fecbench.runners.hunt import hunt_answer as answers
from fecbench.runners.hunt.budget import EMULATED_TRIALS as TRIALS
from fecbench.runners.hunt.disagreement import Disagreements, pairs_of, row
from fecbench.runners.hunt.engine_hunt import check_trials, fewest_trials, hunt_engines, screen
from fecbench.runners.hunt.engine_question import LONGEST_S
from fecbench.runners.hunt.hunt import Answer
from fecbench.runners.hunt.lookout import Look, TimeIsOver
from fecbench.runners.hunt.sensitivity import sensitivity
from fecbench.runners.hunt.space import Network
from fecbench.runners.refusal import Refusal
from tests.results.analysis.twin_campaigns import ON_TIME, Ended, record
from tests.runners.hunt import harms
from tests.runners.hunt.planted import Effect
from tests.runners.hunt.planted_engines import TOLERANCE, PlantedEngines, nothing, question_with_seed


def planted(effect: Effect = nothing, seed: int = 1, **more: Effect) -> PlantedEngines:
    return PlantedEngines(question_with_seed(seed), effect, **more)


def answer_of(laboratory: PlantedEngines, trials: int = TRIALS) -> Answer:
    question = laboratory.question
    return hunt_engines(question, trials, screen(question, trials, laboratory), laboratory)


@pytest.mark.parametrize("seed", range(3))
def test_a_disagreement_in_a_fiftieth_of_the_space_is_found_where_virtual_trials_are_sensitive(
    seed: int,
) -> None:
    effect = harms.size(0.02)
    answer = answer_of(planted(effect, seed, sensitive=lambda network: 1.05 * effect(network)))
    assert answer.verdict == "found"
    for finding in answer.findings:
        assert effect(finding.network) == effect(finding.shrunk_from) == harms.HARM
        assert finding.interval[0] <= harms.HARM <= finding.interval[1]


def test_a_faster_emulation_disagrees_as_well() -> None:
    effect = harms.size(0.02)
    answer = answer_of(planted(lambda network: 1 / effect(network), sensitive=effect))
    assert answer.verdict == "found"
    assert all(finding.ratio == pytest.approx(1 / harms.HARM, rel=0.02) for finding in answer.findings)


def test_what_no_virtual_trial_is_sensitive_to_is_found_where_there_is_much_of_it() -> None:
    """A share of the emulated trials is spread evenly."""
    answer = answer_of(planted(lambda network: 1.2 if network.workload == "upload" else 1.0))
    assert answer.verdict == "found"
    assert all(finding.network.workload == "upload" for finding in answer.findings)


@pytest.mark.parametrize("seed", range(10))
def test_where_nothing_is_planted_nothing_is_found(seed: int) -> None:
    """Though a network may be sensitive, and trials under losses are far off by chance."""
    answer = answer_of(planted(seed=seed, sensitive=harms.size(0.1)))
    assert answer.verdict == "nothing" and not answer.findings


def test_the_share_of_the_space_excludes_networks_in_which_all_pairs_agree() -> None:
    """Six pairs decide of one network alone: where several share the error, each has more."""
    for trials in (120, TRIALS, 1000):
        share = answer_of(planted(), trials).share
        assert share is not None and share.harmed == 0
        assert share.open < share.networks, trials


def test_what_virtual_time_vouches_for_is_no_finding() -> None:
    answer = answer_of(planted(lambda _: math.exp(TOLERANCE / 2)))
    assert answer.verdict == "nothing"
    assert answer.share is not None and answer.share.harmed == 0


def test_a_finding_rests_on_a_look_that_did_not_choose_it_and_none_is_above_the_budget() -> None:
    effect = harms.size(0.1)
    for trials in (fewest_trials(), TRIALS, 1000):
        laboratory = planted(effect, sensitive=effect)
        answer = answer_of(laboratory, trials)
        emulated = sum(len(look.networks) * look.repetitions for look in laboratory.looks)
        assert answer.looked == emulated <= trials
        assert [look.number for look in laboratory.looks] == list(range(len(laboratory.looks)))
        confirming = [look for look in laboratory.looks if look.name.startswith("confirm")]
        assert answer.findings
        for finding in answer.findings:
            assert any(
                finding.network in look.networks and finding.repetitions == look.repetitions
                for look in confirming
            )


def test_with_more_trials_a_finding_is_plainer_and_with_few_it_says_that_it_is_not() -> None:
    def everywhere(_: Network) -> float:
        return 1.3

    few = answer_of(planted(everywhere), fewest_trials())
    assert any("shrunk only as far as the trials went" in line for line in few.remarks)
    plainest = [finding.network for finding in answer_of(planted(everywhere), 4000).findings]
    assert any(
        (network.workload, network.point["losses"], network.point["variant"]) == ("download", "none", "old")
        and network.point["queue_bdp"] == 1.5
        for network in plainest
    )


def test_networks_that_last_too_long_are_not_emulated_and_may_be_anything() -> None:
    def lasts_s(network: Network) -> float:
        return LONGEST_S * (2 if network.workload == "upload" else 0.1)

    laboratory = planted(lasts_s=lasts_s)
    answer = answer_of(laboratory)
    started = laboratory.looks[0].networks
    assert all(network.workload == "download" for network in started)
    assert answer.share is not None and answer.share.networks > len(started)
    assert answer.share.open >= answer.share.networks - len(started)
    assert answer.share.interval[1] > 0.5
    assert any("last longer than 5 s" in line for line in answers.lines(answer, []))
    assert answer_of(planted(lasts_s=lambda _: math.nan)).verdict == "no answer"


def test_pairs_that_cannot_be_compared_are_no_answer() -> None:
    laboratory = planted(lambda _: 2.0)

    def all_invalid(look: Look) -> Disagreements:
        return Disagreements(len(look.networks), pairs_of([]), len(look.networks) * look.repetitions)

    all_invalid.screen = laboratory.screen  # type: ignore[attr-defined]
    question = laboratory.question
    answer = hunt_engines(question, TRIALS, screen(question, TRIALS, laboratory), all_invalid)  # type: ignore[arg-type]
    assert answer.verdict == "no answer" and answer.looked > 0


def test_where_time_is_over_nothing_is_called_absent() -> None:
    laboratory = planted()

    def until_scan(look: Look) -> Disagreements:
        if look.name == "scan":
            raise TimeIsOver
        return laboratory(look)

    question = laboratory.question
    answer = hunt_engines(question, TRIALS, screen(question, TRIALS, laboratory), until_scan)  # type: ignore[arg-type]
    assert answer.verdict == "no answer" and answer.share is not None


def test_too_few_trials_for_one_confirmation_are_refused_in_one_line() -> None:
    check_trials(fewest_trials())
    with pytest.raises(Refusal, match=r"--trials 79: .* must be 80 or more"):
        check_trials(fewest_trials() - 1)


def judged_row(
    virtual: Ended, emulated: Ended, metric: str = "client.dct_s"
) -> tuple[float, float, float, int, int] | None:
    key = TrialKey("off", "download-10000", 0, 0)
    runs = [record(key, result, 10_000, 50.0, b"\x01") for result in (virtual, emulated)]
    return row(Twins(*runs), metric, (1, 2))


def test_a_pair_has_the_tolerance_of_its_round_trip_and_of_what_its_endpoints_were_kept_from() -> None:
    """Emulated endpoints take time of a processor: a time may be longer by 0.7 % and 2.4 ms of a round trip,
    which is 100 ms here."""
    pair = judged_row(Ended("ok", 0.3, 0.1), Ended("ok", 0.33, 0.1))
    assert pair is not None
    log, low, high, *ids = pair
    assert log == pytest.approx(math.log(1.1)) and ids == [1, 2]
    assert low == pytest.approx(-math.log1p(0.01))
    assert high == pytest.approx(-math.log(1 - 0.007 - 0.024))
    stalled = judged_row(Ended("ok", 0.3, 0.1), Ended("ok", 0.33, 0.1, stalled_s=0.033))
    assert stalled is not None and stalled[2] == pytest.approx(-math.log(1 - 0.007 - 0.024 - 0.1))


def test_an_invalid_trial_is_in_no_pair_and_one_that_came_to_no_end_is_infinitely_far() -> None:
    ok = Ended("ok", 0.3, 0.1)
    for invalid in ((ok._replace(state="invalid"), ok), (ok, ok._replace(state="invalid"))):
        assert judged_row(*invalid) is None
    for state in ("failed", "timeout"):
        worse, better = judged_row(ok, ok._replace(state=state)), judged_row(ok._replace(state=state), ok)
        assert worse is not None and worse[0] == math.inf
        assert better is not None and better[0] == -math.inf
        assert judged_row(*[ok._replace(state=state)] * 2) is None


def test_a_share_may_be_half_a_point_off() -> None:
    pair = judged_row(Ended("ok", 0.3, 0.1, 0.8), Ended("ok", 0.3, 0.1, 0.7), ON_TIME)
    assert pair is not None and pair[0] == pytest.approx(math.log(0.7 / 0.8))
    assert pair[1] == -pair[2] == pytest.approx(-math.log1p(0.005 / 0.8))
    none = judged_row(Ended("ok", 0.3, 0.1, 0.0), Ended("ok", 0.3, 0.1, 0.01), ON_TIME)
    assert none is not None and none[0] == 0


Rows = Callable[[list[float]], Disagreements]


@pytest.fixture
def of_logs() -> Rows:
    def of_logs(logs: list[float]) -> Disagreements:
        rows = [(0, log, -0.03, 0.03, place, 100 + place) for place, log in enumerate(logs)]
        return Disagreements(1, pairs_of(rows), len(rows))

    return of_logs


def test_a_network_disagrees_by_the_sign_test(of_logs: Rows) -> None:
    """Ten pairs all on one side have a chance of 2 in 1024; nine of ten have 22 in 1024."""
    all_beyond, but_one = of_logs([0.1] * 10), of_logs([0.1] * 9 + [0.0])
    assert all_beyond.judged(0.002).is_sure[0] and not all_beyond.judged(0.0019).is_sure[0]
    assert but_one.judged(0.022).is_sure[0] and not but_one.judged(0.021).is_sure[0]
    both_ways = of_logs([0.1, -0.1] * 5).judged(0.05)
    assert not both_ways.is_sure[0] and both_ways.is_open[0]
    assert not of_logs([0.1] * 5).judged(0.05).is_sure[0]


def test_where_one_engine_alone_fails_the_ratio_is_infinite(of_logs: Rows) -> None:
    judged = of_logs([math.inf] * 10).judged(0.05)
    assert judged.is_sure[0] and judged.ratio[0] == judged.low[0] == math.inf
    assert of_logs([math.inf] * 10).pair(0, math.inf) == (0, 100)
    assert of_logs([0.0, 0.1, 0.2]).pair(0, math.exp(0.1)) == (1, 101)


def test_a_network_is_sensitive_beyond_what_a_time_may_be_off_by() -> None:
    """A run without a result says nothing, and a timeout that a little time makes is the most there is."""
    round_trips_s = np.array([0.1, 0.1, 0.1, 0.1])
    values = [np.ones(4), np.array([1.5, 1.0, math.nan, math.inf]), np.array([1.0, 1.0, 1.0, 1.0])]
    moved, still, unknown, timed_out = sensitivity(round_trips_s, values)
    assert moved == pytest.approx(math.log(1.5) + math.log1p(-0.031))
    assert still == unknown < 0
    assert timed_out == pytest.approx(math.log(10) + math.log1p(-0.031))
    assert np.isnan(sensitivity(round_trips_s, [np.full(4, np.inf), np.ones(4)])).all()
