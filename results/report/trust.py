"""Trust in the answer of a campaign: facts that a reader has to know before using it."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence

import pandas as pd

from fecbench.quantities import counted
from fecbench.results.analysis import same_losses
from fecbench.results.analysis.intervals import LEVEL
from fecbench.results.analysis.margins import margins_of, percent
from fecbench.results.analysis.pairing import baselines_of
from fecbench.results.report.answer_sentences import margin_text
from fecbench.results.report.evidence import Evidence
from fecbench.results.report.sections.answers import Trust
from fecbench.results.report.sections.crosscheck import Crosscheck
from fecbench.results.report.sections.findings import Finding
from fecbench.results.report.sections.trials import Attempts
from fecbench.results.store.records import CampaignInfo, is_clocked

_LOST = ("failed", "timeout")


def trust(
    evidence: Evidence,
    states: Mapping[str, Mapping[str, int]],
    attempts: Sequence[Attempts],
    crosscheck: Crosscheck | None,
    crosscheck_sentences: Sequence[str],
    findings: Sequence[Finding],
) -> Iterator[Trust]:
    """Yield what the box says, in the order in which it is read."""
    campaign = evidence.campaign
    yield _trials(campaign, states)
    if lost := ", ".join(
        f"{variant} {count}" for variant, of in states.items() if (count := sum(of[state] for state in _LOST))
    ):
        text = f"Failed or timed out, and counted as worse than any value: {lost}."
        yield Trust(about="missing", text=text, warns=True)
    unpaired = sum(int(pairing.unpaired["repetitions"].sum()) for pairing in evidence.pairings.values())
    if unpaired:
        yield Trust(
            about="missing",
            text=f"In no ratio: {counted(unpaired, 'pair')}, which lack a result or a ratio.",
            warns=True,
        )
    yield _invalid(attempts)
    if campaign.engine == "virtual":
        text = "In virtual time: the endpoints' real code, in a simulated network."
        yield Trust(about="engine", text=text, warns=False)
        yield _crosscheck(crosscheck, crosscheck_sentences)
    elif campaign.engine == "field":
        text = "In the field: real programs and packets, over a path that is not ours."
        yield Trust(about="engine", text=text, warns=False)
    else:
        text = "Emulated: real programs and packets, over emulated links."
        yield Trust(about="engine", text=text, warns=False)
        yield _link(campaign)
    for text in same_losses.sentences(campaign.design_text, campaign.repetitions):
        yield Trust(about="losses", text=text, warns=True)
    yield from _clocked(campaign)
    margins = margin_text(pd.Series(margins_of(campaign)))
    by = " (by workload)" if len(set(margins_of(campaign).values())) > 1 else ""
    yield Trust(about="margin", text=f"Differences of up to {margins}{by} count as none.", warns=False)
    chance = sum(row.by_chance or 0 for row in findings if row.compared_with)
    if chance >= 1:
        cases = sum(row.points for row in findings if row.compared_with)
        text = (
            f"If no variant made a difference, up to {chance:.0f} of {cases} verdicts would still name one,"
            f" by chance ({percent(LEVEL)})."
        )
        yield Trust(about="chance", text=text, warns=False)
    yield from _between(campaign)


def _between(campaign: CampaignInfo) -> Iterator[Trust]:
    """Whether something lies between the points of the design, where no trial was run."""
    compared = baselines_of(campaign)
    if compared and campaign.scales:
        command = shlex.join(["fecbench", "hunt", _design(campaign), "--arm", next(iter(compared))])
        text = (
            f"Not looked for between the networks: {command} searches there for networks that say otherwise."
        )
        yield Trust(about="between", text=text, warns=False)


def _design(campaign: CampaignInfo) -> str:
    """The design as it was named when the campaign was run: a file, or a name of the catalogue."""
    name = campaign.design_name
    words = campaign.provenance.get("command", [])
    return next((word for word in words if word == name or word.endswith(".toml")), name)


def _clocked(campaign: CampaignInfo) -> Iterator[Trust]:
    """Whether losses follow from the time in at least one link of the design."""
    if is_clocked(same_losses.parameters(campaign.design_text)):
        text = (
            "Losses are clocked by time: variants meet the same function of time, not the same lost packets."
        )
        yield Trust(about="losses", text=text, warns=False)


def _trials(campaign: CampaignInfo, states: Mapping[str, Mapping[str, int]]) -> Trust:
    ok, planned = sum(of["ok"] for of in states.values()), campaign.planned_trials
    waiting = sum(of["not run"] for of in states.values())
    most = "up to " if campaign.until_decided else ""
    some = f"; {waiting:,} were not run" if waiting else ""
    repetitions = counted(campaign.repetitions, "repetition")
    text = f"{ok:,} of {counted(planned, 'trial')} are ok{some}; {most}{repetitions} of each kind."
    return Trust(about="trials", text=text, warns=bool(waiting))


def _invalid(attempts: Sequence[Attempts]) -> Trust:
    invalid, runs = sum(row.invalid for row in attempts), sum(row.attempts for row in attempts)
    if not invalid:
        return Trust(about="invalid", text="Every trial was checked; none was invalid.", warns=False)
    share = f"{counted(invalid, 'run')} of {runs:,} ({percent(invalid / runs)})"
    text = f"{share} {'was' if invalid == 1 else 'were'} invalid: in no number here."
    return Trust(about="invalid", text=text, warns=False)


def _crosscheck(result: Crosscheck | None, sentences: Sequence[str]) -> Trust:
    text = sentences[0][0].upper() + sentences[0][1:]
    return Trust(about="cross-check", text=text, warns=result is None or result.verdict != "agrees")


def _link(campaign: CampaignInfo) -> Trust:
    measured = [
        calibration for calibration in campaign.provenance.get("calibration", []) if "good" in calibration
    ]
    if not measured:
        return Trust(about="link", text="The link was not calibrated for it.", warns=True)
    good = all(calibration["good"] for calibration in measured)
    text = (
        "The link kept every bound of its calibration."
        if good
        else "The link missed a bound of its calibration."
    )
    return Trust(about="link", text=text, warns=not good)
