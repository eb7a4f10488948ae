"""What to use in a network, from recorded campaigns: the designs `never-harms…` in virtual time.

`python -m fecbench.results.advice DATABASE` writes the record anew.
"""

import math
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd
from scipy import stats

from fecbench.errors import BadInput
from fecbench.results import reading
from fecbench.results.analysis import tolerances
from fecbench.results.store.records import DEFAULT_MARGIN

RECORD = Path(__file__).with_name("advice.parquet")
CAMPAIGNS = ("never-harms", "never-harms-bursts", "never-harms-no-loss")
CONTROLLERS = {"safe": "safe", "RLC (3, 2, 20), tail": "tail"}
"""The arms that are advised, as the designs label them, and what noq-fec calls their controllers. The first
one harms least where the network changes."""
CONGESTION_CONTROLS = {"Cubic": "cubic", "BBRv3": "bbr3"}
NEAR = 40
"""So many recorded networks are asked."""
PLACE = ("bandwidth_mbps", "rtt_ms", "loss", "burst")
"""What says how near two networks are."""
NO_LOSS = 1e-4
"""Losses below are as good as none: the ranges begin at one packet in 1,000."""

CongestionControl = Literal["cubic", "bbr3"]


@dataclass(frozen=True)
class Network:
    """What is known of a network, and of the transfer over it."""

    rtt_ms: float
    bandwidth_mbps: float
    loss: float
    """The share of packets that is lost, 0 to 1."""
    size_bytes: float
    burst: float = 1
    """How many packets are lost in a row, on average."""
    congestion_control: CongestionControl = "cubic"

    def __post_init__(self) -> None:
        for name in ("rtt_ms", "bandwidth_mbps", "size_bytes"):
            if not 0 < getattr(self, name) < math.inf:
                raise BadInput(f"{name} = {getattr(self, name):g}: must be above 0, and finite")
        if not 0 <= self.loss < 1:
            raise BadInput(f"loss = {self.loss:g}: must be 0 or more and below 1: the share of packets lost")
        if not 1 <= self.burst < math.inf:
            raise BadInput(f"burst = {self.burst:g}: must be 1 or more, and finite: packets lost in a row")


@dataclass(frozen=True)
class Candidate:
    """What one controller does in networks like this one."""

    controller: str
    ratio: float
    """Geometric mean of the time with FEC to that without."""
    interval: tuple[float, float]
    """Of that mean, 95 %, over the networks near by."""
    harmed: int
    """In how many of them it surely takes longer, by more than `Advice.margin`."""
    undecided: int
    """In how many of them the trials do not decide whether it does."""
    helped: int
    """In how many of them it surely takes less, by more than `Advice.margin`."""


@dataclass(frozen=True)
class Advice:
    """What to use, and why."""

    use: dict[str, str]
    """Options of noq-fec."""
    ratio: float
    interval: tuple[float, float]
    networks: int
    """How many recorded networks it rests on."""
    outside: bool
    """Whether the network is outside of what was recorded."""
    beyond: dict[str, tuple[float, float]]
    """What of it is outside, with the least and the greatest that were recorded."""
    size_bytes: int
    """Of the downloads that it rests on: the recorded size next to the one asked for."""
    margin: float
    """The difference that the networks are counted by, as a share: what virtual time is vouched for."""
    candidates: list[Candidate]
    nearest: pd.DataFrame
    """The recorded networks that it rests on, a row for each of them and each controller."""

    def document(self) -> dict[str, Any]:
        fields = {name: getattr(self, name) for name in self.__dataclass_fields__ if name != "nearest"}
        return fields | {"candidates": list(map(asdict, self.candidates))}


def advise(network: Network, record: pd.DataFrame | None = None) -> Advice:
    """What to use there: the first of CONTROLLERS that surely shortens downloads in the networks near by,
    unless another surely does more; or else no FEC. The downloads have the recorded size next to this one."""
    record = pd.read_parquet(RECORD) if record is None else record
    rows = record[record["congestion_control"] == network.congestion_control]
    sizes = rows["size_bytes"].unique()
    size = int(min(sizes, key=lambda size: abs(math.log(size / network.size_bytes))))
    rows = rows[rows["size_bytes"] == size]
    here, there = _place(pd.DataFrame([asdict(network)])), _place(rows)
    spread = np.ptp(there, axis=0)
    distances = np.linalg.norm((there - here) / np.where(spread > 0, spread, 1), axis=1)
    is_beyond = (here < there.min(axis=0) - 1e-9) | (here > there.max(axis=0) + 1e-9)
    beyond = {
        name: (float(rows[name].min()), float(rows[name].max()))
        for name, is_outside in zip(PLACE, is_beyond[0], strict=True)
        if is_outside
    }
    if not min(sizes) <= network.size_bytes <= max(sizes):
        beyond["size_bytes"] = (float(min(sizes)), float(max(sizes)))
    near = {}
    for controller in CONTROLLERS.values():
        ours = np.flatnonzero((rows["controller"] == controller).to_numpy())
        near[controller] = rows.iloc[ours[np.argsort(distances[ours], kind="stable")[:NEAR]]]
    candidates = [_candidate(controller, nearest) for controller, nearest in near.items()]
    best = _best([candidate for candidate in candidates if candidate.interval[1] < 1])
    return Advice(
        use={"scheme": "none"} if best is None else {"scheme": "rlc", "controller": best.controller},
        ratio=1.0 if best is None else best.ratio,
        interval=(1.0, 1.0) if best is None else best.interval,
        networks=NEAR,
        outside=bool(beyond),
        beyond=beyond,
        size_bytes=size,
        margin=margin_of(size),
        candidates=candidates,
        nearest=pd.concat(near.values(), ignore_index=True),
    )


def margin_of(size_bytes: int) -> float:
    """The margin of the verdicts that are recorded for a size: of means in virtual time (`margins`)."""
    short = tolerances.is_short({"size_bytes": size_bytes})
    return max(DEFAULT_MARGIN, tolerances.vouched(is_share=False, short=short, of_mean=True))


def _best(helping: Sequence[Candidate]) -> Candidate | None:
    """The first of those that help, unless another surely helps more."""
    best = None
    for candidate in helping:
        best = candidate if best is None or candidate.interval[1] < best.interval[0] else best
    return best


def _place(rows: pd.DataFrame) -> np.ndarray:
    """Where networks lie, a row each: orders of magnitude."""
    columns = [
        np.log10(rows["bandwidth_mbps"]),
        np.log10(rows["rtt_ms"]),
        np.log10(np.maximum(rows["loss"], NO_LOSS)),
        np.log10(rows["burst"]),
    ]
    return np.column_stack([column.to_numpy(float) for column in columns])


def _candidate(controller: str, near: pd.DataFrame) -> Candidate:
    logs = np.log(near["ratio"].to_numpy(float))
    mean = float(logs.mean())
    half = float(stats.sem(logs) * stats.t.ppf(0.975, len(logs) - 1))
    interval = (math.exp(mean - half), math.exp(mean + half))
    counts = (int((near["verdict"] == verdict).sum()) for verdict in ("harm", "undecided", "gain"))
    return Candidate(controller, math.exp(mean), interval, *counts)


def recorded(database: reading.Results) -> pd.DataFrame:
    """The record: a row for each network, size, congestion control and controller of `CAMPAIGNS`."""
    parts = []
    for name in CAMPAIGNS:
        campaign = database[name]
        sizes = {
            workload["label"]: workload["parameters"]["size_bytes"] for workload in campaign.info.workloads
        }
        for cc_label, congestion_control in CONGESTION_CONTROLS.items():
            for arm, controller in CONTROLLERS.items():
                ratios = campaign.intervals(f"{cc_label}, no FEC", f"{cc_label}, {arm}")
                rows = ratios.merge(campaign.points(), on="point", validate="many_to_one")
                parts.append(
                    pd.DataFrame(
                        {
                            "congestion_control": congestion_control,
                            "controller": controller,
                            "size_bytes": rows["workload"].map(sizes).astype(int),
                            "bandwidth_mbps": rows["bandwidth_mbps"],
                            "rtt_ms": 2 * rows["owd_ms"],
                            **_losses(rows),
                            "ratio": rows["ratio"],
                            "verdict": rows["verdict"],
                        }
                    )
                )
    return pd.concat(parts, ignore_index=True)


def _losses(points: pd.DataFrame) -> dict[str, Any]:
    """The share of packets lost, and how many in a row: uniform losses, Gilbert's, or none."""
    if "loss.r" in points:
        p, r = points["loss.p"], points["loss.r"]
        return {"loss": p / (p + r), "burst": 1 / r}
    if "loss.p" in points:
        return {"loss": points["loss.p"], "burst": 1 / (1 - points["loss.p"])}
    return {"loss": 0.0, "burst": 1.0}


def main(arguments: Sequence[str]) -> None:
    """Write the record of the database that is named."""
    (path,) = arguments
    with reading.Results(path) as database:
        record = recorded(database)
    record.to_parquet(RECORD, index=False, compression="zstd")
    print(f"{RECORD}: {len(record)} rows")


if __name__ == "__main__":
    main(sys.argv[1:])
