"""Campaigns that were recorded emulated come out in virtual time with nearly the same times and ratios, and
none of what a cross-check compares differs.

How near, docs/virtual-time.md says. Virtual time lacks the endpoints' CPU, so it is shorter.
"""

import lzma
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from fecbench.checkout import REPOSITORY
from fecbench.results import metrics
from fecbench.results.analysis.agreement import Comparison, of_twins
from fecbench.results.analysis.frames import trials
from fecbench.results.analysis.pairing import PAIR, baselines_of
from fecbench.results.analysis.tolerances import OTHER, SHORT_BYTES, SHORT_RATIO
from fecbench.results.analysis.twins import Twins
from fecbench.results.store.database import Database
from fecbench.results.store.records import CampaignInfo

pytestmark = pytest.mark.slow

SAMPLES = REPOSITORY / "notebooks" / "samples"
RECORDED = {
    "networking2019-da2gc": "networking2019",
    "networking2019-mss": "networking2019",
    "networking2019-uniform-short": "networking2019",
    "networking2019-ge-short": "networking2019",
    "networking2019-noloss-short": "networking2019",
    "rquic2021-bulk": "rquic2021",
    "rquic2021-bulk-short": "rquic2021",
    "rquic2021-page-short": "rquic2021",
    "rquic2021-bto-short": "rquic2021",
}
"""The sample that has each."""
LIMIT_S = 3600
TIMES = (0.98, 1.005)
"""Virtual over emulated: the median of a workload."""
SHORT, LONG = SHORT_RATIO.above, OTHER.above
"""Largest median difference of a pair's ratio from the emulated one, up to SHORT_BYTES and above."""


@cache
def sample(name: str) -> bytes:
    return lzma.decompress((SAMPLES / f"{name}.sqlite.xz").read_bytes())


def read(path: Path, name: str) -> tuple[CampaignInfo, pd.DataFrame]:
    with Database.open(str(path)) as database:
        (campaign,) = (item for item in database.campaigns() if item.name == name)
        return campaign, trials(database, campaign, set(metrics.of_workloads(campaign).values()))


def differing(emulated_path: Path, virtual_path: Path, name: str) -> list[Comparison]:
    """The comparisons that a cross-check says differ. Recorded trials have no task: it is their twins'."""
    with Database.open(str(emulated_path)) as emulated, Database.open(str(virtual_path)) as virtual:
        (recorded,) = (item for item in emulated.campaigns() if item.name == name)
        (campaign,) = virtual.campaigns()
        runs = {stored.record.key: stored.record for stored in virtual.trials(campaign.id)}
        twins = [
            Twins(run, replace(stored.record, task=run.task))
            for stored in emulated.trials(recorded.id)
            if (run := runs.get(stored.record.key)) is not None
        ]
    compared = [pair for pair in twins if not pair.left_out and pair.same_outcome]
    comparisons = list(of_twins(compared, campaign))
    assert comparisons
    return [item for item in comparisons if item.verdict == "differs"]


@pytest.mark.parametrize("design", RECORDED)
def test_a_recorded_campaign_comes_out_nearly_the_same(design: str, tmp_path: Path, fecbench: Any) -> None:
    emulated_path, virtual_path = tmp_path / "emulated.sqlite", tmp_path / "virtual.sqlite"
    emulated_path.write_bytes(sample(RECORDED[design]))
    options = ["--engine", "virtual", "--jobs", "2", "--db", virtual_path]
    ran = fecbench("run", design, *options, limit_s=LIMIT_S)
    assert ran.returncode in (0, 1), ran.stderr  # of which some may end as those that were recorded
    campaign, emulated = read(emulated_path, design)
    again, virtual = read(virtual_path, design)
    assert [dict(point) for point in again.points] == [dict(point) for point in campaign.points]
    both = emulated.merge(virtual, on=["variant", *PAIR], suffixes=("_emulated", "_virtual"))
    assert len(both) == len(emulated)
    both = both[(both["state_emulated"] == "ok") & (both["state_virtual"] == "ok")]
    assert len(both) > 0.9 * len(emulated)
    sizes = {workload["label"]: workload["parameters"].get("size_bytes") for workload in campaign.workloads}
    for workload, metric in metrics.of_workloads(campaign).items():
        some = both[both["workload"] == workload].set_index(["variant", *PAIR])
        shift = some[f"{metric}_virtual"] / some[f"{metric}_emulated"]
        print(f"{workload}: {shift.median():.4f} of the emulated time")
        assert TIMES[0] < shift.median() < TIMES[1]
        tolerance = SHORT if (sizes[workload] or SHORT_BYTES + 1) <= SHORT_BYTES else LONG
        for variant, baseline in baselines_of(campaign).items():
            pairs = shift.xs(variant) / shift.xs(baseline)
            print(f"  ratios of {variant}: {pairs.median():.4f} of the emulated ones, {pairs.count()} pairs")
            assert pairs.count() > 10
            assert abs(pairs.median() - 1) < tolerance
    assert differing(emulated_path, virtual_path, design) == []
