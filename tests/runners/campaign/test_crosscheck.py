"""The emulated sample of a campaign in virtual time: always the same, of every workload, able to grow."""

import dataclasses
import math
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from fecbench import designs
from fecbench.designs import Design
from fecbench.results.store.database import Database
from fecbench.runners.campaign import crosscheck
from fecbench.runners.campaign.crosscheck import FEWEST_GROUPS, sample
from fecbench.runners.campaign.request import Request
from fecbench.runners.refusal import Refusal
from tests.runners.campaign.conftest import Run
from tests.support.designs import workload

POINTS = 30


@pytest.fixture
def many(write_design: Callable[..., Path], tmp_path: Path) -> Design:
    """A design with 300 groups of each of two workloads, if it has POINTS points."""
    sizes = workload(size_bytes=[1_000, 20_000])
    return designs.load(write_design(tmp_path, repetitions=10, workloads=[sizes]))


def test_the_sample_has_its_share_of_every_workload(many: Design) -> None:
    groups = sample(many, POINTS, 0.1)
    assert len(set(groups)) == len(groups)
    assert Counter(group.workload for group in groups) == {"download-1000": 30, "download-20000": 30}


def test_a_small_share_has_a_few_groups_of_every_workload(many: Design) -> None:
    for share in (1e-9, 0.02):
        groups = sample(many, POINTS, share)
        assert set(Counter(group.workload for group in groups).values()) == {FEWEST_GROUPS}


def test_the_whole_share_has_every_group(many: Design) -> None:
    assert len(sample(many, POINTS, 1)) == 2 * 10 * POINTS
    assert len(sample(many, 2, 1e-9)) == 2 * FEWEST_GROUPS
    assert len(sample(many.model_copy(update={"repetitions": 1}), 3, 1e-9)) == 2 * 3


def test_a_greater_sample_contains_a_smaller_one(many: Design) -> None:
    smaller, greater = (set(sample(many, POINTS, share)) for share in (0.1, 0.2))
    assert smaller < greater


def test_no_point_is_there_twice_before_every_point_is_there_once(many: Design) -> None:
    for share, most in ((0.1, 1), (0.101, 2), (0.2, 2)):
        counted = Counter((group.workload, group.point) for group in sample(many, POINTS, share))
        assert max(counted.values()) == most
        assert len(counted) == 2 * min(POINTS, math.ceil(share * 10 * POINTS))


def test_the_sample_follows_from_the_seed_of_the_design(many: Design) -> None:
    assert sample(many, POINTS, 0.1) == sample(many, POINTS, 0.1)
    other = many.model_copy(update={"seed": many.seed + 1})
    assert set(sample(many, POINTS, 0.1)) != set(sample(other, POINTS, 0.1))


# Which campaign is checked


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    with Database.open(str(tmp_path / "x.sqlite"), create=True) as opened:
        yield opened


@pytest.fixture
def virtual(little: Request) -> Request:
    return dataclasses.replace(little, backend="virtual", resume=True)


def refusal(virtual: Request, little: Request, database: Database) -> str:
    emulation = crosscheck.emulated(virtual, little, 0.5)
    with pytest.raises(Refusal) as error:
        crosscheck.checked_campaign(virtual, emulation, database)
    return str(error.value)


def test_a_sample_is_a_campaign_that_says_what_it_checks(
    run: Run, little: Request, virtual: Request, database: Database
) -> None:
    run(base_request=dataclasses.replace(virtual, resume=False))
    emulation = crosscheck.emulated(virtual, little, 0.5)
    checked = crosscheck.checked_campaign(virtual, emulation, database)
    assert (checked.name, checked.engine, checked.checked) == ("little", "virtual", None)
    stored = run(base_request=emulation)
    assert (stored.name, stored.engine, stored.checked) == ("little-crosscheck", "emulated", "little")
    assert stored.provenance["crosscheck"] == {"campaign": "little", "share": 0.5, "trials": 12}
    (start,) = database.starts(stored.id)
    assert start.provenance["crosscheck"]["share"] == 0.5
    assert crosscheck.checked_campaign(virtual, emulation, database).name == "little"


def test_a_sample_of_one_variant_has_what_it_is_compared_with_too(little: Request, virtual: Request) -> None:
    labels = [variant.label for variant in little.design.variants]
    arms = {key.variant for key in crosscheck.emulated(virtual, little, 1, labels[1:2]).keys}
    assert arms == set(labels)
    alone = crosscheck.emulated(virtual, little, 1, labels[:1])
    assert {key.variant for key in alone.keys} == {labels[0]}
    assert alone.crosscheck is not None and alone.crosscheck.document()["arms"] == labels[:1]
    with pytest.raises(Refusal, match="--arms xor: has no such variant; "):
        crosscheck.emulated(virtual, little, 1, ["xor"])


def test_without_the_campaign_the_command_that_makes_it_is_told(
    little: Request, virtual: Request, database: Database
) -> None:
    message = refusal(virtual, little, database)
    made_by = f"fecbench run {little.design.path} --engine virtual --db {database.address}"
    assert message.endswith(f"has no campaign 'little' in virtual time; make it: {made_by}")
    named = dataclasses.replace(virtual, name="other")
    assert refusal(named, little, database).endswith(f"{made_by} --campaign other")


def test_a_campaign_that_was_emulated_is_not_checked(
    run: Run, little: Request, virtual: Request, database: Database
) -> None:
    run()
    message = refusal(virtual, little, database)
    assert "was emulated, and a crosscheck is of one in virtual time" in message
    assert message.endswith("--campaign little-virtual, and check --campaign little-virtual")


def test_a_campaign_that_lacks_trials_of_the_sample_is_to_be_gone_on_with(
    run: Run, little: Request, virtual: Request, database: Database
) -> None:
    run(base_request=dataclasses.replace(virtual, resume=False, keys=little.keys[2:]))
    message = refusal(virtual, little, database)
    assert "lacks 2 trials of the sample" in message
    assert "fecbench run" in message


def test_a_campaign_that_only_has_the_name_of_a_sample_is_not_added_to(
    run: Run, little: Request, virtual: Request, database: Database
) -> None:
    run(base_request=dataclasses.replace(virtual, resume=False))
    run(name="little-crosscheck")
    assert "is there, and is no crosscheck" in refusal(virtual, little, database)


def test_a_campaign_of_other_programs_is_not_checked(
    run: Run, little: Request, virtual: Request, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(base_request=dataclasses.replace(virtual, resume=False))
    others: Any = lambda *_: {"quic-impls/rquic/build/rquic": "ab" * 32}  # noqa: E731
    monkeypatch.setattr("fecbench.runners.campaign.provenance.binaries", others)
    assert "was run with other binaries" in refusal(virtual, little, database)
