"""The content of a report about a campaign, apart from its figures: the page is drawn from this document.

As JSON it is what `report --json` prints, beside the files that were written. JSON knows neither NaN nor ∞:
an unknown value is null, and ∞, which the ratio to a timeout is, is "Infinity". Probabilities and shares are
0 to 1, ratios are of a variant to its baseline, and intervals are of confidence 0.95.
"""

from __future__ import annotations

import json
from typing import Any

from pydantic import BaseModel, ConfigDict

from fecbench.results.analysis.interoperability import Matrix
from fecbench.results.report.sections.answers import Answer, Trust, VerdictMap
from fecbench.results.report.sections.builds import Gate
from fecbench.results.report.sections.campaign import Campaign, Starts
from fecbench.results.report.sections.crosscheck import Crosscheck
from fecbench.results.report.sections.findings import (
    Comparison,
    Explained,
    Finding,
    Medians,
    Metric,
    Reproduced,
)
from fecbench.results.report.sections.trials import (
    Attempts,
    Disturbance,
    Outage,
    SecondTries,
    Trial,
    Unpaired,
)


class Document(BaseModel):
    """The whole content of a report about a campaign."""

    # The document that the command prints has the names of files, too.
    model_config = ConfigDict(extra="ignore", frozen=True)

    campaign: Campaign
    gate: Gate | None
    """The verdict of a campaign of two builds; None for any other campaign."""
    lead: str
    """A sentence that says what the answers count."""
    answers: list[Answer]
    """One for each metric and variant that has a case, those with the most decided effects first."""
    maps: list[VerdictMap]
    """One for each of them and workload whose design varies two numbers at least, in this order."""
    trust: list[Trust]
    """Reasons to trust them, or not to."""
    notes: list[str]
    """Other facts that bear on the answers, in sentences; the end of the headline."""
    headline: list[str]
    """The findings in sentences; the first counts the trials."""
    first_attempts: bool
    """Whether groups that needed a second try are left out of what is compared."""
    metrics: list[Metric]
    """The metrics that are compared."""
    comparisons: list[Comparison]
    findings: list[Finding]
    """One for each workload and variant of the design."""
    decided: bool
    """Whether any point has enough repetitions for an interval."""
    states: dict[str, dict[str, int]]
    """The number of trials of each variant in each state, and of those that were "not run"."""
    outages: list[Outage]
    """One for each workload and variant; none where no trial met an outage."""
    attempts: list[Attempts]
    """One for each variant."""
    second_tries: SecondTries | None
    """None where no group needed one."""
    disturbances: list[Disturbance]
    """One for each variant; none in virtual time."""
    disturbance_warnings: list[str]
    """A sentence for each variant that stalled for another share of its time than its baseline."""
    calibrations: list[dict[str, Any]]
    """The measurements of each calibration of the link, as provenance has them."""
    crosscheck: Crosscheck | None
    """None for an emulated campaign, and where no sample was emulated."""
    crosscheck_sentences: list[str]
    """The first is the verdict; none for an emulated campaign."""
    lateness_unknown: int
    """Trials that are ok of which it is not known how late packets left a link."""
    yardsticks: dict[str, list[str]]
    """The sentences of A/A campaigns in the same database about the least visible difference, by their
    name."""
    medians: list[Medians]
    """One for each workload that has any."""
    explained: list[Explained]
    """One for each variant and metric that has a ratio."""
    reproduced: list[Reproduced]
    """The figures of the paper whose design the campaign ran."""
    interoperability: Matrix | None
    """The clients that work with each server, where variants name servers."""
    not_ok: int
    """Trials that were run and are not ok."""
    doubtful: list[Trial]
    """The trials that were run and are not ok, 1,000 at most."""
    repeated: int
    """Runs that another attempt replaced."""
    replaced: list[Trial]
    """The runs that another attempt replaced, 1,000 at most."""
    unpaired: list[Unpaired]
    """Repetitions that no ratio contains, and why."""
    starts: Starts
    provenance: dict[str, Any]
    """The circumstances of the campaign's runs; of web pages and traces the hash alone."""
    repeat: list[str]
    """The commands that repeat the campaign."""
    doubts: list[str]
    """Reasons why they may not repeat exactly what was run, in sentences."""

    def as_json(self) -> dict[str, Any]:
        """The document in values that JSON knows."""
        document: dict[str, Any] = json.loads(self.model_dump_json())
        return document
