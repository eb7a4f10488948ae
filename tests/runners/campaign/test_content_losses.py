"""Data packets that a transfer lost: frames show the losses of a written list."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from fecbench import results
from tests.support.designs import variant, workload

Losing = Callable[..., tuple[pd.DataFrame, pd.DataFrame]]


@pytest.fixture
def losing(write_design: Any, virtually: Callable[..., Path], tmp_path: Path) -> Losing:
    """The trials and the series of transfers that lose these packets of their content's direction."""

    def losing(
        name: str, http: str, *lists: list[int], **constants: object
    ) -> tuple[pd.DataFrame, pd.DataFrame]:
        own, other = ("up", "down") if name == "upload" else ("down", "up")
        lost = {str(n): {f"loss.{own}.drop": ",".join(map(str, these))} for n, these in enumerate(lists)}
        network = {"bandwidth_mbps": 20, "owd_ms": 25, "loss.model": "pattern", f"loss.{other}.drop": ""}
        design = write_design(
            tmp_path,
            repetitions=1,
            timeout_s=60,
            plan={"method": "grid"},
            factors={"lost": {"linked": lost}},
            constants=network | constants,
            workloads=[workload(name, size_bytes=50_000)],
            variants=[
                variant("plain", scheme="none", http=http) | {"series": ["content"]},
                variant("rlc", scheme="rlc", http=http, baseline=True),
            ],
        )
        with results.open(str(virtually(design, name=str(len(lists))))) as opened:
            (name,) = opened.campaigns()["campaign"]
            trials, rows = opened[name].trials(), opened[name].series("content")
        assert trials.loc[trials["variant"] == "rlc", "content.losses"].isna().all()  # it leaves no series
        return trials[trials["variant"] == "plain"].set_index("point"), rows

    return losing


@pytest.mark.parametrize(("workload", "http"), [("upload", "h3"), ("upload", "hq"), ("download", "h3")])
def test_a_loss_counts_where_it_hits_data_and_in_the_end_where_it_hits_the_last_packets(
    losing: Losing, workload: str, http: str
) -> None:
    trials, series = losing(workload, http, [], [1_000_000])
    rows = series[series["point"] == 0]
    content = list(rows["datagram"].astype(int))
    lost = f"internet.{'up' if workload == 'upload' else 'down'}"
    assert 50_000 / 1252 < len(content) <= 50_000 / 1200 + 2
    assert rows["bytes"].between(626, 1252).iloc[:-1].all()
    others = [n for n in range(int(trials.loc[0, f"{lost}.packets"])) if n not in content]
    expected = {
        (): (0, 0),
        (others[-1],): (0, 0),
        (others[0],): (0, 0),
        (content[0],): (1, 0),
        (content[-11],): (1, 0),
        (content[-10],): (1, 1),
        (content[-1],): (1, 1),
        (content[5], *content[-3:]): (4, 3),
    }
    trials, _ = losing(workload, http, *map(list, expected))
    for point, (these, counts) in enumerate(expected.items()):
        trial = trials.loc[point]
        assert trial[f"{lost}.lost"] == len(these), these
        assert (trial["content.losses"], trial["content.losses_last_10"]) == counts, these


@pytest.mark.parametrize("link", [{"policer_mbps": 2}, {"duplicate": 0.2}, {"reorder.p": 0.2}], ids=str)
def test_where_a_verdict_may_be_another_packets_nobody_knows_which_were_lost(
    losing: Losing, link: dict[str, float]
) -> None:
    trials, _ = losing("download", "hq", [], [30], **link)
    assert trials["content.losses"].isna().all()
