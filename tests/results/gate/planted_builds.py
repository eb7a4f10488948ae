"""Campaigns of two builds whose truth is known, and the verdict that the gate comes to, look by look."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fecbench.looks import looks_of_builds
from fecbench.results.gate.failing import is_deterministic
from fecbench.results.gate.measuring import disturbed_unlike, measured
from fecbench.results.gate.overall import NEW, OLD
from fecbench.results.gate.verdict import Verdict, is_settled, margins_for, verdict_of
from fecbench.results.store.records import CampaignInfo
from tests.support.campaigns import campaign_info, types_of, variants, workload

SIZES = (1_000, 10_000, 100_000)
Cube = NDArray[np.float64]
"""Numbers by point, workload and repetition."""
Effect = Callable[[np.random.Generator, tuple[int, int, int]], Cube]
"""Factor by which each trial of the new build takes longer."""
Failing = Callable[[np.random.Generator, tuple[int, int, int]], tuple[NDArray[np.bool_], NDArray[np.bool_]]]
"""Trials of the old build that fail, and those of the new one."""


@dataclass(frozen=True)
class Plan:
    """Size of a campaign."""

    points: int
    workloads: int
    repetitions: int

    def campaign(self, engine: str) -> CampaignInfo:
        labels = [
            workload(f"{name}-{size}", name, size_bytes=size)
            for name in ("download", "upload")
            for size in SIZES
        ]
        return campaign_info(
            repetitions=self.repetitions,
            statistic="mean",
            margin=0.01,
            provenance={"engine": engine},
            points=[{"owd_ms": 5.0 + point} for point in range(self.points)],
            variants=variants(OLD, NEW),
            workloads=[{**item, "metric": "client.dct_s"} for item in labels[: self.workloads]],
        )


@dataclass(frozen=True)
class Builds:
    """An old build and a new one. Under losses, either takes longer now and then, as often and as much."""

    effect: Effect
    failing: Failing | None = None
    engine: str = "virtual"
    over_at: int | None = None
    """The look at which the time is over."""
    invalid: float = 0.0
    """The share of the slow trials of the new build that stay invalid, of those the effect makes slower."""

    def frame(self, random: np.random.Generator, plan: Plan, campaign: CampaignInfo) -> pd.DataFrame:
        """Return the trials as `frames.trials` has them."""
        shape = (plan.points, plan.workloads, plan.repetitions)
        usual = np.exp(random.normal(-1, 0.5, (*shape[:2], 1)) + _now_and_then(random, shape, 0.5))
        delays = _now_and_then(random, shape, 0.22) * random.choice([-1, 1], shape)
        effect = self.effect(random, shape)
        times = {
            OLD: usual * np.exp(np.maximum(-delays, 0)),
            NEW: usual * np.exp(np.maximum(delays, 0)) * effect,
        }
        failing = (np.zeros(shape, bool),) * 2 if self.failing is None else self.failing(random, shape)
        labels = [item["label"] for item in campaign.workloads]
        point, label, repetition = (index.ravel() for index in np.indices(shape))
        arms = []
        for (arm, of_arm), fails in zip(times.items(), failing, strict=True):
            state = np.where(fails, "failed", "ok")
            if arm == NEW and self.invalid:
                state = np.where((effect > 1) & (random.random(shape) < self.invalid), "invalid", state)
            arms.append(
                pd.DataFrame(
                    {
                        "workload": np.array(labels)[label],
                        "point": point,
                        "repetition": repetition,
                        "variant": arm,
                        "state": state.ravel(),
                        "client.dct_s": of_arm.ravel(),
                    }
                )
            )
        table = pd.concat(arms, ignore_index=True)
        table = table.astype(types_of(campaign))
        return table.assign(id=np.arange(len(table)) + 1, attempt=1)

    def verdict(self, random: np.random.Generator, plan: Plan) -> Verdict:
        """Return what the gate says at the end of a campaign."""
        campaign = plan.campaign(self.engine)
        margins, looks = margins_for(campaign), looks_of_builds(plan.repetitions)
        frame = self.frame(random, plan, campaign)
        for place, repetitions in enumerate(looks):
            is_over = place == self.over_at
            share = (len(looks) - place if is_over else 1) / len(looks)
            there = frame[frame["repetition"] < repetitions]
            unlike = disturbed_unlike(_attempts(there), campaign, share)
            result = measured(there, campaign, share, unlike)
            if is_over or is_settled(result, margins, is_deterministic(campaign)):
                break
        return verdict_of(result, margins)


def _now_and_then(random: np.random.Generator, shape: Sequence[int], scale: float) -> Cube:
    hit: Cube = (random.random(shape) < 0.15) * random.exponential(scale, shape)
    return hit


def _attempts(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the table of `attempts.by_variant`."""
    counts = [
        frame.loc[frame["variant"] == arm, "state"].eq("invalid").agg(["sum", "size"]) for arm in (OLD, NEW)
    ]
    table = [[int(item["sum"]), int(item["size"] - item["sum"])] for item in counts]
    rows: list[dict[str, Any]] = [
        {"variant": arm, "attempts": sum(row), "invalid": row[0], "invalid_share": row[0] / sum(row)}
        | {"low": math.nan, "high": math.nan, "p_value": math.nan}
        for arm, row in zip((OLD, NEW), table, strict=True)
    ]
    rows[1]["p_value"] = 1.0
    if any(row[0] for row in table):
        import scipy.stats  # slow to load, and so is its test

        rows[1]["p_value"] = float(scipy.stats.fisher_exact(table).pvalue)
    return pd.DataFrame(rows)


def everywhere(ratio: float) -> Effect:
    return lambda _, shape: np.full(shape, ratio)


def in_workloads(ratios: dict[int, float]) -> Effect:
    """Return the effect of each of these workloads by its place; the others are unchanged."""

    def effect(_: np.random.Generator, shape: tuple[int, int, int]) -> Cube:
        of_workloads = np.ones(shape)
        for place, ratio in ratios.items():
            of_workloads[:, place] = ratio
        return of_workloads

    return effect


def in_one_network(ratio: float, workloads: slice | int = slice(None)) -> Effect:
    def effect(_: np.random.Generator, shape: tuple[int, int, int]) -> Cube:
        of_network = np.ones(shape)
        of_network[shape[0] // 2, workloads] = ratio
        return of_network

    return effect


def in_rare_trials(share: float, ratio: float) -> Effect:
    return lambda random, shape: np.where(random.random(shape) < share, ratio, 1.0)


def fails_alone(share: float) -> Failing:
    return lambda random, shape: (np.zeros(shape, bool), random.random(shape) < share)


def fails_as_often(share: float) -> Failing:
    """Return failures of each build with this share, independent of each other."""
    return lambda random, shape: (random.random(shape) < share, random.random(shape) < share)


def fails_in_both(share: float) -> Failing:
    def failing(
        random: np.random.Generator, shape: tuple[int, int, int]
    ) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        both = random.random(shape) < share
        return both, both

    return failing
