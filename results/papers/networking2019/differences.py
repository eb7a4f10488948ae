"""Differences between our experiments and those of Networking 2019.

Only facts, with numbers as far as the trials show the effect of a difference. Explanations are suppositions,
and stand in the notebook.
"""

from __future__ import annotations

import pandas as pd

from fecbench.quantities import counted
from fecbench.results.analysis.pairing import paired
from fecbench.results.papers.networking2019.comparisons import (
    DCT,
    OFF,
    RLC,
    backgrounds,
    by_point,
    ratios,
    variant_with,
)
from fecbench.results.papers.queues import queue_in_words
from fecbench.results.store.records import CampaignInfo

_WINDOW = [f"background_server.window_{change}" for change in ("reductions", "restorations")]


def differences(frame: pd.DataFrame, campaign: CampaignInfo) -> list[str]:
    """Return the differences of every experiment."""
    return [
        "noq speaks IETF QUIC; the paper's quic-go spoke Google's. Pacing, loss recovery (probe timeouts in"
        " the place of tail loss probes) and the first window are others, and requests are hq-interop's.",
        f"Repetitions: {frame['repetition'].nunique()}, at {counted(len(campaign.points), 'point')}."
        " The paper names no"
        f" queue; here the link's {queue_in_words(campaign)}.",
    ]


def differences_under_bursts(frame: pd.DataFrame, campaign: CampaignInfo) -> list[str]:
    """Return the differences with the left-out pairs, and the range of the ratios, which makes means of
    them say little."""
    sentences = [
        *differences(frame, campaign),
        "A burst lasts for a number of packets, however rarely they are sent, and probe timeouts double: to"
        " probe through a long one may take minutes.",
    ]
    arms = variant_with(campaign, OFF), variant_with(campaign, RLC)
    unpaired = paired(frame, *arms, DCT, campaign.statistic).unpaired
    by_reason = unpaired.groupby("reason")["repetitions"].sum()
    if not by_reason.empty:
        counts = ", ".join(f"{repetitions} ({reason})" for reason, repetitions in by_reason.items())
        sentences.append(
            f"The paper leaves out losses too intense for a transfer. Repetitions without a ratio: {counts}."
        )
    ratio = ratios(frame, campaign, RLC)["ratio"].dropna()
    if not ratio.empty:
        extreme = int((ratio > 3).sum())
        sentences.append(f"{extreme} of {len(ratio)} ratios are above 3; the greatest is {ratio.max():.1f}.")
    return sentences


def differences_in_fairness(frame: pd.DataFrame, campaign: CampaignInfo) -> list[str]:
    """Return the differences, with how often the background's window fell and came back: whether masking
    had anything to mask."""
    sentences = differences(frame, campaign)
    trials = backgrounds(frame, campaign)
    ok = trials[trials["state"] == "ok"]
    if ok.empty or not set(_WINDOW) <= set(ok):
        return sentences
    counts = []
    for where, of_point in by_point(ok, campaign):
        medians = of_point.groupby("variant", observed=True)[_WINDOW].median()
        of_labels = "; ".join(f"{label}: {fell:g}, {back:g}" for label, (fell, back) in medians.iterrows())
        counts.append(f"where {where}, {of_labels}" if where else of_labels)
    return [
        *sentences,
        "How often losses made the background's congestion window smaller, and how often it came back since"
        f" they were masked (medians): {'. '.join(counts)}.",
    ]
