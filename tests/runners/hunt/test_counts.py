"""Numbers of hunts, counted anew from planted trials that fail, are invalid, or have values of 0."""

import dataclasses
import operator
from collections.abc import Callable

import pandas as pd
import pytest

from fecbench import designs
from fecbench.runners.hunt import hunt_answer as answers
from fecbench.runners.hunt.budget import budget
from fecbench.runners.hunt.estimates import Estimates
from fecbench.runners.hunt.hunt import Answer, hunt
from fecbench.runners.hunt.hunt_question import Question, Sought, question
from fecbench.runners.hunt.lookout import Look, Lookout
from fecbench.runners.hunt.measured import Measured
from fecbench.runners.hunt.search import start
from tests.runners.hunt.planted import ARM, Planted, design_text
from tests.support.designs import Table, between

STALLS, SHARE = "messages.rebuffering_s", "messages.on_time_ratio_50ms"
Rewrite = Callable[[pd.DataFrame], pd.DataFrame]


def question_by(
    statistic: str = "mean", sought: Sought = "harm", factors: Table | None = None, seed: int = 1
) -> Question:
    text = design_text(seed) if factors is None else design_text(seed, factors=factors)
    text = text.replace('statistic = "mean"', f'statistic = "{statistic}"')
    return question(designs.parse(text, "planted.toml"), ARM, "", sought)


@dataclasses.dataclass
class Rewritten:
    """A laboratory without harm, whose trials a test writes anew."""

    question: Question
    rewrite: Rewrite
    metric: str = "client.dct_s"

    def __post_init__(self) -> None:
        self.trials: list[pd.DataFrame] = []

    def __call__(self, look: Look) -> Measured:
        parts = []
        for part in Planted(self.question, lambda _: 1.0)(look)._parts:
            trials = self.rewrite(part.trials).rename(columns={"client.dct_s": self.metric})
            workloads = [{**item, "metric": self.metric} for item in part.campaign.workloads]
            campaign = dataclasses.replace(
                part.campaign, statistic=self.question.design.statistic, workloads=workloads
            )
            parts.append(dataclasses.replace(part, campaign=campaign, trials=trials))
            self.trials.append(trials)
        return Measured(self.question, len(look.networks), parts)

    def hunt(self, trials: int = 800) -> Answer:
        return hunt(self.question, budget(trials, self.question.repetitions), self)


def failing(trials: pd.DataFrame) -> pd.DataFrame:
    """Two of three repetitions of the arm fail, one of 20 of the baseline, and every fifth is invalid."""
    number, is_arm = trials["repetition"], trials["variant"] == ARM
    fails = (is_arm & (number % 3 > 0)) | (~is_arm & (number % 20 == 7))
    return trials.assign(state=trials["state"].mask(fails, "failed").mask(number % 5 == 4, "invalid"))


def test_an_arm_that_fails_more_often_is_found_where_both_fail_now_and_then() -> None:
    """Neither mean is a number there. As many pairs are told as were compared, and the pair is one of those
    in which the arm alone failed."""
    laboratory = Rewritten(question_by(), failing)
    answer = laboratory.hunt()
    assert answer.findings
    for finding in answer.findings:
        assert finding.by_failures and finding.repetitions == 32  # of 40
        states = [
            trials.set_index("id")["state"].reindex(list(finding.pair)).tolist()
            for trials in laboratory.trials
        ]
        assert ["ok", "failed"] in states


@pytest.mark.parametrize(
    ("metric", "sought"), [(STALLS, "gain"), (SHARE, "harm")], ids=["no stalls", "nothing on time"]
)
def test_a_value_of_0_is_no_failure(metric: str, sought: Sought) -> None:
    def zeros(trials: pd.DataFrame) -> pd.DataFrame:
        return trials.assign(**{"client.dct_s": (trials["variant"] != ARM) * 0.5})

    answer = Rewritten(question_by("median", sought), zeros, metric).hunt()
    assert answer.findings and not any(finding.by_failures for finding in answer.findings)
    lines = "\n".join(answers.lines(answer, []))
    assert "0.000 times (0.000 to 0.000, 40 repetitions)" in lines and "fails" not in lines


def test_no_finding_has_a_greater_margin_than_is_told() -> None:
    """Virtual time vouches for shares by 0.5 points, and few messages are on time in uploads alone."""

    def shares(trials: pd.DataFrame) -> pd.DataFrame:
        share = 0.02 if trials["workload"].iloc[0] == "upload" else 0.5
        return trials.assign(**{"client.dct_s": share * (1 - 0.9 * (trials["variant"] == ARM))})

    answer = Rewritten(question_by("median"), shares, SHARE).hunt()
    margins = {finding.network.workload: finding.margin for finding in answer.findings}
    assert margins["upload"] == pytest.approx(0.25)
    answer = dataclasses.replace(answer, share=dataclasses.replace(answer.share, margin=0.02))
    assert "margin 25 % at most" in "\n".join(answers.lines(answer, []))


def test_the_share_of_the_space_counts_a_whole_number_as_often_as_it_is_there() -> None:
    """A size of 1 byte is 43 % of a logarithmic axis from 1 to 4, and one of its four sizes."""
    asking = question_by(factors={"workload.size_bytes": between(1, 4, scale="log", integer=True)})
    spent = budget(20_000, asking.repetitions)
    laboratory = Planted(
        asking, lambda network: 2.0 if int(network.point["workload.size_bytes"]) < 2 else 1.0
    )
    share = start(asking, Lookout(laboratory, spent), spent, Estimates(asking.space))
    sequence = asking.space.spread(spent.start_networks, 0, asking.seed("networks"))
    is_harmed = [int(network.point["workload.size_bytes"]) < 2 for network in sequence]
    is_lossless = [network.point["losses"] == "none" for network in sequence]
    assert share.networks == len(sequence) == spent.start_networks
    assert share.harmed >= sum(map(operator.and_, is_harmed, is_lossless))
    assert share.harmed + share.open >= sum(is_harmed)
    assert len(sequence) - share.harmed - share.open >= sum(map(operator.lt, is_harmed, is_lossless))
    assert share.interval[0] < 0.43 < share.interval[1]


@pytest.mark.parametrize(("factor", "verdict"), [(2.0, "found"), (1.0, "nothing")])
def test_a_space_whose_networks_all_are_in_the_start_is_hunted_to_the_end(
    factor: float, verdict: str
) -> None:
    asking = question_by(factors={"workload.size_bytes": between(1, 2, scale="log", integer=True)})
    laboratory = Planted(asking, lambda _: factor)
    assert hunt(asking, budget(20_000, asking.repetitions), laboratory).verdict == verdict


@pytest.mark.parametrize("networks", [60, 500])
def test_a_median_has_an_interval_where_many_networks_share_the_error(networks: int) -> None:
    """A large hunt that could never confirm anything would say that nothing was found."""
    asking = question_by("median")
    few = asking.space.spread(4, 0, 1)
    measured = Rewritten(asking, lambda trials: trials)(Look(0, "confirm", few, asking.repetitions))
    judged = measured.judged(0.05 / networks)
    assert (judged.low <= 1).all() and (judged.high >= 1).all()
