"""Whether a campaign in virtual time agrees with a sample of it that was emulated.

Each trial of the sample is compared with its twin in virtual time, which had the same endpoints, options,
link and losses. For each variant and workload, the relative differences of a metric, virtual / emulated - 1,
have a median, and the interval of that median is held against a tolerance:

- it lies within the tolerance: the two agree;
- it lies beside it as a whole: they differ;
- anything else, and too few trials for an interval: nobody can tell.

A test of equality would be of no use. Emulated endpoints take time of a processor and virtual ones do not, so
the two are never equal, and with enough trials such a test finds that out whatever it amounts to.

The losses must be the same: each packet that both trials sent met the same verdict.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from results import metrics
from results.analysis.intervals import FEWEST, median_interval
from results.analysis.pairing import PAIR, baselines_of
from results.analysis.units import number
from results.store.database import Database
from results.store.records import CampaignInfo, StoredTrial, TrialKey, TrialRecord

Verdict = Literal["agrees", "differs", "cannot tell"]
QUANTILES = (0.05, 0.5, 0.95)
SHORT_BYTES = 10_000
"""A transfer of so many bytes, or fewer, is a short one."""

_LEAST_RTT_S = 1e-3  # without any delay, a tolerance by round trips would have no bound

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Tolerance:
    """How far virtual may be below and above emulated: a share of the value, and a share that a time makes
    beside a longer one."""

    below: float
    above: float
    below_s: float
    above_s: float
    reason: str

    def ends(self, beside_s: Floats) -> tuple[float, float]:
        """The least and the greatest median of relative differences, of trials with these times to stand
        beside: the median of what each trial has, as they rise and fall together."""
        low = -(self.below + self.below_s / beside_s)
        high = self.above + self.above_s / beside_s
        return float(np.median(low)), float(np.median(high))


HANDSHAKE = Tolerance(
    below=0.0,
    above=0.0,
    below_s=0.006,
    above_s=0.0005,
    reason="TLS takes both endpoints 0.5 to 6 ms of a processor, and none in virtual time by default",
)
"""Beside the emulated handshake."""
TIME = Tolerance(
    below=0.007,
    above=0.01,
    below_s=0.0024,
    above_s=0.0,
    reason="endpoints take time of a processor in each round trip: 3 % of an RTT of 100 ms, 10 % of 25 ms",
)
"""Beside the round-trip time."""
SHORT_RATIO = Tolerance(
    below=0.01,
    above=0.01,
    below_s=0.0,
    above_s=0.0,
    reason="what a processor takes is about the same with FEC and without: of up to 10 kB, within 1 %",
)
OTHER = Tolerance(
    below=0.04,
    above=0.04,
    below_s=0.0,
    above_s=0.0,
    reason="a long transfer under losses moves by some percent with any byte of its handshake",
)
"""Of ratios of longer transfers, and of metrics that are no time."""


@dataclass(frozen=True)
class Comparison:
    """One metric of one variant with one workload, virtual beside emulated."""

    variant: str
    workload: str
    metric: str
    """As frames name it."""
    baseline: str | None
    """What is compared is the ratio to this variant; None: the metric itself."""
    n: int
    """How many trials, or pairs of trials, were compared."""
    quantiles: dict[float, float]
    """Of the relative differences, virtual / emulated - 1; NaN for none."""
    interval: tuple[float, float]
    """Of their median; NaN for too few."""
    tolerance: tuple[float, float]
    reason: str
    """Why the tolerance is what it is."""

    @property
    def verdict(self) -> Verdict:
        (low, high), (least, greatest) = self.interval, self.tolerance
        if least <= low and high <= greatest:
            return "agrees"
        return "differs" if high < least or low > greatest else "cannot tell"

    @property
    def what(self) -> str:
        """What is compared, in words."""
        metric = metrics.of(self.metric)
        return metric.noun if self.baseline is None else f"{metric.ratio} to {self.baseline}"


@dataclass(frozen=True)
class Agreement:
    """What a crosscheck found."""

    campaign: str
    """In virtual time."""
    sample: str
    """The campaign that was emulated."""
    share: float
    """Of the groups, that was to be emulated."""
    planned: int
    """Trials of the sample."""
    pairs: int
    """Trials of it that were compared."""
    left_out: dict[str, int]
    """Of the others: how many for which reason."""
    other_losses: list[TrialKey]
    """Trials in which a packet met another verdict."""
    other_states: list[TrialKey]
    """Trials that one of the two did not get through, and the other did or timed out in."""
    comparisons: list[Comparison]

    @property
    def verdict(self) -> Verdict:
        """That of all comparisons together: one that differs is enough."""
        found = {comparison.verdict for comparison in self.comparisons}
        if self.other_losses or self.other_states or "differs" in found:
            return "differs"
        return "agrees" if found == {"agrees"} else "cannot tell"

    def count(self, verdict: Verdict) -> int:
        """How many comparisons have this verdict."""
        return sum(comparison.verdict == verdict for comparison in self.comparisons)


@dataclass(frozen=True)
class _Twins:
    """A trial that was run twice."""

    virtual: TrialRecord
    emulated: TrialRecord

    @property
    def key(self) -> TrialKey:
        return self.emulated.key

    @property
    def left_out(self) -> str:
        """Why they are not compared; empty when they are."""
        states = {"virtual": self.virtual.state, "emulated": self.emulated.state}
        for engine, state in states.items():
            if state == "invalid":
                return f"{engine}: invalid"
        if states["virtual"] == states["emulated"] != "ok":
            return f"both: {states['virtual']}"
        return ""

    @property
    def same_outcome(self) -> bool:
        """Whether both came to an end that can be compared: which of two times out may be chance."""
        return {self.virtual.state, self.emulated.state} <= {"ok", "timeout"}


def sample_of(database: Database, campaign: CampaignInfo) -> CampaignInfo | None:
    """The emulated sample of a campaign in virtual time; None where there is none."""
    samples = (other for other in database.campaigns() if other.checked == campaign.name)
    return next((other for other in samples if other.design_text == campaign.design_text), None)


def of_campaign(database: Database, campaign: CampaignInfo) -> Agreement | None:
    """How the campaign in virtual time agrees with its emulated sample; None where it has none."""
    sample = sample_of(database, campaign)
    return None if sample is None else between(database, campaign, sample)


def between(database: Database, campaign: CampaignInfo, sample: CampaignInfo) -> Agreement:
    """How a campaign in virtual time agrees with an emulated sample of it."""
    wanted = [
        asked
        for start in database.starts(sample.id)
        if (asked := start.provenance.get("crosscheck", {})).get("campaign") == campaign.name
    ]
    share, planned = max(((asked["share"], asked["trials"]) for asked in wanted), default=(0.0, 0))
    twins = [
        _Twins(virtual.record, emulated.record)
        for emulated in database.trials(sample.id)
        if (virtual := _twin(database, campaign, emulated)) is not None
    ]
    reasons = Counter(pair.left_out for pair in twins)
    compared = [pair for pair in twins if not pair.left_out]
    reasons["not run"] = planned - len(twins)
    return Agreement(
        campaign=campaign.name,
        sample=sample.name,
        share=share,
        planned=planned,
        pairs=len(compared),
        left_out={reason: count for reason, count in sorted(reasons.items()) if reason and count > 0},
        other_losses=[pair.key for pair in compared if not pair.virtual.met_the_losses_of(pair.emulated)],
        other_states=[pair.key for pair in compared if not pair.same_outcome],
        comparisons=list(_comparisons([pair for pair in compared if pair.same_outcome], sample)),
    )


def _twin(database: Database, campaign: CampaignInfo, emulated: StoredTrial) -> StoredTrial | None:
    return database.trial_of(campaign.id, emulated.record.key)


def _comparisons(twins: Sequence[_Twins], campaign: CampaignInfo) -> Iterator[Comparison]:
    """Of each workload and variant: its metric, the ratio of that to its baseline, and the handshake."""
    baselines, of_workloads = baselines_of(campaign), metrics.of_workloads(campaign)
    for workload, name in of_workloads.items():
        table = _table([pair for pair in twins if pair.key.workload == workload], metrics.of(name))
        for variant in (variant["label"] for variant in campaign.variants):
            arm = table[table["variant"] == variant]
            tolerance = TIME if metrics.of(name).is_time else OTHER
            yield _compared(variant, workload, name, arm, tolerance, arm["rtt_s"])
            if baseline := baselines.get(variant):
                ratios = _ratios(arm, table[table["variant"] == baseline])
                is_short = bool(len(arm)) and arm["size_bytes"].max() <= SHORT_BYTES
                ratio_tolerance = SHORT_RATIO if is_short else OTHER
                yield _compared(variant, workload, name, ratios, ratio_tolerance, ratios["rtt_s"], baseline)
            handshakes = arm.assign(virtual=arm["handshake_virtual"], emulated=arm["handshake_emulated"])
            beside_s = handshakes["emulated"]
            yield _compared(variant, workload, metrics.HANDSHAKE, handshakes, HANDSHAKE, beside_s)


def _table(twins: Sequence[_Twins], metric: metrics.Metric) -> pd.DataFrame:
    """A row a trial that was run twice: its key, its values, and what tolerances depend on."""
    rows = [
        {
            "variant": pair.key.variant,
            "workload": pair.key.workload,
            "point": pair.key.point,
            "repetition": pair.key.repetition,
            "virtual": _value(pair.virtual, metric),
            "emulated": _value(pair.emulated, metric),
            "handshake_virtual": _measured(pair.virtual, metrics.HANDSHAKE),
            "handshake_emulated": _measured(pair.emulated, metrics.HANDSHAKE),
            "rtt_s": _rtt_s(pair.emulated.task),
            "size_bytes": _size_bytes(pair.emulated.task),
        }
        for pair in twins
    ]
    numbers = ["virtual", "emulated", "handshake_virtual", "handshake_emulated", "rtt_s", "size_bytes"]
    table = pd.DataFrame(rows, columns=["variant", *PAIR, *numbers])
    return table.astype(dict.fromkeys(numbers, np.float64))


def _value(record: TrialRecord, metric: metrics.Metric) -> float:
    """The metric; a timeout is worse than any value, and what was not measured is NaN."""
    return metric.worst if record.state == "timeout" else _measured(record, metric.name)


def _measured(record: TrialRecord, name: str) -> float:
    endpoint, _, of_endpoint = name.partition(".")
    return record.metrics.get(endpoint, {}).get(of_endpoint, math.nan)


def _rtt_s(task: Mapping[str, Any]) -> float:
    """The round-trip time of the first link, without waiting."""
    settings = next(iter(task["links"].values()))["settings"]
    delays_ms = [settings[direction]["owd_ms"] for direction in ("up", "down")]
    return max(math.fsum(delays_ms) / 1e3, _LEAST_RTT_S)


def _size_bytes(task: Mapping[str, Any]) -> int:
    """How much content the measured transfer carries."""
    demand = task["pairs"][0]["demand"]
    return int(demand["up_bytes"] + demand["down_bytes"])


def _ratios(arm: pd.DataFrame, baseline: pd.DataFrame) -> pd.DataFrame:
    """The pairs of an arm and its baseline of which all four trials have a value: their ratios, virtual and
    emulated."""
    pairs = arm.merge(baseline[[*PAIR, "virtual", "emulated"]], on=PAIR, suffixes=("", "_baseline"))
    ratios = pairs.assign(
        virtual=_quotient(pairs["virtual"], pairs["virtual_baseline"]),
        emulated=_quotient(pairs["emulated"], pairs["emulated_baseline"]),
    )
    known = np.isfinite(ratios["virtual"]) & np.isfinite(ratios["emulated"]) & (ratios["emulated"] > 0)
    chosen: pd.DataFrame = ratios[known]
    return chosen


def _quotient(value: pd.Series, of: pd.Series) -> pd.Series:
    """NaN where either is of a timeout, or the second is 0."""
    return value.where(np.isfinite(value)) / of.where(np.isfinite(of) & (of != 0))


def _compared(
    variant: str,
    workload: str,
    metric: str,
    values: pd.DataFrame,
    tolerance: Tolerance,
    beside_s: pd.Series,
    baseline: str | None = None,
) -> Comparison:
    """`values`: a row for each trial or ratio, with the columns `virtual` and `emulated`."""
    differences = _differences(values["virtual"], values["emulated"])
    known = differences.notna()
    found = differences[known].to_numpy(np.float64)
    beside = beside_s[known].to_numpy(np.float64)
    return Comparison(
        variant=variant,
        workload=workload,
        metric=metric,
        baseline=baseline,
        n=len(found),
        quantiles={share: _quantile(found, share) for share in QUANTILES},
        interval=median_interval(found, range(len(found))),  # each trial is a unit
        tolerance=tolerance.ends(beside) if len(beside) else (math.nan, math.nan),
        reason=tolerance.reason,
    )


def _differences(virtual: pd.Series, emulated: pd.Series) -> pd.Series:
    """virtual / emulated - 1. Where one of the two is a timeout, it is the farthest there is: ∞, or -1."""
    differences = virtual / emulated.where(emulated != 0) - 1
    return differences.mask(emulated == -math.inf, math.inf)


def _quantile(values: Floats, share: float) -> float:
    """Of a few values it is one of them, so that it may be infinite; the median is one between two."""
    if not len(values):
        return math.nan
    return float(np.median(values) if share == 0.5 else np.quantile(values, share, method="inverted_cdf"))


def sentences(agreement: Agreement | None) -> list[str]:
    """What a crosscheck found, for a person; the first tells the verdict. None: there was none."""
    if agreement is None:
        return ["not cross-checked: no sample of it was emulated."]
    counted = [
        f"{count} {words}"
        for verdict, words in (("agrees", "agree"), ("differs", "differ"), ("cannot tell", "cannot tell"))
        if (count := agreement.count(verdict))  # type: ignore[arg-type]
    ]
    found = [
        f"cross-checked: {agreement.verdict}. Of {len(agreement.comparisons)} comparisons with"
        f" {agreement.pairs} emulated trials, {', '.join(counted) or 'none could be made'}."
    ]
    if agreement.left_out:
        reasons = ", ".join(f"{count} {reason}" for reason, count in agreement.left_out.items())
        found.append(f"Of {agreement.planned} trials of the sample are not compared: {reasons}.")
    for keys, what in (
        (agreement.other_losses, "Packets met other verdicts in"),
        (agreement.other_states, "One of the two did not get through in"),
    ):
        if keys:
            more = f" and {len(keys) - 1} more" if len(keys) > 1 else ""
            found.append(f"{what} {keys[0]}{more}.")
    if agreement.pairs and not agreement.other_losses:
        found.append("Both met the same losses in all of them.")
    if "cannot tell" in {comparison.verdict for comparison in agreement.comparisons}:
        more = "A greater share" if agreement.share < 1 else "A design of more repetitions"
        found.append(f"{more} would tell more; an interval needs {FEWEST} trials.")
    return found


def percent(share: float) -> str:
    """A relative difference, for a table."""
    return "-" if math.isnan(share) else f"{number(100 * share, '+.2f')} %"
