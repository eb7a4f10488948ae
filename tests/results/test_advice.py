"""Advice from a record that is planted: what helps where is known."""

from __future__ import annotations

import itertools
import json
from typing import Any

import pandas as pd
import pytest

from fecbench.errors import BadInput
from fecbench.results.advice import NEAR, RECORD, Network, advise
from fecbench.runners.commands.command_line import app

NETWORK = {"rtt_ms": 80, "bandwidth_mbps": 20, "loss": 0.02, "size_bytes": 50_000}


def planted() -> pd.DataFrame:
    """`safe` gains 10 % where losses are above 1 %, and `tail` 5 % everywhere but at 1 MB, where it harms.
    Beside BBRv3, nothing does anything."""
    rows = []
    rates, rtts = [10 ** (i / 5) for i in range(11)], [10 * 2 ** (i / 2) for i in range(13)]
    grid = itertools.product(
        ("cubic", "bbr3"), (10_000, 50_000, 1_000_000), rates, rtts, (0.001, 0.004, 0.02, 0.08)
    )
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
                    "verdict": "harm" if ratio > 1.02 else "gain",
                }
            )
    return pd.DataFrame(rows)


@pytest.mark.parametrize(
    ("network", "use", "ratio"),
    [
        ({"loss": 0.08}, {"scheme": "rlc", "controller": "safe"}, 0.9),
        ({"loss": 0.001}, {"scheme": "rlc", "controller": "tail"}, 0.95),
        ({"loss": 0.001, "size_bytes": 1_000_000}, {"scheme": "none"}, 1.0),
        ({"congestion_control": "bbr3"}, {"scheme": "none"}, 1.0),
    ],
)
def test_the_controller_that_surely_helps_most_near_by_is_advised(
    network: dict[str, Any], use: dict[str, str], ratio: float
) -> None:
    advice = advise(Network(**(NETWORK | network)), planted())
    assert advice.use == use
    assert advice.ratio == pytest.approx(ratio, abs=0.02)
    assert advice.interval[0] <= advice.ratio <= advice.interval[1]
    assert (advice.networks, advice.outside) == (NEAR, False)


def test_what_harms_is_counted() -> None:
    candidates = {
        c.controller: c for c in advise(Network(**NETWORK | {"size_bytes": 1_000_000}), planted()).candidates
    }
    assert candidates["tail"].harmed > NEAR / 2 and candidates["safe"].harmed == 0


@pytest.mark.parametrize(
    "beyond", [{"rtt_ms": 5000}, {"bandwidth_mbps": 0.1}, {"loss": 0.5}, {"size_bytes": 10**9}, {"burst": 20}]
)
def test_what_was_not_measured_is_said(beyond: dict[str, float]) -> None:
    assert advise(Network(**NETWORK | beyond), planted()).outside


@pytest.mark.parametrize(
    ("wrong", "line"),
    [
        ({"loss": 2}, "loss = 2: must be 0 or more and below 1"),
        ({"rtt_ms": 0}, "rtt_ms = 0: must be above 0"),
        ({"burst": 0.5}, "burst = 0.5: must be 1 or more"),
        ({"bandwidth_mbps": float("nan")}, "bandwidth_mbps = nan"),
    ],
)
def test_an_impossible_network_is_refused_in_a_line(wrong: dict[str, float], line: str) -> None:
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
