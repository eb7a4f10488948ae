"""A campaign whose first ten trials all fail for one reason ends there, and names the reason."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, get_args

import pytest

from fecbench.results.store.records import State
from fecbench.runners.campaign.first_trials import COUNT, AllAlike, FirstTrials
from fecbench.runners.tasks.outcome import Outcome
from fecbench.runners.trial.judge import Judgement
from tests.runners.conftest import WriteDesign
from tests.runners.engines.conftest import HERE

REASON = "server ended with 1: {0}x: open /tmp/fecbench-{0}/a.pem: permission denied"


def failed(number: int, reason: str = REASON) -> Judgement:
    return Judgement("failed", reason.format(number))


def ends_after(
    judgements: Sequence[Judgement], outcome: Outcome | None = None, *, of_endpoints: bool = True
) -> int | None:
    """Return the number of these trials after which a campaign ends; None: it does not."""
    first = FirstTrials("x", of_endpoints=of_endpoints)
    for number, judgement in enumerate(judgements, 1):
        try:
            first.add(judgement, outcome or Outcome())
        except AllAlike:
            return number
    return None


def test_ten_that_fail_alike_are_enough_whatever_numbers_and_paths_their_reason_has() -> None:
    assert ends_after([failed(number) for number in range(30)]) == COUNT == 10


@pytest.mark.parametrize("place", range(COUNT))
@pytest.mark.parametrize(
    "other",
    [Judgement("ok", ""), Judgement("timeout", REASON), failed(1, "client ended with 1: it has no server")],
    ids=["ok", "timeout", "another reason"],
)
def test_one_other_trial_among_the_first_ten_lets_the_campaign_go_on(place: int, other: Judgement) -> None:
    judgements = [failed(number) for number in range(30)]
    judgements[place] = other
    assert ends_after(judgements) is None


@pytest.mark.parametrize("state", get_args(State))
def test_a_result_of_the_network_ends_nothing(state: State) -> None:
    reason = "" if state == "ok" else "the same"
    result = ends_after([Judgement(state, reason)] * 30)
    assert result == (10 if state in ("failed", "unsupported") else None)


def test_failures_of_endpoints_may_be_results_and_those_of_the_harness_never_are() -> None:
    assert ends_after([failed(1)] * 30, of_endpoints=False) is None
    of_harness = Outcome(failure="the same")
    assert ends_after([Judgement("invalid", "the same")] * 30, of_harness, of_endpoints=False) == COUNT


def test_a_campaign_ends_and_goes_on_where_it_is_told_to(
    made_up: WriteDesign, fecbench_here: Callable[..., Any], tmp_path: Path
) -> None:
    design = made_up("refuses", good={"options": {"manner": "refuses"}})
    words = ("run", design, "--engine", "virtual", "--db", tmp_path / "x.sqlite", "--implementations", HERE)
    options = ("--no-calibrate", "--jobs", 1)
    result = fecbench_here(*words, *options)
    assert (result.returncode, result.stdout) == (1, "")
    line = result.stderr.splitlines()[-1]
    assert "its first 10 trials are all failed for one reason, so no other was run: the simulator: " in line
    assert "--retry failed" in line
    assert "--keep-going" in line

    def states() -> list[str]:
        output = fecbench_here("show", "--db", tmp_path / "x.sqlite", "--json")
        return [trial["state"] for trial in json.loads(output.stdout)["trials"]]

    assert states() == ["failed"] * 10  # what was run is kept
    went_on = fecbench_here(*words, *options, "--keep-going")
    assert went_on.returncode == 1
    assert states() == ["failed"] * 12
