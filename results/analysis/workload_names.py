"""Names of workloads on axes and in sentences."""

from __future__ import annotations

from itertools import takewhile

from fecbench.results.metrics.units import size
from fecbench.results.store.records import CampaignInfo


def workload_names(campaign: CampaignInfo) -> dict[str, str]:
    """Return the name of each workload on an axis: its size where that says all, else its label."""
    if _differ_in_size_only(campaign):
        return {w["label"]: size(w["parameters"]["size_bytes"]) for w in campaign.workloads}
    return {w["label"]: w["label"] for w in campaign.workloads}


def short_names(campaign: CampaignInfo) -> dict[str, str]:
    """`workload_names` without the words that all of them begin with: "stream" for "messages-voice-10-stream"
    beside "messages-voice-10-datagram"."""
    names = workload_names(campaign)
    parts = {label: name.split("-") for label, name in names.items()}
    alike = takewhile(lambda of_all: len(set(of_all)) == 1, zip(*parts.values(), strict=False))
    shared = len(list(alike)) if len(names) > 1 else 0
    return {label: "-".join(words[shared:]) or names[label] for label, words in parts.items()}


def workload_axis(campaign: CampaignInfo) -> str:
    """Return the quantity that `workload_names` name."""
    return f"{campaign.workloads[0]['name']} size" if _differ_in_size_only(campaign) else "workload"


def _differ_in_size_only(campaign: CampaignInfo) -> bool:
    kinds = {(workload["name"], *workload["parameters"]) for workload in campaign.workloads}
    return len(kinds) == 1 and kinds.pop()[1:] == ("size_bytes",)
