"""Campaigns that run until their results decide: each point has as many repetitions as it needs, and no more,
however the campaign was interrupted and whoever ran it."""

import dataclasses
import random
import sqlite3
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fecbench import designs
from fecbench.results import reading
from fecbench.results.analysis import deciding
from fecbench.results.store.database import Database
from fecbench.results.store.records import CampaignInfo, TrialKey
from fecbench.runners.campaign import share
from fecbench.runners.campaign.against_itself import against_itself
from fecbench.runners.campaign.crosscheck import sample
from fecbench.runners.campaign.order import trial_keys
from fecbench.runners.campaign.request import Request
from fecbench.runners.tasks.outcome import EndpointOutcome
from tests.results.conftest import postgresql, postgresql_folder  # noqa: F401 - fixtures
from tests.runners.campaign.conftest import Pretence, Run, Told
from tests.support.campaigns import only_campaign
from tests.support.designs import LITTLE, between, variant
from tests.support.experiments import experiment_of
from tests.support.together import run_together

OFF, ON = "off", "xor, 4/5"
SAME, FASTER, SLOWER, NOISE, TIMEOUT = range(5)
"""The points; the second variant is just as fast at the first one, and so on."""
LOOKS = (25, 50, 100)
ENDS = {
    SAME: (100, "decided", "equivalent"),
    FASTER: (25, "decided", "gain"),
    SLOWER: (50, "decided", "harm"),
    NOISE: (100, "most repetitions", "undecided"),
    TIMEOUT: (25, "no interval", "undecided"),
}
DESIGN = {
    "until": "decided",
    "statistic": "mean",
    "repetitions": 100,
    "plan": {"method": "list", "points": [{"owd_ms": owd_ms} for owd_ms in (10, 20, 30, 40, 50)]},
    "factors": {"owd_ms": between(10, 50)},
    "constants": {"bandwidth_mbps": 10},
}
TRIALS = 2 * sum(repetitions for repetitions, _, _ in ENDS.values())


def seconds(key: TrialKey) -> float:
    """Return the duration of a made-up trial."""
    random_ = random.Random(f"{key.point} {key.repetition} {key.variant}")
    match key.point, key.variant:
        case (0, _):
            return 1.0
        case (1, "xor, 4/5"):
            return random_.gauss(0.5, 0.01)
        case (2, "xor, 4/5"):  # faster at first, if one looked too soon
            return random_.gauss(0.9 if key.repetition < 20 else 1.6, 0.1)
        case (3, _):
            return random_.uniform(0.2, 1.8)
        case _:
            return random_.gauss(1, 0.01)


@dataclasses.dataclass
class Measured(Pretence):
    """An engine whose trials take `seconds`; it is told to end after `most` of them."""

    most: int = 10**9
    deterministic: bool = True
    end: Callable[[TrialKey], str] = lambda key: (
        "timeout" if key.point == TIMEOUT and key.repetition == 7 else "ok"
    )

    def run(self, tasks: Any) -> Any:
        for finished in super().run(tasks):
            if len(self.ran) > self.most:
                raise KeyboardInterrupt
            client = EndpointOutcome(metrics={"dct_s": seconds(finished.key)})
            outcome = finished.outcome.model_copy(update={"endpoints": {"client": client}})
            yield dataclasses.replace(finished, outcome=outcome)


@pytest.fixture
def base(write_design: Any, tmp_path: Path) -> Request:
    design = designs.load(write_design(tmp_path, **DESIGN))
    experiment = experiment_of(design)
    keys = trial_keys(design, len(experiment.points))
    return Request(experiment=experiment, keys=keys, name="x", backend="wire", jobs=1, calibrate=False)


def ends(campaign: CampaignInfo) -> dict[int, tuple[int, str, str]]:
    return {
        point: (stop.repetitions, stop.why, stop.verdicts[ON])
        for (_, point), stop in sorted(campaign.stops.items())
    }


def repetitions(address: str) -> Counter[tuple[str, int]]:
    """Return the repetitions of each variant at each point. All have a result, and the lowest numbers."""
    with only_campaign(address) as (database, campaign):
        keys = database.states(campaign.id).keys()
    counts = Counter((key.variant, key.point) for key in keys)
    assert all(key.repetition < counts[key.variant, key.point] for key in keys)
    return counts


EXPECTED = Counter({(label, point): end[0] for label in (OFF, ON) for point, end in ENDS.items()})


@dataclasses.dataclass
class Counting(Told):
    planned: int = 0
    rounds: list[int] = dataclasses.field(default_factory=list)

    def begun(self, campaign: str, planned: int, result: int) -> None:  # noqa: ARG002
        self.planned = planned
        self.rounds = [planned - result]

    def more(self, trials: int, why: str) -> None:
        self.rounds.append(trials)
        self.why = why


def test_each_point_runs_until_it_is_decided_and_the_database_says_why_it_stopped(
    run: Run, base: Request, fecbench_here: Callable[..., Any], tmp_path: Path
) -> None:
    """A reader finds what the campaign stopped by, and is refused another statistic."""
    engine, watcher = Measured(), Counting()
    campaign = run(engine, base_request=base, watcher=watcher)
    assert (base.design.looks, campaign.looks) == (LOOKS, LOOKS)
    assert ends(campaign) == ENDS
    assert repetitions(str(tmp_path / "x.sqlite")) == EXPECTED
    assert len(engine.ran) == campaign.planned_trials == TRIALS
    assert watcher.rounds == [2 * 25 * 5, 2 * 25 * 3, 2 * 50 * 2]
    assert watcher.why == "3 of 5 points and workloads have enough repetitions"
    with sqlite3.connect(tmp_path / "x.sqlite") as connection:
        assert connection.execute("SELECT why FROM stops WHERE point = 3").fetchall() == [
            ("most repetitions",)
        ]
    with reading.Results(str(tmp_path / "x.sqlite")) as opened:
        intervals = opened["x"].intervals(OFF, ON)
    assert dict(zip(intervals["point"], intervals["verdict"], strict=True)) == {
        point: verdict for point, (_, why, verdict) in ENDS.items() if why != "no interval"
    }
    refusal = fecbench_here("show", "--db", tmp_path / "x.sqlite", "--statistic", "median").refusal()
    assert "--statistic median: campaign 'x' stopped where its mean decided" in refusal


def test_of_medians_that_nothing_differs_is_known_as_soon_as_anything_else(run: Run, base: Request) -> None:
    """Means are decided later: a long and rare delay may be missing in all trials so far."""
    design = designs.rewritten(base.design, statistic="median")
    experiment = experiment_of(design)
    intervals = ends(run(Measured(), base_request=dataclasses.replace(base, experiment=experiment)))
    assert intervals[SAME] == (25, "decided", "equivalent")
    assert intervals[NOISE] == ENDS[NOISE]


def test_whoever_reads_it_is_told_how_far_it_was_run(run: Run, base: Request) -> None:
    choice = [key for key in base.keys if key.point != SAME]
    campaign = run(Measured(), base_request=dataclasses.replace(base, keys=choice))
    assert ends(campaign) == {point: end for point, end in ENDS.items() if point != SAME}
    sentence, of_averages = deciding.sentences(campaign)
    assert of_averages == "Averages over networks are of the first 25 repetitions of each."
    assert "100 repetitions at most: 2 of 5 networks and workloads are decided, after 25 to 50" in sentence
    assert "not decided: 1; without an interval that could decide: 1; still to be run: 1." in sentence
    assert "an interval is of 98.33 %" in sentence


def test_one_that_was_interrupted_in_each_round_goes_on_to_the_same_end(
    run: Run, base: Request, tmp_path: Path
) -> None:
    before = 0
    for until in (40, 260, 345, 440):
        watcher = Counting()
        with pytest.raises(KeyboardInterrupt):
            run(Measured(most=until - before), base_request=base, watcher=watcher)
        assert watcher.planned - watcher.rounds[0] == before
        before = until
    engine, watcher = Measured(), Counting()
    campaign = run(engine, base_request=base, watcher=watcher)
    assert ends(campaign) == ENDS
    assert repetitions(str(tmp_path / "x.sqlite")) == EXPECTED
    assert len(engine.ran) == TRIALS - before
    assert watcher.planned - watcher.rounds[0] == before
    again = Measured()
    assert run(again, base_request=base) == campaign
    assert not again.ran


def test_a_trial_that_stays_invalid_does_not_keep_the_campaign_from_its_end(run: Run, base: Request) -> None:
    campaign = run(Measured(end=lambda key: "invalid" if key.repetition == 3 else "ok"), base_request=base)
    assert {point: end[:2] for point, end in ends(campaign).items()} == {
        point: end[:2] for point, end in (ENDS | {TIMEOUT: (100, "decided", "")}).items()
    }


def test_a_variant_without_an_interval_lets_no_mean_of_another_be_called_equal_early(
    run: Run, base: Request
) -> None:
    third = variant("third", "rquic", scheme="xor", code_rate=0.9)
    design = designs.rewritten(base.design, variants=[*LITTLE["variants"], third])
    experiment = experiment_of(design)
    keys = [key for key in trial_keys(design, 5) if key.point == SAME]
    engine = Measured(end=lambda key: "timeout" if (key.variant, key.repetition) == ("third", 7) else "ok")
    campaign = run(engine, base_request=dataclasses.replace(base, experiment=experiment, keys=keys))
    (stop,) = campaign.stops.values()
    assert (stop.repetitions, stop.verdicts) == (100, {ON: "equivalent", "third": "undecided"})


def test_a_point_that_lacks_an_interval_for_invalid_trials_alone_is_run_on(run: Run, base: Request) -> None:
    keys = [key for key in base.keys if key.point == NOISE]
    engine = Measured(end=lambda key: "invalid" if 3 < key.repetition < 25 else "ok")
    (stop,) = run(engine, base_request=dataclasses.replace(base, keys=keys)).stops.values()
    assert (stop.repetitions, stop.why) == (100, "most repetitions")


def test_a_last_look_that_was_missing_alone_is_in_what_is_returned(
    run: Run, base: Request, monkeypatch: pytest.MonkeyPatch
) -> None:
    only = dataclasses.replace(base, keys=[key for key in base.keys if key.point == FASTER])
    with monkeypatch.context() as killed:
        killed.setattr(Database, "stop", lambda *_: pytest.fail("killed"))
        with pytest.raises(pytest.fail.Exception):
            run(Measured(), base_request=only)
    assert ends(run(Measured(), base_request=only)) == {FASTER: ENDS[FASTER]}


def test_several_that_run_it_at_once_come_to_the_same(
    run: Run,
    base: Request,
    postgresql: str,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(share, "LOOK_S", 0.02)
    engines = [Measured() for _ in range(3)]
    problems: list[Exception] = []

    def one(engine: Measured) -> None:
        try:
            assert ends(run(engine, postgresql, base_request=base)) == ENDS
        except Exception as problem:
            problems.append(problem)

    run_together([lambda engine=engine: one(engine) for engine in engines])
    assert not problems
    assert repetitions(postgresql) == EXPECTED
    assert sum(len(engine.ran) for engine in engines) == TRIALS


def test_a_database_that_is_older_than_such_campaigns_takes_one(
    run: Run, base: Request, little: Request, tmp_path: Path
) -> None:
    run(keys=little.keys[:2])
    with sqlite3.connect(tmp_path / "x.sqlite") as connection:
        connection.execute("DROP TABLE stops")
    only = dataclasses.replace(base, keys=[key for key in base.keys if key.point == FASTER])
    assert ends(run(Measured(), base_request=only)) == {FASTER: ENDS[FASTER]}


def test_emulated_and_against_itself_a_variant_has_the_repetitions_that_every_point_has(
    base: Request,
) -> None:
    groups = sample(base.design, 5, 1.0)
    assert {group.repetition for group in groups} == set(range(LOOKS[0]))
    twice = against_itself(base.design, ON)
    assert (twice.until, twice.repetitions, twice.looks) == (None, LOOKS[0], LOOKS[:1])


def test_a_plan_says_the_fewest_and_the_most_trials_and_what_cannot_be_decided_is_refused(
    fecbench_here: Callable[..., Any], base: Request, tmp_path: Path
) -> None:
    path = Path(base.design.path)
    for choice in ("variant=off", "repetition=0"):
        words = ("run", path, "--db", tmp_path / "x.sqlite", "--filter", choice)
        refusal = fecbench_here(*words).refusal()
        assert f"--filter {choice}: the design runs until = 'decided'" in refusal
        assert "choose by point or workload" in refusal
    message = fecbench_here("plan", path, "--no-measure").stdout
    assert "x 25 to 100 repetitions = 250 to 1,000 trials, until decided\n" in message
    path.write_text(designs.rewritten(base.design, variants=LITTLE["variants"][:1]).text)
    refusal = fecbench_here("plan", path).refusal()
    assert "until = 'decided': no variant is compared with another" in refusal
