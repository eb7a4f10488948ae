"""Frames of a notebook say round-trip times, sizes and units, in names that a query takes."""

from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import fecbench
from fecbench.errors import BadInput
from fecbench.results.analysis import tidy
from fecbench.results.reading import Campaign
from fecbench.results.store.database import Database
from fecbench.results.store.records import CampaignInfo, TrialKey, Workload

Filled = Callable[..., tuple[Database, CampaignInfo]]
OFF, XOR = "rquic-off", "rquic-xor"
SIZES = {"download-2000": 2000, "download-10000": 10000}


def of_design(filled: Filled, constants: str = "", **factors: list[Any]) -> CampaignInfo:
    points = [dict(zip(factors, values, strict=True)) for values in zip(*factors.values(), strict=True)]
    return filled({}, points=points, design_text=f'name = "x"\n[constants]\n{constants}')[1]


@pytest.mark.parametrize(
    ("constants", "factors", "expected"),
    [
        ("", {"owd_ms": [10, 35.5]}, {"rtt_ms": [20, 71]}),
        ("owd_ms = 25", {"loss.p": [0.1, 0.2]}, {"rtt_ms": [50, 50]}),
        ("up.owd_ms = 5", {"owd_ms": [10, 20]}, {"rtt_ms": [15, 25]}),
        ("", {"up.owd_ms": [1, 2], "down.owd_ms": [10, 20]}, {"rtt_ms": [11, 22]}),
        (
            "path2.owd_ms = 7",
            {"path1.owd_ms": [10, 20]},
            {"path1.rtt_ms": [20, 40], "path2.rtt_ms": [14, 14]},
        ),
        ("rtt_ms = 80", {"loss.p": [0.1, 0.2]}, {"rtt_ms": [80, 80]}),
        ("", {"rtt_ms": [10, 20]}, {"rtt_ms": [10, 20]}),
        ("path2.rtt_ms = 7", {"path1.owd_ms": [1, 2]}, {"path1.rtt_ms": [2, 4], "path2.rtt_ms": [7, 7]}),
        ("rtt_ms = 80", {"path1.up.owd_ms": [1, 2]}, {"path1.rtt_ms": [41, 42], "rtt_ms": [80, 80]}),
        ("", {"up.owd_ms": [1, 2]}, {}),
        ("bandwidth_mbps = 3", {"loss.p": [0.1, 0.2]}, {}),
    ],
)
def test_a_round_trip_is_the_delay_of_both_directions_where_both_are_known(
    filled: Filled, constants: str, factors: dict[str, list[Any]], expected: dict[str, list[float]]
) -> None:
    campaign = of_design(filled, constants, **factors)
    points = tidy.with_round_trips(pd.DataFrame(campaign.points), campaign)
    assert {str(n): points[n].tolist() for n in points if "rtt" in str(n)} == expected


def test_plain_names_are_told_apart_or_refused() -> None:
    assert tidy.plain_names(["loss.p", "client.dct_s", "size_bytes"]) == {
        "loss.p": "loss_p",
        "client.dct_s": "client_dct_s",
        "size_bytes": "size_bytes",
    }
    with pytest.raises(BadInput, match=r"'a\.b' and 'a_b' would both be 'a_b'"):
        tidy.plain_names(["a.b", "a_b"])


@pytest.fixture
def campaign(filled: Filled, sqlite: str) -> Campaign:
    workloads = [
        Workload(label=label, name="download", parameters={"size_bytes": size})
        for label, size in SIZES.items()
    ]
    points = [{"owd_ms": 10 * (i + 1), "loss.p": i / 100} for i in range(3)]
    outcomes = {
        TrialKey(variant, workload, point, repetition): ("ok", 1.0 + repetition / 10)
        for variant, workload, point, repetition in product((OFF, XOR), SIZES, range(3), range(6))
    }
    filled(outcomes, workloads=workloads, points=points, repetitions=6)
    return fecbench.open(Path(sqlite))["campaign-0"]


def test_a_query_finds_sizes_losses_and_round_trips(campaign: Campaign) -> None:
    for frame in (campaign.ratios(plain=True), campaign.trials(plain=True)):
        choice = frame.query("size_bytes == 2000 and loss_p > 0 and rtt_ms <= 40")
        assert set(choice["workload"]) == {"download-2000"}
        assert set(choice["point"]) == {1}


def test_every_frame_says_the_units_of_its_columns(campaign: Campaign) -> None:
    assert campaign.points().attrs["units"] == {"owd_ms": "ms", "rtt_ms": "ms"}
    units = campaign.trials(plain=True).attrs["units"]
    assert (units["client_dct_s"], units["size_bytes"]) == ("s", "bytes")


def test_every_column_of_a_frame_is_in_the_dictionary_with_its_better_direction(campaign: Campaign) -> None:
    columns = campaign.columns
    for frame in (campaign.points(), campaign.trials(), campaign.ratios()):
        assert set(map(str, frame)) <= set(columns.index)
    assert columns.loc["client.dct_s", ["unit", "better", "plain"]].tolist() == ["s", "less", "client_dct_s"]
    explained = columns.index.difference(["server.packets_sent"])
    assert columns.loc[explained, "meaning"].ne("").all(), columns[columns["meaning"] == ""]


def test_a_parameter_of_one_link_or_direction_is_described_as_that_of_any() -> None:
    for name in ("path1.owd_ms", "up.owd_ms", "path2.down.owd_ms"):
        assert tidy.unit_of(name) == "ms"
        assert tidy.dictionary([name], "")["meaning"][0].startswith("The one-way delay"), name
    assert "probability" in tidy.dictionary(["loss.down.p"], "")["meaning"][0]
