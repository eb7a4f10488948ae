"""Some of the arms and workloads of a campaign, as a campaign of these alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pandas as pd

from fecbench.errors import BadInput
from fecbench.hints import nearest
from fecbench.results.analysis.pairing import baselines_of
from fecbench.results.store.records import CampaignInfo


def chosen(
    trials: pd.DataFrame, campaign: CampaignInfo, arms: Sequence[str] = (), workloads: Sequence[str] = ()
) -> tuple[pd.DataFrame, CampaignInfo]:
    """The trials and the campaign with these arms and workloads alone, by their labels; with all for none.

    The variant that an arm is compared with stays, too. Each keeps its colour. Raises BadInput for an unknown
    label.
    """
    for kind, labels, existing in (
        ("variant", arms, [variant["label"] for variant in campaign.variants]),
        ("workload", workloads, [workload["label"] for workload in campaign.workloads]),
    ):
        for label in labels:
            if label not in existing:
                raise BadInput(
                    f"campaign {campaign.name!r}: has no {kind} {label!r}; {nearest(label, existing)}"
                )
    baselines = baselines_of(campaign)
    labels_to_keep = {*arms, *(baselines[arm] for arm in arms if arm in baselines)}
    narrowed = replace(
        campaign,
        variants=[variant for variant in campaign.variants if not arms or variant["label"] in labels_to_keep],
        workloads=[
            workload for workload in campaign.workloads if not workloads or workload["label"] in workloads
        ],
        labels_of_design=campaign.all_labels,
    )
    rows = trials["variant"].isin([variant["label"] for variant in narrowed.variants])
    rows &= trials["workload"].isin([workload["label"] for workload in narrowed.workloads])
    some = trials[rows]
    return some.assign(
        variant=some["variant"].cat.remove_unused_categories(),
        workload=some["workload"].cat.remove_unused_categories(),
    ), narrowed
