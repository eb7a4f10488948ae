"""Comparisons in the figures and claims of Networking 2019: ratios of two arms, and losses of a download
beside another transfer.

Ratios are those of `results.analysis.pairing`: 0 or ∞ where one arm alone failed or timed out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Literal

import pandas as pd

from fecbench.results.analysis import frames
from fecbench.results.analysis.pairing import paired
from fecbench.results.figures.nothing import NothingToDraw
from fecbench.results.store.records import CampaignInfo

Unit = Literal["point", "repetition"]

DCT = "client.dct_s"

OFF: dict[str, Any] = {"scheme": "none"}
RLC: dict[str, Any] = {"scheme": "rlc", "n": 3, "k": 2}
RLC_4_5: dict[str, Any] = {"scheme": "rlc", "n": 5, "k": 4}
REED_SOLOMON: dict[str, Any] = {"scheme": "rs", "n": 30, "k": 20}

SMALL = (1_000, 10_000, 50_000)
LARGE = 1_000_000


def variant_with(campaign: CampaignInfo, options: Mapping[str, Any]) -> str:
    """The label of the design's variant with these options. Raises NothingToDraw when there is none."""
    for variant in campaign.variants:
        if options.items() <= variant["options"].items():
            return str(variant["label"])
    options_in_words = ", ".join(f"{name} = {value}" for name, value in options.items())
    raise NothingToDraw(f"No variant of this design has {options_in_words}.")


def ratios(
    frame: pd.DataFrame,
    campaign: CampaignInfo,
    options: Mapping[str, Any],
    to: Mapping[str, Any] = OFF,
    unit: Unit = "point",
) -> pd.DataFrame:
    """The DCT ratio of the variant with `options` to that with the options `to`, by size.

    One row a (size_bytes, point), of the medians; or a (size_bytes, point, repetition), for loss patterns; of
    all that were run. Columns: these, `ratio` (NaN where it is unknown), whether it is `censored`, and the
    factors of the point. Raises NothingToDraw when the design lacks one of the two.
    """
    variant, baseline = (variant_with(campaign, arm) for arm in (options, to))
    pairing = paired(frame, baseline, variant, DCT, campaign.statistic)
    key = ["workload", "point"] if unit == "point" else ["workload", "point", "repetition"]
    run = frame.loc[frame["variant"].isin([variant, baseline]), key].drop_duplicates()
    table = run.merge(pairing.ratios if unit == "point" else pairing.matched, how="left", on=key)
    sizes = {workload["label"]: workload["parameters"]["size_bytes"] for workload in campaign.workloads}
    table = table.assign(size_bytes=table["workload"].astype(str).map(sizes))
    return table.merge(frames.points(campaign), on="point")


def sizes_of(campaign: CampaignInfo, sizes: Iterable[int]) -> list[int]:
    """Return the sizes, of these, that the design has downloads of."""
    planned = {workload["parameters"].get("size_bytes") for workload in campaign.workloads}
    return [size_bytes for size_bytes in sizes if size_bytes in planned]


def of_size(table: pd.DataFrame, size_bytes: int) -> pd.DataFrame:
    """The rows of `ratios` for downloads of one size."""
    return table[table["size_bytes"] == size_bytes]


def backgrounds(frame: pd.DataFrame, campaign: CampaignInfo) -> pd.DataFrame:
    """The trials in which the foreground has no FEC, each with the background's label as its variant.

    They have one workload, `beside`: so `pairing.paired` compares what the foreground met.
    """
    labels = {
        workload["label"]: workload["parameters"]["background"]
        for workload in campaign.workloads
        if workload["name"] == "competing"
    }
    foreground = variant_with(campaign, OFF)
    of_off = frame[(frame["variant"] == foreground) & frame["workload"].isin(list(labels))]
    return of_off.assign(variant=of_off["workload"].astype(str).map(labels), workload="beside")


def by_point(trials: pd.DataFrame, campaign: CampaignInfo) -> Iterator[tuple[str, pd.DataFrame]]:
    """The trials of each point, with what sets it apart: "queue_bdp = 0.3", and nothing for the only one."""
    factors = frames.points(campaign).drop(columns="point")
    varying = [name for name in factors.columns if factors[name].nunique() > 1]
    for point, values in enumerate(factors.to_dict("records")):
        where = ", ".join(f"{name} = {values[name]}" for name in varying)
        yield where, trials[trials["point"] == point]
