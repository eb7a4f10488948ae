"""Sentences for a person about what a cross-check found."""

from __future__ import annotations

import math
import shlex
from collections.abc import Iterator

from fecbench.quantities import counted
from fecbench.results.analysis.agreement import Agreement, Comparison
from fecbench.results.analysis.criterion import Criterion
from fecbench.results.analysis.intervals import FEWEST
from fecbench.results.analysis.pooled import Pooled
from fecbench.results.analysis.tail import FEWEST_OF_TAIL
from fecbench.results.analysis.tolerances import OVERALL
from fecbench.results.metrics.units import change

_MOST_TIMES = 10  # the groups of a design: more would not be there
_MOST_EXPLAINED = 5
_TO = f"to {100 * OVERALL:g} %"


def headline(agreement: Agreement) -> str:
    """The verdict, and what is open."""
    if agreement.verdict == "differs":
        return f"Virtual and emulated differ: {', '.join(_differences(agreement))}."
    if not agreement.most_agree:
        return f"Cannot tell: {_open(agreement)}."
    parts = [_open(agreement)]
    if agreement.pooled:
        parts.append(_to_one_percent(agreement))
    return f"No disagreement found: {'; '.join(parts)}."


def _differences(agreement: Agreement) -> Iterator[str]:
    if differ := agreement.count("differs"):
        yield f"{differ} of {len(agreement.comparisons)} comparisons differ"
    if means := agreement.of_pooled("differs"):
        yield f"{len(means)} of {len(agreement.pooled)} mean ratios differ by more than {100 * OVERALL:g} %"
    if agreement.other_losses:
        yield f"packets met other losses in {counted(len(agreement.other_losses), 'trial')}"
    if agreement.other_states:
        yield f"{counted(len(agreement.other_states), 'trial')} ended otherwise"


def _open(agreement: Agreement) -> str:
    """Count the comparisons that agree, and those that are open."""
    agree, open_ones, in_all = (
        agreement.count("agrees"),
        agreement.count("cannot tell"),
        len(agreement.comparisons),
    )
    if not in_all:
        return "there is no comparison"
    if not open_ones:
        return f"all {in_all} comparisons agree"
    too_small = f"the sample is too small ({_would_decide(agreement, agreement.more)})"
    return f"{agree} of {in_all} comparisons agree, for {open_ones} {too_small}"


def _to_one_percent(agreement: Agreement) -> str:
    """Count the mean ratios that agree to 1 %, and those that are open."""
    in_all, open_ones = len(agreement.pooled), agreement.of_pooled("cannot tell")
    if not open_ones:
        return f"{_TO}, {'the mean ratio agrees' if in_all == 1 else f'all {in_all} mean ratios agree'}"
    would = _would_decide(agreement, agreement.more_to_one_percent)
    return f"{_TO}, cannot tell of {len(open_ones)} of {in_all} mean ratios ({would})"


def _would_decide(agreement: Agreement, more: int | None) -> str:
    if more is None:
        return "no number of trials would decide"
    if more > _MOST_TIMES * agreement.groups:  # nearly on the edge of a tolerance
        return f"{_MOST_TIMES} times the {counted(agreement.groups, 'group')} of the design would not decide"
    return f"{more} more would decide"


def sentences(agreement: Agreement | None) -> list[str]:
    """The first is the verdict. None: there was no cross-check."""
    if agreement is None:
        return ["not cross-checked: no sample of it was emulated."]
    lines = [
        f"cross-checked with {agreement.pairs} emulated trials{_of_arms(agreement)}. {headline(agreement)}"
    ]
    if agreement.left_out:
        reasons = ", ".join(f"{count} {reason}" for reason, count in agreement.left_out.items())
        lines.append(f"Of {counted(agreement.planned, 'trial')} of the sample are not compared: {reasons}.")
    for keys, what in (
        (agreement.other_losses, "Packets met other verdicts in"),
        (agreement.other_states, "One of the two did not get through in"),
    ):
        if keys:
            more = f" and {len(keys) - 1} more" if len(keys) > 1 else ""
            lines.append(f"{what} {keys[0]}{more}.")
    if agreement.pairs and not agreement.other_losses:
        same = "met losses by the same clock, which need not be of the same packets,"
        meeting = same if agreement.is_clocked else "met the same losses"
        lines.append(f"Both {meeting} in all of them; {agreement.met_a_loss} of them met a loss.")
    for verdict in ("differs", "cannot tell"):
        of_verdict = [row for row in agreement.comparisons if row.verdict == verdict]
        lines += [_explained(row) for row in of_verdict[:_MOST_EXPLAINED]]
        if len(of_verdict) > _MOST_EXPLAINED:
            lines.append(f"So it is with {len(of_verdict) - _MOST_EXPLAINED} more.")
    lines += [_mean_ratio(row) for row in agreement.pooled if row.verdict != "agrees"][:_MOST_EXPLAINED]
    if agreement.comparisons and max(row.n for row in agreement.comparisons) < FEWEST_OF_TAIL:
        lines.append(
            f"Nothing is said of 95th percentiles: that takes {FEWEST_OF_TAIL} trials of each variant."
        )
    if lacking := max(agreement.more or 0, agreement.more_to_one_percent or 0):
        lines.append(_where_from(agreement, lacking))
    return lines


def _of_arms(agreement: Agreement) -> str:
    """Name the variants that were emulated where the others were not."""
    return f" of {' and '.join(f'“{arm}”' for arm in agreement.arms)} alone" if agreement.arms else ""


def _explained(comparison: Comparison) -> str:
    """Return why a comparison does not agree."""
    reasons = [
        criterion
        for criterion in comparison.criteria
        if criterion.verdict == comparison.verdict and (criterion.differs or criterion.is_needed)
    ]
    words = "; ".join(_answer(criterion, comparison) for criterion in reasons[:2])
    return f"{comparison.variant}, {comparison.workload}, {comparison.what}: {comparison.verdict}: {words}."


def _mean_ratio(pooled: Pooled) -> str:
    """Return the sentence about a mean ratio that does not agree."""
    where = "over all workloads" if pooled.workload is None else pooled.workload
    texts = [change(value) for value in pooled.relative]
    more = f", {pooled.more} more groups would decide" if pooled.more else ""
    return (
        f"{pooled.variant} to {pooled.baseline}, {where}: the mean ratio is {texts[0]} ({texts[1]} to"
        f" {texts[2]}) of the emulated one; {_TO}: {pooled.verdict}{more}."
    )


def _answer(criterion: Criterion, comparison: Comparison) -> str:
    if criterion.n < FEWEST:
        return f"{counted(criterion.n, 'trial')}, and an interval needs {FEWEST}"
    value, low, high, least, greatest = (
        comparison.shown_value(criterion, value)
        for value in (criterion.value, *criterion.interval, *criterion.tolerance)
    )
    return (
        f"{_STATISTICS[criterion.statistic]}{_STRATA[criterion.stratum]} {value} ({low} to {high}),"
        f" tolerance {least} to {greatest}"
    )


_STATISTICS = {
    "median": "the median",
    "mean": "the mean",
    "far": "trials far too long, less those far too short,",
    "either": "trials far off on either side",
    "tail": "the 95th percentile",
}
_STRATA = {
    "all": "",
    "met a loss": " where a packet was lost",
    "met none": " where none was lost",
    "high losses": " where most packets were lost",
}


def _where_from(agreement: Agreement, more: int) -> str:
    """Return how to get so many more groups of each workload."""
    have = max((comparison.n for comparison in agreement.comparisons), default=0)
    if have + more > agreement.groups:
        return (
            f"The design has {counted(agreement.groups, 'group')} of a workload: more repetitions would"
            " tell more."
        )
    share = math.ceil(1000 * (have + more) / agreement.groups) / 1000
    arms = (
        f" {shlex.join(word for arm in agreement.arms for word in ('--arms', arm))}" if agreement.arms else ""
    )
    return f"--share {share:g}{arms} has {more} more groups of each workload."
