"""Which data packets a transfer lost: frames say it as a written list of losses has it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import results

DESIGN = """
repetitions = 1
timeout_s = 60
[plan]
method = "grid"
[factors]
owd_ms = {{ choices = [25] }}
[constants]
bandwidth_mbps = 20
loss.model = "pattern"
loss.up.drop = "{up}"
loss.down.drop = "{down}"
[[workloads]]
name = "{workload}"
size_bytes = 50_000
[[variants]]
label = "plain"
implementation = "noq-fec"
options = {{ scheme = "none", http = "{http}" }}
series = ["content"]
[[variants]]
label = "rlc"
implementation = "noq-fec"
options = {{ scheme = "rlc", http = "{http}" }}
baseline = true
"""

Losing = Callable[..., tuple[pd.Series, pd.DataFrame]]


@pytest.fixture
def losing(write_design: Any, fecbench_here: Callable[..., Any], tmp_path: Path) -> Losing:
    """The trial and the series of a transfer that loses these packets of its content's direction."""

    def losing(workload: str, http: str, these: list[int]) -> tuple[pd.Series, pd.DataFrame]:
        written = ",".join(map(str, these))
        up, down = (written, "") if workload == "upload" else ("", written)
        text = DESIGN.format(workload=workload, http=http, up=up, down=down)
        design = write_design(tmp_path, text)
        database = tmp_path / f"{workload}-{http}-{len(these)}-{these[:1]}.sqlite"
        ran = fecbench_here("run", design, "--engine", "virtual", "--db", database)
        assert ran.returncode == 0, ran.stderr
        with results.open(str(database)) as opened:
            (name,) = opened.campaigns()["campaign"]
            trials, rows = opened[name].trials(), opened[name].series("content")
        assert trials.loc[trials["variant"] == "rlc", "content.losses"].isna().all()  # it leaves no series
        return trials[trials["variant"] == "plain"].iloc[0], rows

    return losing


def losses(trial: pd.Series) -> tuple[float, float]:
    return trial["content.losses"], trial["content.losses_last_10"]


@pytest.mark.parametrize(("workload", "http"), [("upload", "h3"), ("upload", "hq"), ("download", "h3")])
def test_a_loss_counts_where_it_hits_data_and_in_the_end_where_it_hits_the_last_packets(
    losing: Losing, workload: str, http: str
) -> None:
    trial, rows = losing(workload, http, [])
    content = list(rows["datagram"].astype(int))
    direction = {"upload": "up", "download": "down"}[workload]
    packets = int(trial[f"internet.{direction}.packets"])
    assert losses(trial) == (0, 0)
    assert 50_000 / 1252 < len(content) <= 50_000 / 1200 + 2
    assert rows["bytes"].between(626, 1252).iloc[:-1].all()
    others = [n for n in range(1, packets) if n not in content]
    assert others, "no packet without data"
    for lost, expected in (
        ([others[-1]], (0, 0)),
        ([others[0]], (0, 0)),
        ([content[0]], (1, 0)),
        ([content[-11]], (1, 0)),
        ([content[-10]], (1, 1)),
        ([content[-1]], (1, 1)),
        ([content[5], *content[-3:]], (4, 3)),
    ):
        trial, _ = losing(workload, http, lost)
        assert trial[f"internet.{direction}.lost"] == len(lost), lost
        assert losses(trial) == expected, lost
