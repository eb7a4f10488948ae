"""Variants that had FEC on and sent nothing to repair with: their ratios are no ratios of FEC.

The judge fails a transfer with FEC that has no repair packet. None is owed where an `impl.toml` says so
(`repair_may_lack`: a code that waits for a full block, or for room that data leaves), where one of the two
ends has FEC off, or where an implementation does not say what turns FEC off.
"""

from __future__ import annotations

from fecbench.quantities import counted
from fecbench.results.store.database import Database
from fecbench.results.store.records import CampaignInfo


def sentences(database: Database, campaign: CampaignInfo) -> list[str]:
    """Return which variants sent no repair packet in how many trials, in the order of the design; nothing
    where each trial with FEC had one."""
    counts = {count.variant: count for count in database.repair_counts(campaign.id)}
    of_variants = [counts[variant["label"]] for variant in campaign.variants if variant["label"] in counts]
    return [
        f"{count.variant} sent no repair packet in {count.without_repair} of"
        f" {counted(count.trials, 'trial')}."
        for count in of_variants
        if count.without_repair
    ]
