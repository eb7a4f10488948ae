"""The timer of each variant's transfers: its own client, or the harness, which times those of clients that
do not report their times.

The two begin and end at other events, so no ratio of theirs is made unless a design names the baseline of
such a variant itself (`pairing.baselines_of`).
"""

from __future__ import annotations

from fecbench.results.analysis.pairing import baselines_of
from fecbench.results.store.records import CampaignInfo


def sentences(campaign: CampaignInfo) -> list[str]:
    """Return which variants the harness timed, and which ratios are of two timers; nothing where every
    client reported its times."""
    timed = [
        variant["label"] for variant in campaign.variants if variant["label"] in campaign.timed_by_harness
    ]
    if not timed:
        return []
    who = _listed(timed)
    lines = [f"The harness timed {who}: from the first frame that the link saw to the close of the file."]
    for variant, baseline in baselines_of(campaign).items():
        if not campaign.same_timer(variant, baseline):
            of_harness, of_itself = (
                (variant, baseline) if variant in campaign.timed_by_harness else (baseline, variant)
            )
            lines.append(
                f"The ratio of {variant} to {baseline}, for which the design asks, is of two timers:"
                f" {of_itself} timed itself, {of_harness} was timed by the harness."
            )
    return lines


def _listed(labels: list[str]) -> str:
    *most, last = labels
    return f"{', '.join(most)} and {last}" if most else last
