"""The order of trials: paired, random, and always the same for the same design."""

from pathlib import Path
from typing import Any

import pytest

from fecbench import designs
from fecbench.runners.campaign.order import filtered, trial_keys
from tests.support.designs import workload
from tests.support.refusals import refusal_of


@pytest.fixture
def design(write_design: Any, tmp_path: Path) -> designs.Design:
    plan, workloads = {"method": "lhs", "points": 5}, [workload(size_bytes=[1000, 2000])]
    return designs.load(write_design(tmp_path, repetitions=3, plan=plan, workloads=workloads))


def test_every_trial_is_there_once_and_the_variants_of_a_group_are_neighbours(design: designs.Design) -> None:
    keys = trial_keys(design, 5)
    assert len(keys) == len(set(keys)) == 5 * 2 * 3 * 2
    for one, other in zip(keys[::2], keys[1::2], strict=True):
        assert (one.workload, one.point, one.repetition) == (other.workload, other.point, other.repetition)
        assert {one.variant, other.variant} == {"off", "xor, 4/5"}


def test_the_order_is_random_but_the_same_for_the_same_seed(design: designs.Design) -> None:
    keys = trial_keys(design, 5)
    assert keys == trial_keys(design, 5)
    assert keys != sorted(keys)
    assert {key.variant for key in keys[::2]} == {"off", "xor, 4/5"}, "neither variant always goes first"


def test_filters_keep_the_trials_that_meet_one_of_each_field(design: designs.Design) -> None:
    keys = trial_keys(design, 5)
    choice = filtered(keys, ["variant=xor, 4/5", "point=3", "point=1"])
    assert choice == [key for key in keys if key.variant == "xor, 4/5" and key.point in (1, 3)]
    assert len(choice) == 2 * len(keys) // (2 * 5)


def test_a_wrong_filter_is_refused(design: designs.Design) -> None:
    for filters, message in (
        (["varaint=xor"], "did you mean 'variant'"),
        (["variant"], "must be FIELD=VALUE"),
        (["variant=rs"], "variant=rs: no trial of the design meets it"),
        (["point=1", "point=5"], "point=5: no trial of the design meets it"),
    ):
        assert message in refusal_of(filtered, trial_keys(design, 5), filters)
