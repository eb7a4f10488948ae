"""The median of each metric in each variant, by workload."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import pandas as pd

from fecbench.results.analysis import outcomes
from fecbench.results.analysis.pairing import baselines_of
from fecbench.results.analysis.point_statistic import of_columns
from fecbench.results.analysis.summary import by_pairs, median_column, of_many_networks, whole_groups
from fecbench.results.metrics import SOURCES, of, of_workloads
from fecbench.results.store.records import CampaignInfo


@dataclass(frozen=True)
class Medians:
    """The medians of one workload."""

    workload: str
    groups: int
    """The number of groups in which all variants are ok."""
    lacking: str
    """The variants that failed or timed out in others, and how often; "" for none."""
    table: pd.DataFrame
    """The median of each metric (rows) in each variant (columns), over points as the pairs have it."""


def medians_of(frame: pd.DataFrame, campaign: CampaignInfo, table: pd.DataFrame) -> Iterator[Medians]:
    """Yield, for each workload, the medians over its whole groups: none over groups that one variant alone
    got through.

    Of a design with several points they are as the pairs have them (`summary.by_pairs`). The medians of the
    compared metric are those of `findings.findings`, the `table`, in which failures and timeouts count, too.
    """
    names = [name for name in frame.columns if name.partition(".")[0] in SOURCES]
    whole = whole_groups(frame, campaign)
    if with_worst := {name: outcomes.values(frame, of(name)) for name in names if of(name).absent_is_worst}:
        frame = frame.assign(**with_worst)
    for workload, metric in of_workloads(campaign).items():
        trials = frame.loc[
            whole & (frame["workload"] == workload), ["variant", "point", "repetition", *names]
        ]
        of_variants = trials.groupby("variant", observed=True)[names].median().T
        if not len(of_variants.columns):
            continue
        if of_many_networks(campaign):
            of_variants = as_pairs_have_them(of_variants, trials, campaign)
        of_workload = table[table["workload"] == workload].set_index("variant")
        if metric in of_variants.index:
            of_variants.loc[metric] = of_workload[median_column(campaign)]
        groups = len(trials[["point", "repetition"]].drop_duplicates())
        lacking = outcomes.lacking(frame[frame["workload"] == workload], of(metric))
        yield Medians(workload, groups, lacking, of_variants.dropna(how="all"))


def as_pairs_have_them(medians: pd.DataFrame, trials: pd.DataFrame, campaign: CampaignInfo) -> pd.DataFrame:
    """Return the medians of each metric (rows) in each variant (columns), as the pairs of these trials
    have them.

    If a baseline counts as 0 at some points, the ratios of the others do not speak for all. Values below 0
    have no ratio.
    """
    more_is_better = {name: of(name).more_is_better for name in medians.index}
    of_points = of_columns(trials, ["variant", "point"], more_is_better, campaign.statistic)
    baselines = baselines_of(campaign)
    ratios = pd.DataFrame(math.nan, medians.index, medians.columns)
    for variant, baseline in baselines.items():
        if {variant, baseline} <= set(medians.columns):
            divisors = pd.DataFrame(of_points.loc[baseline])
            of_variant = pd.DataFrame(of_points.loc[variant]) / divisors
            has_ratio = (divisors != 0).all() & ~(trials[medians.index] < 0).any()
            ratios[variant] = of_variant.median().where(has_ratio)
    rows = {
        name: by_pairs(dict(medians.loc[name]), dict(ratios.loc[name]), baselines, of(name).greatest)
        for name in medians.index
    }
    return pd.DataFrame.from_dict(rows, orient="index")
