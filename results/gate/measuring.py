"""Measurements of two builds: ratios, slow ends, single networks, failures, and whether the harness
vouches for both alike."""

from __future__ import annotations

import pandas as pd

from fecbench.looks import looks_of_builds
from fecbench.results.analysis import attempts
from fecbench.results.analysis.intervals import LEVEL
from fecbench.results.gate.failing import SUSPECTED, failed_of, is_deterministic
from fecbench.results.gate.networks import slower_networks
from fecbench.results.gate.overall import NEW, Ratio, pairs_of, ratio_of, ratio_of_means, read
from fecbench.results.gate.slowest import tail_ratio_of
from fecbench.results.gate.verdict import Measured, is_settled, margins_for
from fecbench.results.store.database import Database
from fecbench.results.store.records import CampaignInfo


def measured(frame: pd.DataFrame, campaign: CampaignInfo, share: float, unlike: str = "") -> Measured:
    """Return the measurements of a campaign: `frame` comes from `overall.read`, and `unlike` from
    `disturbed_unlike`.

    The results are looked at several times, and this look may err in `share` of LEVEL. If the shares sum to
    1, the intervals of all looks together miss the truth in at most LEVEL of cases. Intervals over all
    networks take half of that, and those of workloads the other half. Mean times, slow ends and single
    networks can only make a build slower. Each of them may err as often, but hardly ever does: a harm begins
    beyond a margin.
    """
    pairs, failed = pairs_of(frame, campaign), failed_of(frame, campaign)
    same = is_deterministic(campaign)
    level = LEVEL * share
    return Measured(
        overall=ratio_of(pairs, level if _is_single(pairs) else level / 2, level),
        workloads=_of_workloads(pairs, level),
        pairs=len(pairs),
        mean=ratio_of_means(pairs, level, level),
        tail=tail_ratio_of(pairs, level),
        networks=slower_networks(pairs, campaign, share),
        failed=failed,
        fails=failed.p_value(same) < level,
        may_fail=failed.p_value(same) < SUSPECTED,
        lost=failed.lost(same),
        unlike=unlike,
        unseen=len(campaign.points) * len(campaign.workloads) - failed.places,
    )


def settled(database: Database, campaign: CampaignInfo) -> bool:
    """Return whether a campaign may stop, by the trials that there are, at one of its looks."""
    share = 1 / len(looks_of_builds(campaign.repetitions))
    unlike = disturbed_unlike(attempts.by_variant(database, campaign), campaign, share)
    measurements = measured(read(database, campaign), campaign, share, unlike)
    return is_settled(measurements, margins_for(campaign), is_deterministic(campaign))


def disturbed_unlike(table: pd.DataFrame, campaign: CampaignInfo, share: float) -> str:
    """Return whether one arm was disturbed more often than the other (`attempts.by_variant`), in a clause; ""
    where it was not. This look may err in `share` of LEVEL.

    An arm that disturbs the machine in its slow trials loses them, and looks faster than it is. In virtual
    time nothing disturbs.
    """
    rows = {str(row["variant"]): row for row in table.to_dict("records")}
    if is_deterministic(campaign) or not rows[NEW]["p_value"] < LEVEL * share:
        return ""
    shares = "; ".join(f"{label} {attempts.share_text(row)}" for label, row in rows.items())
    return f"the builds do not have as many invalid attempts: {shares}, p = {rows[NEW]['p_value']:.2g}"


def _is_single(pairs: pd.DataFrame) -> bool:
    return pairs["workload"].nunique() < 2


def _of_workloads(pairs: pd.DataFrame, level: float) -> dict[str, Ratio]:
    labels = list(pairs["workload"].unique())
    level_of_each = level if len(labels) < 2 else level / 2 / len(labels)
    return {str(label): ratio_of(pairs[pairs["workload"] == label], level_of_each, level) for label in labels}
