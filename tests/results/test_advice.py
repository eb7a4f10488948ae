"""Advice from a record that is planted: what helps where is known."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from fecbench import designs
from fecbench.checkout import REPOSITORY
from fecbench.errors import BadInput
from fecbench.results.advice import CAMPAIGNS, CONTROLLERS, NEAR, RECORD, Network, advise, recorded
from fecbench.runners.commands.command_line import app

SIZES = (10_000, 50_000, 1_000_000)
NETWORK = {"rtt_ms": 80, "bandwidth_mbps": 20, "loss": 0.02, "size_bytes": 50_000}


def planted() -> pd.DataFrame:
    """`safe` gains 10 % where losses are above 1 %, and `tail` 5 % everywhere but at 1 MB, where it harms.
    Beside BBRv3, nothing does anything."""
    rows = []
    rates, rtts = [10 ** (i / 5) for i in range(11)], [10 * 2 ** (i / 2) for i in range(13)]
    grid = itertools.product(("cubic", "bbr3"), SIZES, rates, rtts, (0.001, 0.004, 0.02, 0.08))
    for number, (control, size, rate, rtt, loss) in enumerate(grid):
        noise = 1 + (number % 7 - 3) / 1000
        of = {"safe": 0.9 if loss > 0.01 else 1.0, "tail": 1.05 if size == 1_000_000 else 0.95}
        for controller, ratio in of.items():
            if control == "bbr3":
                ratio = 1.0
            rows.append(
                {
                    "congestion_control": control,
                    "controller": controller,
                    "size_bytes": size,
                    "bandwidth_mbps": rate,
                    "rtt_ms": rtt,
                    "loss": loss,
                    "burst": 1 + number % 2,
                    "ratio": ratio * noise,
                    "verdict": {1.05: "harm", 1.0: "undecided"}.get(ratio, "gain"),
                }
            )
    return pd.DataFrame(rows)


ADVISED: list[tuple[dict[str, Any], dict[str, str], float]] = [
    ({"loss": 0.08}, {"scheme": "rlc", "controller": "safe"}, 0.9),
    ({"loss": 0.001}, {"scheme": "rlc", "controller": "tail"}, 0.95),
    ({"loss": 0.001, "size_bytes": 1_000_000}, {"scheme": "none"}, 1.0),
    ({"congestion_control": "bbr3"}, {"scheme": "none"}, 1.0),
]


def test_the_controller_that_surely_helps_most_near_by_is_advised() -> None:
    for network, use, ratio in ADVISED:
        advice = advise(Network(**(NETWORK | network)), planted())
        assert advice.use == use, network
        assert advice.ratio == pytest.approx(ratio, abs=0.02), network
        assert advice.interval[0] <= advice.ratio <= advice.interval[1], network
        assert (advice.networks, advice.outside) == (NEAR, False), network


def test_of_two_that_do_alike_the_one_that_may_be_left_on_is_advised() -> None:
    record = planted()
    tail = record["controller"] == "tail"
    record.loc[tail, "ratio"] = 0.999 * record.loc[~tail, "ratio"].to_numpy()
    assert advise(Network(**NETWORK | {"loss": 0.08}), record).use["controller"] == "safe"


def test_what_harms_and_what_is_undecided_is_counted() -> None:
    network = Network(**NETWORK | {"size_bytes": 1_000_000, "loss": 0.001})
    counts = {c.controller: (c.harmed, c.undecided) for c in advise(network, planted()).candidates}
    assert counts == {"tail": (NEAR, 0), "safe": (0, counts["safe"][1])}
    assert counts["safe"][1] > NEAR / 2


def test_what_was_not_measured_is_said() -> None:
    for beyond in (
        {"rtt_ms": 5000},
        {"bandwidth_mbps": 0.1},
        {"loss": 0.5},
        {"size_bytes": 10**9},
        {"burst": 20},
    ):
        advice = advise(Network(**NETWORK | beyond), planted())
        assert advice.outside and advice.beyond.keys() == beyond.keys()


def test_the_recorded_networks_behind_an_advice_give_its_ratio_again() -> None:
    advice = advise(Network(**NETWORK | {"size_bytes": 60_000}), planted())
    assert advice.size_bytes == 50_000
    of_each = advice.nearest.groupby("controller")["ratio"]
    assert (of_each.size() == NEAR).all()
    for candidate in advice.candidates:
        mean = np.exp(np.log(of_each.get_group(candidate.controller)).mean())
        assert candidate.ratio == pytest.approx(mean)


def test_networks_are_counted_by_what_virtual_time_is_vouched_for_in_means() -> None:
    margins = {size: advise(Network(**NETWORK | {"size_bytes": size}), planted()).margin for size in SIZES}
    assert margins == {10_000: 0.03, 50_000: 0.06, 1_000_000: 0.06}  # docs/virtual-time.md


def test_losses_may_be_a_percentage_and_what_the_answer_rests_on_is_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    network = ["advise", "--rtt-ms", "80", "--bandwidth-mbps", "20", "--size-bytes", "50000"]
    said = []
    for loss in ("0.02", "2%"):
        app([*network, "--loss", loss, "--output", str(tmp_path / "near.csv")], standalone_mode=False)
        said.append(capsys.readouterr().out)
    assert said[0] == said[1]
    assert len(pd.read_csv(tmp_path / "near.csv")) == len(CONTROLLERS) * NEAR


IMPOSSIBLE: list[tuple[dict[str, float], str]] = [
    ({"loss": 2}, "loss = 2: must be 0 or more and below 1"),
    ({"rtt_ms": 0}, "rtt_ms = 0: must be above 0"),
    ({"burst": 0.5}, "burst = 0.5: must be 1 or more"),
    ({"bandwidth_mbps": float("nan")}, "bandwidth_mbps = nan"),
]


def test_an_impossible_network_is_refused_in_a_line() -> None:
    for wrong, line in IMPOSSIBLE:
        with pytest.raises(BadInput, match=line.replace("(", r"\(")):
            Network(**NETWORK | wrong)


def test_the_command_answers_from_the_shipped_record(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = [
        "advise",
        "--rtt-ms",
        "80",
        "--bandwidth-mbps",
        "20",
        "--loss",
        "0.02",
        "--size-bytes",
        "50000",
    ]
    app([*arguments, "--json"], standalone_mode=False)
    document = json.loads(capsys.readouterr().out)
    assert set(document) >= {"use", "ratio", "interval", "networks", "outside"}
    assert document["networks"] == NEAR and document["outside"] is False
    app(arguments, standalone_mode=False)
    assert capsys.readouterr().out.startswith("Use scheme = ")
    assert RECORD.stat().st_size < 1_000_000


class Stored:
    """A campaign in which a ratio tells the network's number and the size; its rows are in no order."""

    info = SimpleNamespace(
        workloads=[
            {"label": f"download-{size}", "parameters": {"size_bytes": size}} for size in (1000, 10_000)
        ]
    )

    def __init__(self, losses: dict[str, list[float]]) -> None:
        self._losses = losses

    def points(self) -> pd.DataFrame:
        points = range(30)
        return pd.DataFrame(
            {"point": points, "bandwidth_mbps": [1.0 + point for point in points], "owd_ms": 10.0}
            | {name: [base + point / 1000 for point in points] for name, (base,) in self._losses.items()}
        )

    def intervals(self, baseline: str, variant: str) -> pd.DataFrame:
        assert baseline.partition(",")[0] == variant.partition(",")[0]
        rows = [
            {"workload": f"download-{size}", "point": point, "ratio": size + point, "verdict": "gain"}
            for size in (1000, 10_000)
            for point in range(30)
        ]
        return pd.DataFrame(rows).sample(frac=1, random_state=1)


def test_a_record_has_each_ratio_beside_its_network() -> None:
    losses = ({"loss.p": [0.01]}, {"loss.p": [0.002], "loss.r": [0.25]}, {})
    record = recorded(dict(zip(CAMPAIGNS, map(Stored, losses), strict=True)))  # type: ignore[arg-type]
    assert len(record) == 3 * 2 * 2 * 60
    point = record["ratio"] - record["size_bytes"]
    assert (record["bandwidth_mbps"] == 1 + point).all() and (record["rtt_ms"] == 20).all()
    uniform, bursts, none = (record.iloc[part * 240 : (part + 1) * 240] for part in range(3))
    assert np.allclose(uniform["loss"], 0.01 + point[uniform.index] / 1000)
    p, r = (base + point[bursts.index] / 1000 for base in (0.002, 0.25))
    assert np.allclose(bursts["loss"], p / (p + r)) and np.allclose(bursts["burst"], 1 / r)
    assert (none["loss"] == 0).all()


def test_the_shipped_record_is_of_its_designs_and_the_page_tells_what_it_holds() -> None:
    record = pd.read_parquet(RECORD)
    single = record[(record["loss"] > 0) & (record["burst"] < 1.5)]
    planned = pd.DataFrame(designs.load(designs.catalogue()["never-harms"]).plan().points)
    page = (REPOSITORY / "docs/which-fec.md").read_text()
    for (control, controller), rows in single.groupby(["congestion_control", "controller"]):
        cells = []
        for size, of_size in rows.groupby("size_bytes"):
            assert np.allclose(of_size["bandwidth_mbps"], planned["bandwidth_mbps"])
            assert np.allclose(of_size["loss"], planned["loss.p"])
            counts = [int((of_size["verdict"] == verdict).sum()) for verdict in ("gain", "harm")]
            decided = "; {}, {}".format(*counts) if size < 5_000_000 else ""
            cells.append(f"{np.exp(np.log(of_size['ratio']).mean()):.3f}{decided}")
        name = {"cubic": "Cubic", "bbr3": "BBRv3"}[control]
        arm = {"safe": "`safe`", "tail": "in the tail"}[controller]
        assert f"| {name}, {arm} | {' | '.join(cells)} |" in page
