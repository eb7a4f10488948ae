"""What workloads are called on axes and in sentences."""

from __future__ import annotations

from fecbench.results.analysis.units import size
from fecbench.results.store.records import CampaignInfo


def workload_names(campaign: CampaignInfo) -> dict[str, str]:
    """What each workload is called on an axis: its size where that says all, else its label."""
    if _differ_in_size_only(campaign):
        return {w["label"]: size(w["parameters"]["size_bytes"]) for w in campaign.workloads}
    return {w["label"]: w["label"] for w in campaign.workloads}


def workload_axis(campaign: CampaignInfo) -> str:
    """What `workload_names` are names of."""
    return f"{campaign.workloads[0]['name']} size" if _differ_in_size_only(campaign) else "workload"


def _differ_in_size_only(campaign: CampaignInfo) -> bool:
    kinds = {(workload["name"], *workload["parameters"]) for workload in campaign.workloads}
    return len(kinds) == 1 and kinds.pop()[1:] == ("size_bytes",)
