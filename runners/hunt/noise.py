"""Findings once more where delays have noise.

Links of a hunt are the same for each packet and each repetition, so that a harm may be a coincidence of which
packets meet in a queue. No real path repeats it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from fecbench.designs import Design
from fecbench.results.analysis.intervals import LEVEL
from fecbench.runners.hunt.hunt_finding import Finding, Noisy
from fecbench.runners.hunt.lookout import Lookout
from fecbench.runners.hunt.measured import Judging

NOISE_MS = 1.0
"""Mean of the noise: each packet is late by 0 to twice as much."""


def again(
    design: Design, lookout: Lookout[Judging], repetitions: int, findings: Sequence[Finding]
) -> list[Finding]:
    """Return the findings with what became of the first of them, as many as there is room for.

    Where the design has noise or traces of its own, they are what they were.
    """
    count = min(len(findings), lookout.left // repetitions)
    if not count or _varies(design):
        return list(findings)
    networks = [finding.network for finding in findings[:count]]
    judged = lookout.look("noise", networks, repetitions, NOISE_MS).judged(LEVEL)
    noisy = [
        Noisy(
            NOISE_MS,
            float(judged.ratio[place]),
            (float(judged.low[place]), float(judged.high[place])),
            bool(judged.is_sure[place]),
        )
        for place in range(count)
    ]
    first = [dataclasses.replace(finding, noisy=of) for finding, of in zip(findings, noisy, strict=False)]
    return [*first, *findings[count:]]


def _varies(design: Design) -> bool:
    return any({"jitter_ms", "trace"} & set(name.split(".")) for name in design.parameters)
