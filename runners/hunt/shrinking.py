"""Shrinks networks that were confirmed: to plainer ones in which there surely is nearly as much of what is
sought.

In each round all plainer networks of all findings are measured together, each thing changed alone; then
what was kept is changed together, as much of it as stays sure. Nothing is shown that was not confirmed again.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from fecbench.designs import Value
from fecbench.results.analysis.intervals import LEVEL
from fecbench.runners.hunt import plainer
from fecbench.runners.hunt.budget import START_REPETITIONS
from fecbench.runners.hunt.hunt_finding import Finding
from fecbench.runners.hunt.lookout import Lookout
from fecbench.runners.hunt.measured import MOST, Judging
from fecbench.runners.hunt.space import Network, Space

MOST_REPETITIONS = 24
AT_A_TIME = 10
"""Plainer networks of one finding in a look."""
KEPT = 0.6
"""Share of a finding's effect that a plainer network keeps: less would be another finding."""
WORKLOAD = "workload"

Change = Mapping[str, Value]
"""Values by the names of factors, or the label of another workload."""


@dataclass
class _Shrinking:
    """A finding on its way."""

    network: Network
    least: float
    """The logarithm of the ratio, without its sign, that a plainer one has to have."""
    tried: set[Network] = field(default_factory=set)

    def singles(self, space: Space, count: int) -> list[Network]:
        """The plainest network of each thing that was not tried yet, of so many things."""
        first: dict[str, Network] = {}
        for what, network in plainer.steps(space, self.network):
            if network not in self.tried:
                first.setdefault(what, network)
        chosen = list(dict.fromkeys(first.values()))[:count]
        self.tried.update(chosen)
        return chosen

    def together(self, kept: Sequence[Network]) -> list[Network]:
        """The network with the first two changes, the first three and so on."""
        network, networks = self.network, []
        for change in (_change(self.network, each) for each in kept):
            network = _changed(network, change)
            networks.append(network)
        return [each for each in dict.fromkeys(networks) if each not in kept]


def shrink(
    space: Space,
    lookout: Lookout[Judging],
    findings: Sequence[Finding],
    spreads: Sequence[float],
    reserve: int,
    at_a_time: int = AT_A_TIME,
) -> list[Network]:
    """Return the plainest network of each finding that was reached while more than `reserve` pairs were left.

    `spreads`: the standard deviation of one pair of each.
    """
    repetitions = max(map(_repetitions, findings, spreads), default=START_REPETITIONS)
    under_way = [_Shrinking(each.network, KEPT * effect_of(each.ratio)) for each in findings]
    number = 0
    while candidates := [each.singles(space, at_a_time) for each in under_way]:
        number += 1
        kept = _kept(lookout, f"shrink-{number}", under_way, candidates, repetitions, reserve)
        together = [each.together(own) for each, own in zip(under_way, kept, strict=True)]
        both = _kept(lookout, f"shrink-{number}-together", under_way, together, repetitions, reserve)
        for each, alone, several in zip(under_way, kept, both, strict=True):
            each.network = (several or alone[:1] or [each.network])[-1]
        if not any(candidates):
            break
    return [each.network for each in under_way]


def _kept(
    lookout: Lookout[Judging],
    name: str,
    under_way: Sequence[_Shrinking],
    candidates: Sequence[Sequence[Network]],
    repetitions: int,
    reserve: int,
) -> list[list[Network]]:
    """Return for each finding the candidates that surely have much of its effect; none where they are too
    many for the pairs that are left."""
    networks = list(dict.fromkeys(network for own in candidates for network in own))
    if not networks or lookout.left - repetitions * len(networks) < reserve:
        return [[] for _ in candidates]
    judged = lookout.look(name, networks, repetitions).judged(LEVEL)
    effects = {
        network: effect_of(float(ratio))
        for network, ratio, is_sure in zip(networks, judged.ratio, judged.is_sure, strict=True)
        if is_sure
    }
    return [
        [network for network in own if effects.get(network, 0.0) >= each.least]
        for each, own in zip(under_way, candidates, strict=True)
    ]


def effect_of(ratio: float) -> float:
    """The logarithm of a ratio without its sign, of a failure the most that a search knows."""
    return min(abs(math.log(ratio)), MOST) if ratio > 0 else MOST


def _repetitions(finding: Finding, spread: float) -> int:
    """Return the repetitions after which a difference as large as the finding's is sure."""
    beyond = effect_of(finding.ratio) - math.log1p(finding.margin)
    needed = (2.5 * spread / beyond) ** 2 if beyond > 0 and math.isfinite(spread) else MOST_REPETITIONS
    return int(min(max(START_REPETITIONS, math.ceil(needed)), MOST_REPETITIONS))


def _change(before: Network, after: Network) -> dict[str, Value]:
    own = before.document()
    return {name: value for name, value in after.document().items() if own[name] != value}


def _changed(network: Network, change: Change) -> Network:
    for name, value in change.items():
        is_workload = name == WORKLOAD
        network = Network(str(value), network.values) if is_workload else network.with_value(name, value)
    return network
