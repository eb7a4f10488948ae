"""Hunts for harm whose truth is known: it is planted, and no trial is run."""

import dataclasses
import math
from functools import cache

import pytest

from fecbench.runners.hunt.budget import budget
from fecbench.runners.hunt.estimates import Estimates
from fecbench.runners.hunt.hunt import Answer, hunt
from fecbench.runners.hunt.hunt_question import question
from fecbench.runners.hunt.lookout import Look, Lookout, TimeIsOver
from fecbench.runners.hunt.measured import Measured
from fecbench.runners.hunt.search import Share, start
from fecbench.runners.hunt.space import Network
from fecbench.runners.refusal import Refusal
from tests.runners.hunt import harms
from tests.runners.hunt.planted import Effect, Planted, design, question_with_seed

TRIALS = 5_000


def nowhere(_: Network) -> float:
    return 1.0


class Recording:
    """A laboratory that notes the looks."""

    def __init__(self, planted: Planted) -> None:
        self._planted = planted
        self.looks: list[Look] = []

    def __call__(self, look: Look) -> Measured:
        self.looks.append(look)
        return self._planted(look)


def answer_of(effect: Effect, seed: int = 1, trials: int = TRIALS, sought: str = "harm") -> Answer:
    return hunt_and_looks(effect, seed, trials, sought)[0]


def hunt_and_looks(
    effect: Effect, seed: int = 1, trials: int = TRIALS, sought: str = "harm"
) -> tuple[Answer, list[Look]]:
    """Return the answer of a hunt, and its looks."""
    asking = question_with_seed(seed, sought)  # type: ignore[arg-type]
    laboratory = Recording(Planted(asking, effect))
    return hunt(asking, budget(trials, asking.repetitions), laboratory), laboratory.looks


@cache
def hunt_for(kind: str, width: float) -> tuple[Answer, list[Look]]:
    """Return a hunt for harm of this kind, which several tests look at."""
    return hunt_and_looks(harms.KINDS[kind](width))


@pytest.mark.parametrize("kind", harms.KINDS)
def test_each_kind_of_harm_has_the_share_that_it_is_planted_in(kind: str) -> None:
    for width in (0.01, 0.001):
        share = harms.share(harms.KINDS[kind](width))
        assert share == pytest.approx(width, rel=0.35)


@pytest.mark.parametrize("kind", harms.KINDS)
def test_harm_in_a_hundredth_of_the_space_is_found_where_it_is(kind: str) -> None:
    effect = harms.KINDS[kind](0.01)
    answer, _ = hunt_for(kind, 0.01)
    assert answer.verdict == "found"
    for finding in answer.findings:
        truth = effect(finding.network)
        assert truth > 1, finding
        assert finding.interval[0] <= truth <= finding.interval[1]
        assert effect(finding.shrunk_from) > 1


def test_gain_is_found_as_harm_is() -> None:
    in_box = harms.box(0.01)
    answer = answer_of(lambda network: 1 / in_box(network), sought="gain")
    assert answer.verdict == "found"
    assert all(in_box(finding.network) > 1 and finding.ratio < 1 for finding in answer.findings)
    assert answer_of(in_box, sought="gain").verdict == "nothing"


@pytest.mark.parametrize("seed", range(3))
def test_where_nothing_is_planted_nothing_is_found(seed: int) -> None:
    answer = answer_of(nowhere, seed)
    assert answer.verdict == "nothing" and not answer.findings


def test_a_difference_within_the_margin_is_no_finding() -> None:
    answer = answer_of(lambda _: 1.015)
    assert answer.verdict == "nothing" and answer.share is not None and answer.share.harmed == 0


def test_what_is_everywhere_is_shrunk_to_the_plainest_network() -> None:
    """The region around it is all harmed, and so is the whole space."""
    answer = answer_of(lambda _: 1.3)
    plainest = answer.findings[0].network
    assert plainest.workload == "download"
    assert plainest.point["losses"] == "none"
    assert plainest.point["option.congestion_control"] == "cubic"
    assert plainest.point["queue_bdp"] == 1.5
    box = answer.findings[0].box
    assert box is not None and box.harmed > 0.5


@pytest.mark.parametrize("seed", range(8))
def test_the_share_of_the_space_holds_the_truth(seed: int) -> None:
    """A single wrongly excluded network would be enough to miss the whole space."""
    asking = question_with_seed(seed)
    spent = budget(TRIALS, asking.repetitions)

    def share_of(effect: Effect) -> Share:
        lookout = Lookout(Planted(asking, effect), spent)
        return start(asking, lookout, spent, Estimates(asking.space))

    everywhere = share_of(lambda _: 1.3)
    assert everywhere.interval[0] > 0.2 and everywhere.interval[1] == 1
    none = share_of(nowhere)
    assert none.harmed == 0 and none.interval[0] == 0


def test_the_same_hunt_twice_is_the_same_to_the_digit() -> None:
    answer, _ = hunt_for("under losses", 0.01)
    effect = harms.under_losses(0.01)
    assert answer == answer_of(effect)
    assert answer != answer_of(effect, seed=2)


def test_a_hunt_runs_no_more_trials_than_it_may_and_tells_how_many() -> None:
    hunts = {trials: hunt_and_looks(harms.box(0.05), trials=trials) for trials in (800, 1_999)}
    for trials, (answer, looks) in {**hunts, TRIALS: hunt_for("box", 0.05)}.items():
        ran = sum(2 * len(look.networks) * look.repetitions for look in looks)
        assert answer.looked == ran <= trials


def test_every_look_has_its_own_number_and_each_network_once() -> None:
    _, looks = hunt_for("box", 0.05)
    assert [look.number for look in looks] == list(range(len(looks)))
    for look in looks:
        assert len(set(look.networks)) == len(look.networks) > 0


def test_a_finding_rests_on_a_look_that_did_not_choose_it() -> None:
    """The interval uses all repetitions of a look of confirmation, and none before."""
    answer, looks = hunt_for("under losses", 0.01)
    confirming = [look for look in looks if look.name.startswith("confirm")]
    for finding in answer.findings:
        assert finding.repetitions == question_with_seed(1).repetitions
        assert any(finding.network in look.networks for look in confirming)


def test_too_few_trials_for_one_confirmation_are_refused_in_one_line() -> None:
    repetitions = question_with_seed(1).repetitions
    fewest = 2 * 10 * repetitions
    assert budget(fewest, repetitions).confirmed_networks == 1
    with pytest.raises(Refusal, match=f"--trials {fewest - 2}: .* must be {fewest} or more"):
        budget(fewest - 2, repetitions)


REFUSED = [
    ("newer", "", "--arm newer: has no such variant"),
    ("new", "odl", "--against odl: has no such variant"),
    ("new", "new", "--arm and --against are both 'new'"),
    ("old", "", "--arm and --against are both 'old'"),
]


@pytest.mark.parametrize(("arm", "against", "line"), REFUSED)
def test_a_wrong_arm_is_refused_in_one_line(arm: str, against: str, line: str) -> None:
    with pytest.raises(Refusal) as refusal:
        question(design(1), arm, against, "harm")
    assert line in str(refusal.value) and "\n" not in str(refusal.value)


def test_trials_that_have_no_result_are_no_answer() -> None:
    """If all trials are invalid, neither harm nor its absence was seen."""
    asking = question_with_seed(1)
    planted = Planted(asking, harms.box(0.05))

    def all_invalid(look: Look) -> Measured:
        measured = planted(look)
        parts = [
            dataclasses.replace(part, trials=part.trials.assign(state="invalid")) for part in measured._parts
        ]
        return Measured(asking, len(look.networks), parts)

    answer = hunt(asking, budget(TRIALS, asking.repetitions), all_invalid)
    assert answer.verdict == "no answer" and answer.share.networks == 0


def test_networks_in_which_both_arms_fail_may_be_harmed() -> None:
    asking = question_with_seed(1)
    planted, spent = Planted(asking, nowhere), budget(TRIALS, asking.repetitions)
    uploads = 0

    def failing(look: Look) -> Measured:
        nonlocal uploads
        parts = planted(look)._parts
        parts = [
            dataclasses.replace(part, trials=part.trials.assign(state="timeout"))
            if part.campaign.workloads[0]["label"] == "upload"
            else part
            for part in parts
        ]
        uploads = sum(network.workload == "upload" for network in look.networks)
        return Measured(asking, len(look.networks), parts)

    share = start(asking, Lookout(failing, spent), spent, Estimates(asking.space))
    assert share.networks > share.open >= uploads > 10
    assert share.networks == spent.start_networks


def test_a_failure_is_harm() -> None:
    """A trial that fails counts as worse than any that ends, as in every comparison."""
    asking = question_with_seed(1)
    in_box = harms.box(0.02)
    planted = Planted(asking, nowhere)

    def failing(look: Look) -> Measured:
        measured = planted(look)
        parts = []
        for part in measured._parts:
            of_points = [in_box(look.networks[place]) > 1 for place in part.places]
            fails = part.trials["point"].map(dict(enumerate(of_points))) & (part.trials["variant"] == "new")
            parts.append(
                dataclasses.replace(
                    part, trials=part.trials.assign(state=part.trials["state"].mask(fails, "failed"))
                )
            )
        return Measured(asking, len(look.networks), parts)

    answer = hunt(asking, budget(TRIALS, asking.repetitions), failing)
    assert answer.verdict == "found"
    assert all(in_box(finding.network) > 1 and math.isinf(finding.ratio) for finding in answer.findings)


def test_a_finding_keeps_most_of_its_effect_while_it_is_shrunk() -> None:
    """A plainer network with less of it would be another finding."""

    def effect(network: Network) -> float:
        return 1.5 if network.point["option.congestion_control"] == "bbr3" else 1.12

    worst = answer_of(effect).findings[0]
    assert worst.network.point["option.congestion_control"] == "bbr3"
    assert worst.network.point["losses"] == "none" and worst.network.workload == "download"
    assert worst.ratio == pytest.approx(1.5, rel=0.01)


def test_where_time_is_over_what_was_known_is_told() -> None:
    """The absence of harm is never claimed unconfirmed; confirmed harm stays."""
    asking = question_with_seed(1)
    planted = Planted(asking, harms.box(0.05))
    names: list[str] = []

    def until(last: str) -> Answer:
        def laboratory(look: Look) -> Measured:
            if look.name == last:
                raise TimeIsOver
            names.append(look.name)
            return planted(look)

        return hunt(asking, budget(TRIALS, asking.repetitions), laboratory)

    at_once, early, late = until("start"), until("search-2"), until("shrink-1")
    assert at_once.share is None and at_once.verdict == "no answer"
    assert early.share is not None and early.verdict == "no answer"
    assert late.verdict == "found" and not late.is_whole
    assert all(finding.network == finding.shrunk_from for finding in late.findings)
