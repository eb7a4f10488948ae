"""The answer of a hunt: as a document, in words, and as a design that keeps what was found."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from typing import Any

from fecbench.designs import Design
from fecbench.documents import number
from fecbench.quantities import counted
from fecbench.results.analysis.margins import percent
from fecbench.runners.hunt.campaign_laboratory import of_networks
from fecbench.runners.hunt.hunt import Answer
from fecbench.runners.hunt.hunt_finding import Finding, Noisy

SUFFIX = "-found"
"""Suffix of the name of the design that keeps the findings."""
MOST_TOLD = 4
"""Findings that are told with all that is known of them."""


def document(answer: Answer, where: Sequence[str]) -> dict[str, Any]:
    """Return the document of `--json`; scripts rely on it.

    `where`: the options by which commands find the trials.
    """
    share = answer.share
    has_compared = share is not None and share.networks > 0
    return {
        "looked": answer.looked,
        "share": {
            "harmed": share.harmed / share.networks if share and has_compared else None,
            "interval": list(share.interval) if share and has_compared else None,
            "margin": answer.question.design.margin if share is None else share.margin,
        },
        "found": [_found(finding, where) for finding in answer.findings],
    }


def _found(finding: Finding, where: Sequence[str]) -> dict[str, Any]:
    box = finding.box
    return {
        "network": finding.network.document(),
        "ratio": number(finding.ratio),
        "interval": [number(end) for end in finding.interval],
        "repetitions": finding.repetitions,
        "shrunk_from": finding.shrunk_from.document(),
        "region": None
        if box is None
        else {"box": {name: list(ends) for name, ends in box.ends.items()}, "harmed": box.harmed},
        "noise": None if finding.noisy is None else _with_noise(finding.noisy),
        "replay": replays(finding, where),
    }


def _with_noise(noisy: Noisy) -> dict[str, Any]:
    return {
        "jitter_ms": noisy.noise_ms,
        "ratio": number(noisy.ratio),
        "interval": [number(end) for end in noisy.interval],
        "sure": noisy.is_sure,
    }


def replays(finding: Finding, where: Sequence[str]) -> list[str]:
    """The commands that run the pair of a finding again and keep all that is recorded; the second draws both
    over time."""
    first, second = finding.pair
    figure = ("--beside", str(first), "--plot", f"trials-{first}-{second}.png")
    return [
        shlex.join(["fecbench", "replay", str(trial), *where, "--output", f"trial-{trial}", *drawn])
        for trial, drawn in ((first, ()), (second, figure))
    ]


def lines(answer: Answer, where: Sequence[str]) -> Iterator[str]:
    """The answer in words, the most important line first."""
    question, share = answer.question, answer.share
    arms = question.claim
    if share is None or not share.networks:
        yield f"no answer: no network was compared in {counted(answer.looked, 'trial')}"
        return
    count = len(answer.findings)
    if count:
        yield f"found: {counted(count, 'kind')} of network in which {arms}"
    elif answer.is_whole:
        yield f"nothing found: no network in which {arms} surely"
    else:
        yield f"no answer: the time was over before any network could be confirmed in which {arms}"
    low, high = share.interval
    margin = max([share.margin, *(finding.margin for finding in answer.findings)])
    yield f"looked at {counted(answer.looked, 'trial')}; margin {percent(margin)} at most"
    yield (
        f"of {counted(share.networks, 'network')} spread over the space it is surely so in"
        f" {share.harmed}, and may be in"
        f" {share.open} more: in {percent(low)} to {percent(high)} of the space"
    )
    yield from answer.remarks
    told = answer.findings[:MOST_TOLD]
    for finding in told:
        yield ""
        yield from _lines(finding, where)
    if more := answer.findings[MOST_TOLD:]:
        yield ""
        yield "confirmed as well:"
        yield from (f"  {_effect(finding)}: {finding.network}" for finding in more)


def _lines(finding: Finding, where: Sequence[str]) -> Iterator[str]:
    yield f"{_effect(finding)}: {finding.network}"
    if finding.shrunk_from != finding.network:
        yield f"  shrunk from: {finding.shrunk_from}"
    if finding.box is not None:
        ends = ", ".join(f"{name} {low:.4g} to {high:.4g}" for name, (low, high) in finding.box.ends.items())
        yield (
            f"  around it, {percent(finding.box.harmed)} of {counted(finding.box.networks, 'network')}"
            f" are so: {ends}"
        )
    if (noisy := finding.noisy) is not None:
        low, high = noisy.interval
        yield (
            f"  with {noisy.noise_ms:g} ms of noise of the delay{'' if noisy.is_sure else ', not surely so'}:"
            f" {noisy.ratio:.3f} times ({low:.3f} to {high:.3f})"
        )
    yield from (f"  {command}" for command in replays(finding, where))


def _effect(finding: Finding) -> str:
    if finding.by_failures:
        return f"one alone fails or times out ({counted(finding.repetitions, 'repetition')})"
    low, high = finding.interval
    return (
        f"{finding.ratio:.3f} times ({low:.3f} to {high:.3f}, {counted(finding.repetitions, 'repetition')})"
    )


def design_of_found(answer: Answer) -> Design | None:
    """A design whose points are the findings, for a campaign that asks again; None for none."""
    if not answer.findings:
        return None
    question = answer.question
    networks = [finding.network for finding in answer.findings]
    labels = [label for label in question.space.workloads if any(each.workload == label for each in networks)]
    return of_networks(
        question.design,
        networks,
        labels,
        name=question.design.name + SUFFIX,
        repetitions=question.repetitions,
        seed=question.seed("found"),
    )
