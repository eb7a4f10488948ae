"""The record that advice is given from is of the `safe` of today: some of its networks, run again, come out
the same. Who changes what `safe` does there records it anew (`python -m fecbench.results.advice`)."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from fecbench import results
from fecbench.results.advice.record import CONGESTION_CONTROLS, RECORD

SIZES = (10_000, 200_000)
POINTS = (21, 150)


@pytest.mark.parametrize("design", ["never-harms", "never-harms-bursts"])
def test_networks_of_the_record_come_out_as_they_were_recorded(
    design: str, tmp_path: Path, fecbench_here: Callable[..., Any]
) -> None:
    database = tmp_path / "again.sqlite"
    record = pd.read_parquet(RECORD)
    rows = record[(record["campaign"] == design) & (record["controller"] == "safe")]
    options = [f"point={point}" for point in POINTS]
    options += [f"variant={cc}, {arm}" for cc in CONGESTION_CONTROLS for arm in ("no FEC", "safe")]
    for size in SIZES:
        pairs = rows.loc[rows["size_bytes"] == size, "pairs"].unique()
        assert len(pairs) == 1
        of_size = [f"workload=download-{size}", *(f"repetition={number}" for number in range(pairs[0]))]
        filters = [word for choice in [*options, *of_size] for word in ("--filter", choice)]
        words = ("run", design, "--engine", "virtual", "--jobs", 2, "--db", database, *filters)
        assert fecbench_here(*words).returncode == 0
    campaign = results.open(database)[design]
    networks = campaign.points().set_index("point")
    for label, congestion_control in CONGESTION_CONTROLS.items():
        ratios = campaign.intervals(f"{label}, no FEC", f"{label}, safe")
        for size in SIZES:
            again = ratios[ratios["workload"] == f"download-{size}"].set_index("point")
            recorded = rows[
                (rows["size_bytes"] == size) & (rows["congestion_control"] == congestion_control)
            ].set_index("bandwidth_mbps")
            for point in POINTS:
                row = recorded.loc[networks["bandwidth_mbps"][point]]
                for number in ("ratio", "low", "high"):
                    assert np.float32(again[number][point]) == row[number], (label, size, point, number)
