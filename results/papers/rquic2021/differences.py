"""Differences between our experiments and those of rQUIC's evaluation.

Only facts, with numbers as far as the trials show the effect of a difference. Explanations are suppositions,
and stand in the notebook.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator

import pandas as pd

from fecbench.results.papers.claim import shown
from fecbench.results.papers.queues import queue_in_words
from fecbench.results.papers.rquic2021.rates import (
    LOSS,
    NETWORKS,
    fec_off,
    networks_of,
    ok_trials,
    variants_with_fec,
)
from fecbench.results.store.records import CampaignInfo

_SIZE = "workload.size_bytes"
_OUT_OF_ORDER = "client.recovered_out_of_order"
# Its name in campaigns that lack it: they were recorded when late had another meaning.
_LATE = "client.recovered_late"
_SPURIOUS = "server.spurious_losses"
_LOST = "server.packets_lost"
_SENT = "server.packets_sent"

_AS_TODAY = (
    "quic-go has changed since 2021. Once a packet that it declared lost turns out to have arrived, it"
    " restores the congestion window, no longer takes three newer packets for a loss, and waits at least"
    " 9/8 RTT instead."
)
_AS_IN_2020 = (
    "quic-go recovers from losses as in 2020, when the paper's system was made from it: that a packet"
    " which it declared lost turns out to have arrived changes nothing. All else is of today."
)

_REPETITIONS = {"download": "more than 1150", "page": "3500"}


def differences(frame: pd.DataFrame, campaign: CampaignInfo, workload: str) -> list[str]:
    """Return the differences of every experiment, beside the figure that shows its trials first."""
    ok = ok_trials(frame, campaign, workload)
    measured = not ok.empty and {_LATE, _SPURIOUS, _LOST, _SENT} <= set(ok.columns)
    return [
        *(_declared_losses(ok, campaign) if measured and LOSS in ok else ()),
        *(_spurious_losses(ok, campaign) if measured else ()),
        "A packet that the receiver held counts here as arrived when it is let through, so QUIC's RTT"
        " contains the buffer timeout; the original kept the true time of arrival.",
        f"Repetitions: {frame['repetition'].nunique()}; the paper has {_REPETITIONS[workload]}. It names no"
        f" queue; here the link's {queue_in_words(campaign)}.",
        *_sizes(campaign, workload),
    ]


def differences_of_rates(_frame: pd.DataFrame, _campaign: CampaignInfo, workload: str) -> list[str]:
    """Return the differences beside a figure of the same trials."""
    return [
        f"The trials are those of Fig. {5 if workload == 'download' else 7}; what is said there holds here."
        " The paper draws the results of its first implementation, too."
    ]


def _declared_losses(ok: pd.DataFrame, campaign: CampaignInfo) -> Iterator[str]:
    """Yield the losses that QUIC declared: they explain ξ, and the overhead where the link loses nothing."""
    arms = {"without FEC": [fec_off(campaign)], "with it": variants_with_fec(campaign)}
    groups = {arm: ok[ok["variant"].isin(labels)].groupby(["network", LOSS]) for arm, labels in arms.items()}
    share = pd.DataFrame(
        {arm: group[_LOST].sum() / group[_SENT].sum() for arm, group in groups.items()}
    ).dropna()
    if share.empty:
        return
    most = share.index.get_level_values(LOSS).max()
    yield (
        f"QUIC declared lost, of what it sent at {_percent(most)} loss:"
        f" {_by_network(share, most, '.1%')}. Algorithm 1 aims at a residual loss of 1 %."
    )
    per_trial = pd.DataFrame({arm: group[_LOST].mean() for arm, group in groups.items()}).dropna()
    if 0 in per_trial.index.get_level_values(LOSS):
        yield (
            "Packets declared lost in a trial where the link loses nothing:"
            f" {_by_network(per_trial, 0, '.0f')}. The overhead of Algorithm 1's largest Q, 63, is 1.6 %."
        )


def _by_network(table: pd.DataFrame, loss: float, number: str) -> str:
    """The row of each network at this loss rate, in words: a number in this format for each arm."""
    rows = table[table.index.get_level_values(LOSS) == loss].droplevel(LOSS)
    return "; ".join(
        f"{network} {', '.join(f'{shown(value, number)} {arm}' for arm, value in row.items())}"
        for network, row in rows.iterrows()
    )


def _spurious_losses(ok: pd.DataFrame, campaign: CampaignInfo) -> Iterator[str]:
    with_fec = ok[ok["variant"].isin(variants_with_fec(campaign))]
    late = _OUT_OF_ORDER if _OUT_OF_ORDER in ok else _LATE
    counts = with_fec.groupby("network")[[late, _SPURIOUS]].sum()
    if counts.empty:
        return
    of_networks = ", ".join(
        f"{network} {counts[late][network]:.0f} and {counts[_SPURIOUS][network]:.0f}"
        for network in networks_of(campaign)
        if network in counts.index
    )
    yield (
        f"{_AS_IN_2020 if _recovers_as_in_2020(campaign) else _AS_TODAY} Recovered after newer packets had"
        f" been let through, and declared lost though they arrived, in all trials with FEC: {of_networks}."
    )


def _recovers_as_in_2020(campaign: CampaignInfo) -> bool:
    constants = tomllib.loads(campaign.design_text).get("constants", {})
    return bool(constants.get("option", {}).get("recovery") == "2020")


def _sizes(campaign: CampaignInfo, workload: str) -> Iterator[str]:
    if workload == "page":
        yield (
            "The paper's page is a recording of flickr.com of less than 2 MB, and it does not say of how many"
            " objects, over how many connections; ours is a generated front page of a photo site, of 1.9 MB."
        )
        return
    run = {(str(point["network"]), float(point[_SIZE])) for point in campaign.points if _SIZE in point}
    others = [
        f"{network} {size / 2**20:g} MiB for {NETWORKS[network].size_bytes / 2**20:g}"
        for network, size in sorted(run)
        if network in NETWORKS and size != NETWORKS[network].size_bytes
    ]
    if others:
        yield (
            f"Other sizes than the paper's ({', '.join(others)}): in a smaller transfer, the start of the"
            " connection weighs more."
        )


def _percent(share: float) -> str:
    return f"{100 * share:g} %"
