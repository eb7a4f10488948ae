"""Live video at latency targets: the share of frames that is usable, with a variant and with its baseline.

A target makes no other trial: each share is read from the same ones. Whether a retransmission comes in time
follows from the target in round trips.

Shares are compared by their difference: a baseline without a usable frame has no ratio.
"""

from __future__ import annotations

import math

import numpy as np
import pandas as pd

from fecbench.results.analysis import frames, outcomes, tolerances
from fecbench.results.analysis.intervals import FEWEST, LEVEL, VERDICTS
from fecbench.results.analysis.one_host import of_several_hosts
from fecbench.results.analysis.pairing import PAIR, baselines_of
from fecbench.results.analysis.quantiles import t_quantile
from fecbench.results.analysis.tidy import with_round_trips
from fecbench.results.metrics import of, target
from fecbench.results.store.records import CampaignInfo

COLUMNS = (
    *("workload", "network", "point", "rtt_ms", "target_ms", "round_trips", "compared_with", "variant"),
    *("repetitions", "baseline_share", "share", "difference", "low", "high", "margin", "verdict"),
)
SHARES = (
    *("workload", "network", "point", "rtt_ms", "target_ms", "round_trips"),
    *("variant", "repetition", "share"),
)
_ROUND_TRIP = "rtt_ms"
_SIGNS = {"gain": "+", "harm": "−"}
_BANDS = {"below 2 RTT": (0.0, 2.0), "2 to 3 RTT": (2.0, 3.0), "3 RTT and more": (3.0, math.inf)}
"""Targets in round trips, the first bound included."""
_ONE_WAY = 0.5
"""The delay of one way, in round trips: by then nothing arrives."""


def shares(frame: pd.DataFrame, campaign: CampaignInfo) -> pd.DataFrame:
    """Return one row a (trial, target), with the columns SHARES: the share of video frames that is usable, 0
    for a trial that failed or timed out. `round_trips` is the target divided by the round-trip time of the
    network without a queue. Empty where no trial broadcast, or the design says no delay."""
    columns = {name: delay for name in map(str, frame) if (delay := target(name)) is not None}
    points = with_round_trips(frames.points(campaign), campaign)
    live = [workload["label"] for workload in campaign.workloads if workload["name"] == "live"]
    rows = frame[frame["workload"].isin(live) & (frame["repetition"] < campaign.averaged_repetitions)]
    if not columns or rows.empty or _ROUND_TRIP not in points:
        return pd.DataFrame(columns=list(SHARES))
    key = ["workload", "point", "variant", "repetition"]
    long = pd.concat(
        rows[key].assign(target_ms=delay, share=outcomes.shares(rows, of(name)))
        for name, delay in columns.items()
    ).dropna(subset="share")
    places = points[["point", _ROUND_TRIP]].assign(network=networks(points))
    whole = long.merge(places, on="point", validate="many_to_one")
    whole = whole.assign(round_trips=whole["target_ms"] / whole[_ROUND_TRIP])
    return whole[list(SHARES)].reset_index(drop=True)


def networks(points: pd.DataFrame) -> pd.Series:
    """Return the kind of network of each point, in words: all factors but the delay. A factor that names the
    values of all others stands for them."""
    others = [
        str(name)
        for name in points
        if name != "point" and not str(name).endswith(("owd_ms", "rtt_ms")) and points[name].nunique() > 1
    ]
    for name in others:
        if points.groupby(name, observed=True)[others].nunique().to_numpy().max() <= 1:
            return points[name].astype(str)
    words = [[f"{name} {value}" for value in points[name]] for name in others]
    return pd.Series([", ".join(row) for row in zip(*words, strict=True)] or "all networks", points.index)


def verdicts(frame: pd.DataFrame, campaign: CampaignInfo) -> pd.DataFrame:
    """Return one row a (workload, point, target, variant with a baseline) of `shares`: COLUMNS.

    `share` and `baseline_share` are means over the repetitions in which both have one and one host ran both
    (`one_host`), and `difference` is that of the two; `low` to `high` is its 95 % interval (Student's, of the
    differences of pairs), NaN below six pairs. `margin`: the difference that does not matter, as a share of
    all frames: the design's, in virtual time no less than what is vouched for. `verdict`: gain or harm where
    the whole interval is beyond the margin, equivalent where it is within it, else undecided.
    """
    margin = campaign.margin
    if campaign.engine == "virtual":
        margin = max(margin, tolerances.SHARE.above)
    place, table = (
        ["workload", "network", "point", "rtt_ms", "target_ms", "round_trips"],
        shares(frame, campaign),
    )
    parts = []
    for variant, baseline in baselines_of(campaign).items():
        arms = {
            label: table[table["variant"] == label].drop(columns="variant") for label in (baseline, variant)
        }
        pairs = arms[baseline].merge(arms[variant], on=[*place, "repetition"], suffixes=("_baseline", ""))
        elsewhere = pairs.set_index(PAIR).index.isin(of_several_hosts(frame, [baseline, variant]))
        pairs = pairs[~elsewhere].assign(difference=pairs["share"] - pairs["share_baseline"])
        if pairs.empty:
            continue
        parts.append(
            pairs.groupby(place, observed=True)
            .agg(
                repetitions=("difference", "size"),
                baseline_share=("share_baseline", "mean"),
                share=("share", "mean"),
                difference=("difference", "mean"),
                deviation=("difference", "std"),
            )
            .reset_index()
            .assign(compared_with=baseline, variant=variant, margin=margin)
        )
    if not parts:
        return pd.DataFrame(columns=list(COLUMNS))
    rows = pd.concat(parts, ignore_index=True)
    half = [
        half_interval(deviation, count)
        for deviation, count in zip(rows["deviation"], rows["repetitions"], strict=True)
    ]
    rows = rows.assign(low=rows["difference"] - half, high=rows["difference"] + half)
    words = np.select(
        [rows["low"] > margin, rows["high"] < -margin, (rows["low"] >= -margin) & (rows["high"] <= margin)],
        VERDICTS[:3],
        VERDICTS[3],
    )
    return rows.assign(verdict=pd.Categorical(words, VERDICTS))[list(COLUMNS)]


def half_interval(deviation: float, count: int) -> float:
    """Return half the width of the 95 % interval of a mean of so many values with this deviation; NaN for too
    few."""
    if count < FEWEST:
        return math.nan
    return t_quantile(1 - LEVEL / 2, count - 1) * deviation / math.sqrt(count)


def in_words(table: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of `verdicts` as a reader sees them: a row a network and baseline, a column a target.

    A cell has the per cent of frames that are usable, of the baseline and then of each variant that is
    compared with it: with a + where that surely helps, and a − where it surely harms. The baseline has a
    range where variants met it in other repetitions, and a variant without a pair has a "?"."""
    families = table["compared_with"].unique()
    arms = {baseline: table[table["compared_with"] == baseline]["variant"].unique() for baseline in families}
    place = ["workload", "network", "rtt_ms"]
    rows = []
    for (*_, baseline), network in table.sort_values("point", kind="stable").groupby(
        [*place, "point", "compared_with"], sort=False, observed=True
    ):
        first = network.iloc[0]
        several = [first["workload"]] if table["workload"].nunique() > 1 else []
        several += [f"beside {baseline}"] if len(families) > 1 else []
        row = {"network": ", ".join([first["network"], *several]), "RTT": f"{first['rtt_ms']:g} ms"}
        for target_ms, cell in network.groupby("target_ms"):
            of_baseline = [f"{100 * share:.0f}" for share in sorted(cell["baseline_share"])]
            of_arms = {
                variant: f"{100 * share:.0f}{_SIGNS.get(verdict, '')}"
                for variant, share, verdict in zip(
                    cell["variant"], cell["share"], cell["verdict"], strict=True
                )
            }
            ends = dict.fromkeys([of_baseline[0], of_baseline[-1]])
            words = [" to ".join(ends), *(of_arms.get(arm, "?") for arm in arms[baseline])]
            row[f"{target_ms:g} ms"] = " / ".join(words)
        rows.append(row)
    return pd.DataFrame(rows)


def signs(table: pd.DataFrame) -> pd.DataFrame:
    """Return how many cells of `in_words` have a + and a −: a row a variant, a column for targets below two
    round trips, below three, and longer ones. One at the delay of one way or below does not count."""
    rows: dict[str, list[str]] = {"variant": list(map(str, table["variant"].unique()))}
    trips = table["round_trips"]
    for name, (low, high) in _BANDS.items():
        band = table[(trips >= low) & (trips < high) & (trips > _ONE_WAY)]
        of_arms = [band.loc[band["variant"] == variant, "verdict"] for variant in rows["variant"]]
        counts = [len(verdicts_of_arm) for verdicts_of_arm in of_arms]
        cells = [", ".join(str((cells == verdict).sum()) for verdict in _SIGNS) for cells in of_arms]
        if len(set(counts)) == 1:
            rows[f"{name}: + and −, of {counts[0]}"] = cells
        else:
            rows[f"{name}: + and −"] = [
                f"{cell} of {count}" for cell, count in zip(cells, counts, strict=True)
            ]
    return pd.DataFrame(rows)
