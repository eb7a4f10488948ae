"""A record in which what helps where is known."""

import itertools
from typing import Any

import pandas as pd

SIZES = (10_000, 50_000, 1_000_000)
NETWORK: dict[str, Any] = {"rtt_ms": 80, "bandwidth_mbps": 20, "loss": 0.02, "size_bytes": 50_000}
LOSSES = (0.001, 0.004, 0.02, 0.08)
LOSS_AND_BURST = [(0.0, 1.0), *((loss, 1 / (1 - loss)) for loss in LOSSES), *((loss, 4.0) for loss in LOSSES)]
RATES, RTTS = [10 ** (i / 5) for i in range(11)], [10 * 2 ** (i / 2) for i in range(13)]


def planted() -> pd.DataFrame:
    """`safe` gains 10 % where losses are above 1 %. `tail` gains 5 % over lossy links but at 1 MB, where it
    harms. Beside BBRv3, nothing does anything. Networks differ by 0.3 %."""
    rows = []
    for number, (rate, rtt, (loss, burst)) in enumerate(itertools.product(RATES, RTTS, LOSS_AND_BURST)):
        network = {
            **{"bandwidth_mbps": rate, "rtt_ms": rtt, "loss": loss, "burst": burst},
            **{"queue_bdp": (0.25, 1.0, 4.0)[number % 10 % 3], "noise": 1 + (number % 7 - 3) / 1000},
        }
        for control, size in itertools.product(("cubic", "bbr3"), SIZES):
            of = {"safe": 0.9 if loss > 0.01 else 1.0, "tail": 1.05 if size == 1_000_000 else 0.95}
            for controller, ratio in of.items():
                ratio = 1.0 if control == "bbr3" or loss == 0 else ratio
                arm = {"congestion_control": control, "controller": controller, "size_bytes": size}
                verdict = {1.05: "harm", 1.0: "undecided"}.get(ratio, "gain")
                rows.append(arm | network | {"ratio": ratio, "verdict": verdict})
    record = pd.DataFrame(rows)
    return record.assign(ratio=record["ratio"] * record.pop("noise"))
