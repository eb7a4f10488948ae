"""The queue of a campaign's link, which neither paper names."""

from __future__ import annotations

import tomllib
from typing import Any

from fecbench.results.store.records import CampaignInfo

_LIMITS = {"queue_packets": "packets", "queue_bdp": "bandwidth-delay products", "queue_bytes": "bytes"}
_USUAL = "holds 1.5 bandwidth-delay products"  # where a design says nothing of it


def queue_in_words(campaign: CampaignInfo) -> str:
    """Return the queue in words, as the end of "here the link's …"."""
    design = tomllib.loads(campaign.design_text)
    constants = design.get("constants", {})
    if constants.get("queue") == "codel":
        return "is CoDel's"
    for limit, unit in _LIMITS.items():
        if limit in constants:
            return f"holds {constants[limit]:,} {unit}"
    return "is varied by the design" if _has_queue([constants, design.get("factors", {})]) else _USUAL


def _has_queue(part: Any) -> bool:
    """Whether anything in a part of a design is a parameter of queues, such as `up.queue_packets`."""
    if isinstance(part, dict):
        return not part.keys().isdisjoint((*_LIMITS, "queue")) or _has_queue(list(part.values()))
    return isinstance(part, list) and any(map(_has_queue, part))
