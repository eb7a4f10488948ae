"""The hosts that have run a campaign: what each has done, and whether it matters which one ran a trial.

A ratio is of two trials of one host (`one_host`): how fast that host is cancels as far as it slows both
variants alike. Coding takes time of a processor, so a slow host may slow FEC more: whether a ratio depends
on the host is tested, too. Absolute values of several hosts stand beside each other in a table, so a host
that is slower must be seen.
"""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

import numpy as np
import pandas as pd

from fecbench.quantities import counted
from fecbench.results import metrics
from fecbench.results.analysis import frames, one_host
from fecbench.results.analysis.intervals import LEVEL
from fecbench.results.analysis.pairing import OTHER_HOSTS, PAIR, comparisons
from fecbench.results.analysis.quantiles import normal_beyond, normal_quantile
from fecbench.results.analysis.starts import UNKNOWN
from fecbench.results.analysis.summary import of_whole_groups
from fecbench.results.store.database import Database
from fecbench.results.store.records import CampaignInfo

LEAST_GROUPS = 10
"""The fewest groups of each of two hosts, at points and workloads that both have run, to compare them."""
_CELL = ["workload", "point"]


@dataclass(frozen=True)
class Host:
    """The part of a host in a campaign."""

    host: str
    starts: int
    done: int
    """Trials that count, and are valid."""
    invalid: int
    """Runs that were not, those included that were run again."""
    per_minute: float | None
    """Runs, from the first to the last of each start; None where a start has run but one."""
    last_seen: str
    """The time at which its last run began, by its own clock."""
    holds: int
    """Groups that it runs now."""


@dataclass(frozen=True)
class HostDifference:
    """The ratio of the times that trials took on two hosts, or of another metric."""

    first: str
    second: str
    groups: tuple[int, int]
    """The numbers of groups of the first and of the second, at points and workloads that both have run."""
    ratio: float
    """Second ÷ first: the geometric mean over points and workloads."""
    interval: tuple[float, float]
    p_value: float
    """The p-value of the null hypothesis that it does not matter which of the two ran a group."""
    hosts: int
    """The number of hosts that were compared with each other."""

    @property
    def differ(self) -> bool:
        """Whether they differ beyond the noise, of as many comparisons as there are pairs of hosts
        (Bonferroni)."""
        return self.p_value < LEVEL / math.comb(self.hosts, 2)


@dataclass(frozen=True)
class ArmDifference:
    """The difference of a variant's ratio to its baseline between two hosts."""

    variant: str
    baseline: str
    by: HostDifference
    """The difference of ratios in place of values, and of pairs in place of groups."""
    comparisons: int
    """The number of comparisons: of each variant, of every two hosts."""

    @property
    def differ(self) -> bool:
        """Whether they differ beyond the noise, of as many comparisons (Bonferroni)."""
        return self.by.p_value < LEVEL / self.comparisons


@dataclass(frozen=True)
class Told:
    """Sentences about the hosts of a campaign."""

    warnings: list[str]
    """Pairs of two hosts, which no ratio has; every two hosts that differ; ratios that depend on the host."""
    notes: list[str]
    """The note that no ratio depends on the host, or that it could not be tested."""


def hosts_of(database: Database, campaign: CampaignInfo) -> list[Host]:
    """The hosts of a campaign's starts that have run anything, or are at it, by name."""
    runs = {run.start_id: run for run in database.runs_by_start(campaign.id)}
    holds: defaultdict[int, int] = defaultdict(int)
    for claimant in database.claims(campaign.id).values():
        holds[claimant.start_id] += 1
    starts = sorted(database.starts(campaign.id), key=lambda start: start.host)
    hosts = []
    for host, group in itertools.groupby(starts, key=lambda start: start.host):
        own = [start.id for start in group if start.id in runs or holds[start.id]]
        own_runs = [runs[number] for number in own if number in runs]
        if own:
            spans_s = [_span_s(run.first_at, run.last_at) for run in own_runs if run.runs > 1]
            between = sum(run.runs - 1 for run in own_runs)
            hosts.append(
                Host(
                    host=host or UNKNOWN,
                    starts=len(own),
                    done=sum(run.done for run in own_runs),
                    invalid=sum(run.invalid for run in own_runs),
                    per_minute=60 * between / sum(spans_s) if sum(spans_s) > 0 else None,
                    last_seen=max((run.last_at for run in own_runs), default=""),
                    holds=sum(holds[number] for number in own),
                )
            )
    return hosts


def _span_s(first: str, last: str) -> float:
    return (datetime.fromisoformat(last) - datetime.fromisoformat(first)).total_seconds()


def differences(database: Database, campaign: CampaignInfo, metric: str = "") -> list[HostDifference]:
    """Every two hosts that have run enough groups at the same points and workloads."""
    of_workloads = metrics.of_workloads(metrics.choose(campaign, metric))
    frame = frames.trials(database, campaign, [*dict.fromkeys(of_workloads.values()), "host"])
    return compare(_groups(frame, of_workloads))


def arm_differences(frame: pd.DataFrame, campaign: CampaignInfo) -> list[ArmDifference]:
    """Every variant that has a baseline, and every two hosts that have run enough pairs of the two at the
    same points and workloads: does its ratio depend on the host?

    `frame`: `frames.trials` with `host`. Pairs with a timeout are left out: they have no ratio.
    """
    differences = []
    for variant, pairing in comparisons(frame, campaign).items():
        ran = frame.loc[(frame["variant"] == variant) & frame["host"].notna(), [*PAIR, "host"]]
        pairs = pairing.matched.merge(ran, on=PAIR)
        pairs = pairs[~pairs["censored"].astype(bool) & (pairs["ratio"] > 0)]
        logs = np.log(pairs["ratio"].astype("float64"))
        texts = {name: pairs[name].astype(str) for name in ("workload", "host")}
        differences += [
            (variant, pairing.baseline_label, by) for by in compare(pairs.assign(log=logs, **texts))
        ]
    return [ArmDifference(*difference, comparisons=len(differences)) for difference in differences]


def _groups(frame: pd.DataFrame, of_workloads: dict[str, str]) -> pd.DataFrame:
    """One row a whole group (`summary.of_whole_groups`) of trials that are ok: workload, point, host, and the
    mean log of its values. The mean of a group that lacks a slow variant is less, whatever its host."""
    frame = frame[frame["host"].notna()]
    values = pd.Series(np.nan, frame.index)
    for name, labels in metrics.labels_of_metrics(of_workloads).items():
        of_metric = frame["workload"].isin(labels)
        values[of_metric] = frame.loc[of_metric, name] if name in frame else np.nan
    whole = of_whole_groups(frame, (frame["state"] == "ok") & (values > 0))
    rows = frame[whole].assign(log=np.log(values[whole].to_numpy(np.float64)))
    rows = rows.assign(**{name: rows[name].astype(str) for name in ("host", "workload")})
    by_group = rows.groupby([*_CELL, "repetition"], sort=False)
    groups = by_group.agg(log=("log", "mean"), host=("host", "first"), hosts=("host", "nunique"))
    comparable: pd.DataFrame = groups[groups["hosts"] == 1].reset_index()
    return comparable


def compare(groups: pd.DataFrame) -> list[HostDifference]:
    """Return the difference of every two hosts with enough groups; columns: workload, point, host and log.

    Chance decides which of two hosts runs a group. So within each workload and point, the difference of two
    means has the variance of one between random parts of the groups (as van Elteren's test has of ranks), and
    the sum over all of them, weighted by n₁n₂/n, is nearly normal.
    """
    differences = []
    pairs = list(itertools.combinations(sorted(groups["host"].unique()), 2))
    hosts = groups["host"].nunique()
    for first, second in pairs:
        both = groups[groups["host"].isin((first, second))]
        if difference := _difference(both, first, second, hosts):
            differences.append(difference)
    return differences


def _difference(groups: pd.DataFrame, first: str, second: str, hosts: int) -> HostDifference | None:
    weighted, weights, variance, counts = 0.0, 0.0, 0.0, [0, 0]
    for _, cell in groups.groupby(_CELL, sort=False):
        values = [cell.loc[cell["host"] == host, "log"].to_numpy() for host in (first, second)]
        sizes = [len(sample) for sample in values]
        if 0 in sizes:
            continue
        weight = sizes[0] * sizes[1] / sum(sizes)
        weighted += weight * (values[1].mean() - values[0].mean())
        weights += weight
        variance += weight * float(np.var(np.concatenate(values), ddof=1))
        counts = [count + size for count, size in zip(counts, sizes, strict=True)]
    if min(counts) < LEAST_GROUPS or weights == 0:
        return None
    log, error = weighted / weights, math.sqrt(variance) / weights
    without_noise = 1.0 if log == 0 else 0.0
    p_value = 2 * float(normal_beyond(abs(log) / error)) if error > 0 else without_noise
    reach = normal_quantile(1 - LEVEL / 2) * error
    return HostDifference(
        first=first,
        second=second,
        groups=(counts[0], counts[1]),
        ratio=math.exp(log),
        interval=(math.exp(log - reach), math.exp(log + reach)),
        p_value=p_value,
        hosts=hosts,
    )


def sentence(difference: HostDifference, units: str = "groups") -> str:
    low, high = difference.interval
    verdict = "they differ by more than the noise" if difference.differ else "no more than the noise"
    return (
        f"{difference.second} against {difference.first}: ratio {difference.ratio:.4f} ({1 - LEVEL:.0%}"
        f" interval {low:.4f} to {high:.4f}; {difference.groups[1]} and {difference.groups[0]} {units}),"
        f" p = {difference.p_value:.3g}: {verdict}."
    )


def told_of(database: Database, campaign: CampaignInfo) -> Told:
    """Return how a campaign's numbers depend on its hosts. Nothing in virtual time: there a trial is the
    same everywhere."""
    if not one_host.matters(database, campaign):
        return Told([], [])
    of_workloads = metrics.of_workloads(campaign)
    frame = frames.trials(database, campaign, list(dict.fromkeys(of_workloads.values())))
    of_arms = arm_differences(frame, campaign)
    of_ratios = [arm_sentence(difference) for difference in of_arms if difference.differ]
    warnings = [*_left_out(frame, campaign), *warnings_of(compare(_groups(frame, of_workloads))), *of_ratios]
    return Told(warnings, [] if of_ratios else [_no_difference(of_arms)])


def _left_out(frame: pd.DataFrame, campaign: CampaignInfo) -> Iterator[str]:
    for variant, pairing in comparisons(frame, campaign).items():
        reasons = pairing.unpaired[pairing.unpaired["reason"].str.endswith(OTHER_HOSTS)]
        if pairs := int(reasons["repetitions"].sum()):
            yield (
                f"{counted(pairs, 'pair')} of {variant} and {pairing.baseline_label} {OTHER_HOSTS},"
                " since a host ended"
                " or another went on: no ratio has them."
            )


def warnings_of(differences: Sequence[HostDifference]) -> list[str]:
    return [
        f"Hosts differ: {sentence(difference)} Absolute values depend on which of them ran a trial;"
        " ratios are of pairs that one host ran."
        for difference in differences
        if difference.differ
    ]


def arm_sentence(difference: ArmDifference) -> str:
    return (
        f"Ratios depend on the host: that of {difference.variant} to {difference.baseline}, on"
        f" {sentence(difference.by, 'pairs')}"
    )


def _no_difference(differences: Sequence[ArmDifference]) -> str:
    """Return the note about comparisons in which no ratio differs by more than the noise."""
    if not differences:
        return (
            f"Whether ratios depend on the host is not known: no two hosts have run {LEAST_GROUPS} pairs of a"
            " variant and its baseline each in the same networks and workloads."
        )
    least = min(difference.by.p_value for difference in differences)
    return (
        "Whether ratios depend on the host was tested of each variant for every two hosts"
        f" ({len(differences)} in all): by no more than the noise (the least p is {least:.3g})."
    )
