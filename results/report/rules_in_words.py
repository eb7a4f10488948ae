"""The rules of a variant in one sentence, built only of what is decided: where it helps, where it harms, and
where it makes no difference."""

from __future__ import annotations

import re
from collections.abc import Sequence

from fecbench.results.analysis.rules import Explanation, Rule
from fecbench.results.metrics import Metric
from fecbench.results.metrics.units import decimals

_VERBS = {"gain": "helps", "harm": "harms", "equivalent": "makes no difference"}
_NAMES = {"owd_ms": "one-way delay", "loss.p": "loss", "loss.rate": "loss", "size_bytes": "size"}
_UNIT = re.compile(r"_(mbps|kbps|us|ms|s|bytes|packets|bdp)$")


def where(explanation: Explanation | None, metric: Metric) -> str:
    """Return the sentence; "" where nothing is explained, or nothing can be said over so few networks."""
    if explanation is None:
        return ""
    decided = [rule for rule in explanation.rules if rule.verdict in _VERBS]
    if decided:
        parts = [
            f"{verb} where {'; or '.join(_case(rule, metric) for rule in of_verdict)}"
            for verdict, verb in _VERBS.items()
            if (of_verdict := [rule for rule in decided if rule.verdict == verdict])
        ]
        rest = (
            ""
            if len(decided) == len([*explanation.rules, *explanation.left_out])
            else ". Elsewhere it is undecided"
        )
        return f"{_listed(parts)}{rest}."
    everywhere = explanation.everywhere
    if everywhere.low != everywhere.low:
        return ""  # too few networks for an interval over them: counts say more
    no_rule = (
        "no factor tells where"
        if explanation.p_value == explanation.p_value
        else "too few networks for a rule"
    )
    if everywhere.verdict not in _VERBS:
        return f"is undecided over these networks: {no_rule}."
    return f"{_VERBS[everywhere.verdict]} over these networks{_by(everywhere, metric)}; {no_rule}."


def _listed(parts: Sequence[str]) -> str:
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])}, and {parts[-1]}"


def _case(rule: Rule, metric: Metric) -> str:
    conditions = " and ".join(map(condition, rule.conditions)) or "anything was tried"
    return f"{conditions}{_by(rule, metric)}"


def condition(text: str) -> str:
    """Return a condition with the factor as people call it: "bandwidth ≥ 3 Mbit/s"."""
    name, space, rest = text.partition(" ")
    return f"{_NAMES.get(name, _UNIT.sub('', name).replace('_', ' '))}{space}{rest}"


def _by(rule: Rule, metric: Metric) -> str:
    """Return how much more or less, with its interval: " (25 % less time [12, 36])"."""
    if rule.verdict == "equivalent" or not 0 < rule.low <= rule.high < float("inf"):
        return ""
    places = max(decimals(rule.low, rule.high) - 2, 0)
    less = rule.ratio < 1
    ends = [100 * (1 - end) if less else 100 * (end - 1) for end in (rule.ratio, rule.low, rule.high)]
    value, *interval = (f"{end:.{places}f}" for end in (ends[0], *sorted(ends[1:])))
    what = " time" if metric.is_time else ""
    return f" ({value} % {'less' if less else 'more'}{what} [{interval[0]}, {interval[1]}])"
