"""The course of a trial that was run again is what its record says: losses, recoveries, times."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from fecbench import designs
from fecbench.results.analysis.trial_course import ARRIVED, DROPPED, LOST, Course, Numbers
from fecbench.results.store.records import TrialRecord
from fecbench.runners.campaign.recorded_course import course_of
from fecbench.runners.campaign.replay import replay
from fecbench.runners.implementations.finding import ours
from tests.support.campaigns import only_campaign
from tests.support.designs import Table, between, text_of, variant, workload

XOR: Table = {"scheme": "xor", "code_rate": 0.8}
RLC: Table = {"scheme": "rlc", "n": 3, "k": 2, "window": 20, "controller": "constant"}
_SMALL_S = 2e-6  # series have six decimals, and the times of captures are numbers since 1970
TRIALS = {
    "rquic": ("single-path", "download", "rquic", XOR),
    "noq-fec": ("single-path", "upload", "noq-fec", RLC),
    "two paths": ("multipath", "download", "noq-fec", RLC | {"paths": 2}),
}


def design_of(topology: str, name: str, implementation: str, options: Table, **parameters: str) -> str:
    return text_of(
        "course",
        seed=20,
        timeout_s=60,
        topology=topology,
        plan={"method": "list", "points": [{"loss.p": 0.04}]},
        factors={"loss.p": between(0.01, 0.1)},
        constants={"bandwidth_mbps": 4, "owd_ms": 15, "loss.model": "uniform", "queue_bdp": 0.6},
        workloads=[workload(name, **parameters, size_bytes=200_000)],
        variants=[variant("fec", implementation, **options, baseline=True)],
    )


@pytest.mark.parametrize("which", TRIALS)
def test_a_trial_in_virtual_time_takes_the_course_that_its_record_counts(
    virtually: Callable[..., Path], tmp_path: Path, which: str
) -> None:
    with only_campaign(virtually(design_of(*TRIALS[which]))) as (database, campaign):
        (trial,) = database.trials(campaign.id)
        again = replay(campaign, trial, ours(), tmp_path / "files")
    assert again.same
    trial_course = course_of(again, tmp_path / "files")
    assert trial_course.notes == []
    assert trial_course.sender == ("client" if "upload" in TRIALS[which] else "server")
    _check_packets(trial_course, trial.record)
    _check_repair(trial_course, trial.record)
    _check_times(trial_course, trial.record)


@pytest.mark.skipif(bool(ours().find("moq", "tests").missing_programs()), reason="make build-all")
def test_both_hops_of_a_relay_take_the_course_that_the_record_counts(
    virtually: Callable[..., Path], tmp_path: Path
) -> None:
    text = designs.catalogue()["live-relay"].read_text().replace("duration_s = 20", "duration_s = 2")
    one = ("--filter", "variant=safe on both", "--filter", "point=2", "--filter", "repetition=0")
    with only_campaign(virtually(text, *one)) as (database, campaign):
        (trial,) = database.trials(campaign.id)
        again = replay(campaign, trial, ours(), tmp_path / "files")
    assert again.same
    trial_course = course_of(again, tmp_path / "files")
    assert trial_course.notes == []
    assert len(trial_course.crossings) == 4
    _check_packets(trial_course, trial.record)
    _check_times(trial_course, trial.record)


def test_of_two_pairs_that_share_a_link_those_of_the_measured_one_are_told_apart(
    virtually: Callable[..., Path], tmp_path: Path
) -> None:
    """The other pair's packets stand between them in the record."""
    design = design_of("dumbbell", "competing", "rquic", XOR, background="fec")
    with only_campaign(virtually(design)) as (database, campaign):
        (trial,) = database.trials(campaign.id)
        trial_course = course_of(replay(campaign, trial, ours(), tmp_path / "files"), tmp_path / "files")
    assert trial_course.notes == []
    down = next(way for way in trial_course.crossings if way.direction == "down")
    (log,) = (log for log in trial.record.verdicts if log.direction == "down")
    assert 0 < down.times(LOST).size < log.dropped
    assert np.count_nonzero(down.fates == ARRIVED) < log.packets - log.dropped


def _check_packets(trial_course: Course, record: TrialRecord) -> None:
    assert sum(log.dropped for log in record.verdicts) > 5
    for log in record.verdicts:
        (crossing,) = (
            crossing
            for crossing in trial_course.crossings
            if (crossing.link, crossing.direction) == (log.link, log.direction)
        )
        counted = record.links[log.link]["directions"][log.direction]
        assert crossing.times(LOST).size == log.dropped
        assert crossing.times(DROPPED).size == counted["queue_dropped"]
        assert np.count_nonzero(crossing.fates == ARRIVED) == log.packets - log.dropped
        assert crossing.sent_s.size == counted["frames_in"]


def _check_repair(trial_course: Course, record: TrialRecord) -> None:
    assert record.metrics[trial_course.sender]["repair_sent"] > 5
    for repair in trial_course.repair:
        counters = record.metrics[repair.endpoint]
        assert repair.sent_s.size == counters["repair_sent"]
        assert repair.received_s.size == counters["repair_received"]
        assert repair.rebuilt_s.size == counters["packets_recovered"] + counters["recovered_spurious"]
    assert {repair.endpoint for repair in trial_course.repair} == {"client", "server"}
    assert sum(repair.rebuilt_s.size for repair in trial_course.repair) > 0


def _check_times(trial_course: Course, record: TrialRecord) -> None:
    """The first packet is at 0, nothing comes sooner than the link's delay, and all is within the trial."""
    assert min(crossing.sent_s.min() for crossing in trial_course.crossings) == 0
    for crossing in trial_course.crossings:
        assert np.nanmin(crossing.arrived_s - crossing.sent_s) > 0.015 - _SMALL_S
    assert trial_course.completed_s == record.metrics["client"]["dct_s"]
    assert trial_course.completed_s <= trial_course.end_s <= record.checks["virtual_s"] + _SMALL_S
    for repair in trial_course.repair:
        arrived = _arrivals(trial_course, repair.endpoint)
        assert all(np.nanmin(np.abs(arrived - at_s)) < _SMALL_S for at_s in repair.received_s), (
            "clocks differ"
        )


def _arrivals(trial_course: Course, endpoint: str) -> Numbers:
    """Return when packets came at an end."""
    to_it = "down" if endpoint == "client" else "up"
    return np.concatenate([way.arrived_s for way in trial_course.crossings if way.direction == to_it])
