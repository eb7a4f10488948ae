"""The points of a campaign where results decide, so that it need not go on there (`until = "decided"`).

A point may stop before it has all repetitions when every comparison there is decided. With means, it never
stops early while one of them says "no difference that matters": before the first rare long delay, values have
next to no spread (`bench.coverage.wrongly_equal_so_far`).
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Mapping

import numpy as np

from fecbench.quantities import counted
from fecbench.results.analysis import frames
from fecbench.results.analysis.intervals import LEVEL, VERDICTS, of_campaign
from fecbench.results.analysis.pairing import comparisons
from fecbench.results.metrics import of_workloads
from fecbench.results.store.database import Database
from fecbench.results.store.records import CampaignInfo, Place, Stop, Why

EQUIVALENT, UNDECIDED = VERDICTS[2:]


def stops(database: Database, campaign: CampaignInfo, reached: Mapping[Place, int]) -> list[Stop]:
    """Return the places that need no more, of those that have `reached` so many repetitions. Repetitions
    beyond are not looked at, so that every process gets the same result."""
    trials = frames.trials(database, campaign, set(of_workloads(campaign).values()))
    places = zip(trials["workload"], trials["point"], strict=True)
    limits = np.array([reached.get(place, 0) for place in places], dtype=np.int64)
    trials = trials[trials["repetition"].to_numpy() < limits]
    invalid = trials[trials["state"] == "invalid"]
    may_be_mended = set(zip(invalid["workload"], invalid["point"], strict=True))
    compared = comparisons(trials, campaign)
    verdicts: defaultdict[Place, dict[str, str]] = defaultdict(dict)
    without_interval = {(place, variant) for place in reached for variant in compared}
    for variant, pairing in compared.items():
        rows = of_campaign(pairing, campaign)
        places = zip(rows["workload"].astype(str), rows["point"].tolist(), strict=True)
        for place, verdict, low in zip(places, rows["verdict"], rows["low"], strict=True):
            verdicts[place][variant] = str(verdict)
            if not math.isnan(low):
                without_interval.discard((place, variant))
    stopped = []
    for place, repetitions in reached.items():
        of_place = {variant: verdicts[place].get(variant, UNDECIDED) for variant in compared}
        is_open = [variant for variant, verdict in of_place.items() if verdict == UNDECIDED]
        is_last = repetitions == campaign.repetitions
        is_too_soon = not is_last and campaign.statistic == "mean" and EQUIVALENT in of_place.values()
        if is_too_soon:
            continue
        if not is_open:
            why: Why = "decided"
        elif is_last:
            why = "most repetitions"
        elif place not in may_be_mended and all((place, variant) in without_interval for variant in is_open):
            why = "no interval"
        else:
            continue
        stopped.append(Stop(*place, repetitions, why, of_place))
    return stopped


def sentences(campaign: CampaignInfo) -> list[str]:
    """Return how many points were decided, and after how many repetitions; nothing for a campaign that has
    a fixed number of them."""
    if not campaign.until_decided:
        return []
    places, looks = len(campaign.points) * len(campaign.workloads), len(campaign.looks)
    counts = Counter(stop.why for stop in campaign.stops.values())
    rest = {
        "not decided": counts["most repetitions"],
        "without an interval that could decide": counts["no interval"],
        "still to be run": places - len(campaign.stops),
    }
    parts = [f"{counts['decided']:,} of {places:,} networks and workloads are decided"]
    if spans := sorted({stop.repetitions for stop in campaign.stops.values() if stop.why == "decided"}):
        parts[0] += f", after {' to '.join(map(str, dict.fromkeys((spans[0], spans[-1]))))} repetitions"
    parts += [f"{what}: {count}" for what, count in rest.items() if count]
    return [
        f"Each point was run until its results decide, {counted(campaign.repetitions, 'repetition')} at most:"
        f" {'; '.join(parts)}. They are looked at up to {looks} times, so an interval is of"
        f" {100 * (1 - LEVEL / looks):.4g} %: all looks together err in no more than {100 * LEVEL:g} %.",
        *of_averages(campaign),
    ]


def of_averages(campaign: CampaignInfo) -> list[str]:
    """Return of which repetitions averages over networks are; nothing where they are of all."""
    first = campaign.averaged_repetitions
    if first == campaign.repetitions:
        return []
    return [f"Averages over networks are of the first {counted(first, 'repetition')} of each."]
