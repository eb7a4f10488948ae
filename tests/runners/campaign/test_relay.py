"""Designs with a relay: refusals, and tasks whose hops have options of their own."""

import re
from pathlib import Path

import pytest

from fecbench import designs
from fecbench.results.store.records import TrialKey
from fecbench.runners.refusal import Refusal
from fecbench.runners.tasks.task import Task
from fecbench.runners.trial.simulation import Place, line_of
from tests.support.experiments import experiment_of_text

CATALOGUED = designs.catalogue()["live-relay"].read_text()


def schemes(task: Task, tmp_path: Path) -> dict[str, str]:
    """The scheme at both ends of each hop, by the assignments of a simulator."""
    line = line_of(task, 1, Place(tmp_path, tmp_path))
    return dict(
        zip(
            ("client", "access", "backbone", "server"),
            re.findall(r'"scheme":"(\w+)"', line.decode()),
            strict=True,
        )
    )


def test_each_hop_has_the_options_of_its_far_end(tmp_path: Path) -> None:
    experiment = experiment_of_text(tmp_path, CATALOGUED)
    (workload,) = experiment.activities
    on_hops = {
        variant: schemes(experiment.task(TrialKey(variant, workload, 0, 0), "virtual"), tmp_path)
        for variant in experiment.arms
    }
    expected = {
        "no FEC": ("none", "none"),
        "safe on the access link": ("rlc", "none"),
        "safe on the backbone": ("none", "rlc"),
        "safe on both": ("rlc", "rlc"),
    }
    for variant, (access, backbone) in expected.items():
        of_ends = {"client": access, "access": access, "backbone": backbone, "server": backbone}
        assert on_hops[variant] == of_ends, variant


WORKLOAD = """name = "live"
duration_s = 20
playout_ms = [150, 100, 200, 300, 500]"""
IMPLEMENTATION = """implementation = "moq"
options = { scheme = "none", congestion_control = "bbr3" }
"""
WRONG = [
    (WORKLOAD, 'name = "download"\nsize_bytes = 1000', "download crosses no relay; it must be live"),
    (IMPLEMENTATION, 'implementation = "noq-fec"\n', "noq-fec has no relay"),
    ("access.owd_ms = 15", "internet.owd_ms = 15", "topology relay has no link 'internet'"),
]


@pytest.mark.parametrize(("right", "wrong", "message"), WRONG)
def test_a_design_that_no_relay_can_carry_out_is_refused(
    tmp_path: Path, right: str, wrong: str, message: str
) -> None:
    assert right in CATALOGUED
    with pytest.raises(Refusal, match=re.escape(message)):
        experiment_of_text(tmp_path, CATALOGUED.replace(right, wrong))
