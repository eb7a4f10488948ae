"""The maps of the first screen: the verdict of each network over the two factors that matter most, for each
variant and workload."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import pandas as pd

from fecbench.results.analysis.intervals import VERDICTS
from fecbench.results.analysis.rules import Explanation
from fecbench.results.analysis.scales import is_log
from fecbench.results.analysis.workload_names import short_names
from fecbench.results.metrics.units import axis_label, quantity, unit_of
from fecbench.results.report.evidence import Evidence, Part
from fecbench.results.report.rules_in_words import condition
from fecbench.results.report.sections.answers import Axis, Mark, VerdictMap
from fecbench.results.store.records import CampaignInfo

_MOST_MARKS = 2000  # of a map: more cannot be told apart on a screen
_TICKS = 4


def maps(evidence: Evidence) -> Iterator[VerdictMap]:
    """Yield a map for each variant and workload whose design varies two numbers at least."""
    explanations = {(one.part.metric.name, one.variant): one.explanation for one in evidence.explained}
    for part in evidence.parts:
        for variant in part.pairings if len(part.ratios) else ():
            explanation = explanations.get((part.metric.name, variant))
            factors = _factors(explanation, evidence.campaign)
            if len(factors) == 2:
                yield from _of_variant(part, variant, evidence.campaign, factors)


def _factors(explanation: Explanation | None, campaign: CampaignInfo) -> list[str]:
    """The two factors of the points that matter most, or where that is not known, the first two that vary."""
    points = pd.DataFrame(campaign.points)
    varied = [
        str(name)
        for name in points
        if points[name].nunique() > 1
        and pd.api.types.is_numeric_dtype(points[name])
        and not pd.api.types.is_bool_dtype(points[name])
    ]
    strongest = [] if explanation is None else list(explanation.importances["factor"])
    return [
        *(name for name in strongest if name in varied),
        *(name for name in varied if name not in strongest),
    ][:2]


def _of_variant(
    part: Part, variant: str, campaign: CampaignInfo, factors: Sequence[str]
) -> Iterator[VerdictMap]:
    of_variant = part.ratios[part.ratios["variant"] == variant]
    names = short_names(campaign)
    across, up = (_axis(name, campaign) for name in factors)
    for workload, rows in of_variant.groupby("workload", observed=True, sort=False):
        # Each k-th network of a grid may have one value of a factor alone.
        some = rows if len(rows) <= _MOST_MARKS else rows.sample(_MOST_MARKS, random_state=1).sort_index()
        verdicts = rows["verdict"].astype(str)
        counts = {verdict: int((verdicts == verdict).sum()) for verdict in VERDICTS}
        yield VerdictMap(
            variant=variant,
            baseline=part.pairings[variant].baseline_label,
            workload=str(workload),
            title=names[str(workload)],
            metric=part.metric.name,
            across=across,
            up=up,
            marks=[
                Mark(point=int(point), across=_place(x, across), up=_place(y, up), verdict=str(verdict))
                for point, x, y, verdict in zip(
                    some["point"], some[factors[0]], some[factors[1]], some["verdict"], strict=True
                )
            ],
            helps=counts["gain"],
            harms=counts["harm"],
            equivalent=counts["equivalent"],
            undecided=counts["undecided"],
        )


def _axis(name: str, campaign: CampaignInfo) -> Axis:
    """The range of a factor over the points of the design, with round ticks."""
    values = pd.Series([point[name] for point in campaign.points], name=name, dtype=float)
    axis = Axis(
        label=axis_label(name),
        name=f"{condition(name)} ({unit_of(name)})" if unit_of(name) else condition(name),
        low=float(values.min()),
        high=float(values.max()),
        log=bool(is_log(values, campaign.scales)),
        ticks=[],
    )
    unit = f" {unit_of(name)}"
    ticks = [(_place(value, axis), quantity(name, value).removesuffix(unit)) for value in _round_values(axis)]
    return axis.model_copy(update={"ticks": ticks})


def _round_values(axis: Axis) -> list[float]:
    """Round numbers within an axis, as many as there is room for."""
    if axis.log:
        decades = range(math.floor(math.log10(axis.low)), math.ceil(math.log10(axis.high)) + 1)
        for leads in ((1, 2, 5), (1, 3), (1,)):
            values = [lead * 10.0**decade for decade in decades for lead in leads]
            inside = [float(f"{value:.3g}") for value in values if axis.low <= value <= axis.high]
            if len(inside) <= _TICKS + 1:
                break
        return inside or [float(f"{axis.low:.3g}")]
    step = 10.0 ** math.floor(math.log10((axis.high - axis.low) / _TICKS))
    step *= next(lead for lead in (1, 2, 5, 10) if (axis.high - axis.low) / (lead * step) <= _TICKS)
    first = math.ceil(axis.low / step)
    return [float(f"{n * step:.6g}") for n in range(first, math.floor(axis.high / step) + 1)]


def _place(value: float, axis: Axis) -> float:
    """Return the place of a value on an axis, 0 to 100; both ends have a margin."""
    if axis.log:
        share = math.log(value / axis.low) / math.log(axis.high / axis.low)
    else:
        share = (value - axis.low) / (axis.high - axis.low)
    return round(4 + 92 * share, 2)
