"""What the queue of a campaign's link holds, which neither paper names."""

from __future__ import annotations

import tomllib

from results.store.records import CampaignInfo

_LIMITS = {"queue_packets": "packets", "queue_bdp": "bandwidth-delay products", "queue_bytes": "bytes"}


def queue_in_words(campaign: CampaignInfo) -> str:
    """As the end of "here the link's …"."""
    constants = tomllib.loads(campaign.design_text).get("constants", {})
    if constants.get("queue") == "codel":
        return "is CoDel's"
    for limit, unit in _LIMITS.items():
        if limit in constants:
            return f"holds {constants[limit]:,} {unit}"
    return "is varied by the design"
