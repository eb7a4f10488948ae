"""Whether the answer of a campaign changes without the groups that needed a second try.

Trials are run again until they are valid. If that favours an arm, it shows here: the same tables and claims
are made of first attempts alone, beside those of all.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pandas as pd

from fecbench.results import metrics, papers
from fecbench.results.analysis.attempts import first_attempts, groups
from fecbench.results.analysis.intervals import WORDS, verdicts
from fecbench.results.analysis.pairing import only_compared
from fecbench.results.report.evidence import parts_of
from fecbench.results.report.finding_sentences import findings
from fecbench.results.store.records import CampaignInfo


@dataclass(frozen=True)
class Comparison:
    """The ratios of all trials, beside those of first attempts alone."""

    groups: int
    """The number of groups that have a trial."""
    left_out: int
    """The number of them that needed a second try."""
    table: pd.DataFrame
    """One row a (workload, variant) that is compared: `points`, `median_ratio`, `low`, `high` and the
    `verdict` of the interval, of all trials, and again, ending with `_first`, of first attempts alone."""
    differences: list[str]
    """A sentence for each decision that is another one of first attempts alone."""


def compare(
    frame: pd.DataFrame, campaign: CampaignInfo, of_all: pd.DataFrame | None = None
) -> Comparison | None:
    """Return the comparison of `frames.trials`; None where no group needed a second try. `of_all`: the
    `findings` of all these trials, where they are known already."""
    compared = only_compared(frame, campaign).assign(attempt=frame["attempt"])
    first = first_attempts(compared)
    if len(first) == len(frame):
        return None
    key = ["workload", "variant"]
    both = [_findings(compared, campaign) if of_all is None else of_all, _findings(first, campaign)]
    of_all, of_first = (_ratios(table, campaign) for table in both)
    table = of_all.merge(of_first, on=key, suffixes=("", "_first"))
    differences = [*_of_medians(table), *_of_claims(frame, campaign)]
    return Comparison(groups(compared), groups(compared) - groups(first), table, differences)


def _findings(frame: pd.DataFrame, campaign: CampaignInfo) -> pd.DataFrame:
    parts = parts_of(frame, campaign)
    pairings = parts[0].pairings if len(parts) == 1 else None
    return findings(frame, campaign, pd.concat([part.ratios for part in parts]), pairings)


def _ratios(table: pd.DataFrame, campaign: CampaignInfo) -> pd.DataFrame:
    table = table.query("planned_points > 0")
    names = metrics.of_workloads(campaign)
    more_is_better = table["workload"].map(lambda label: metrics.of(names[label]).more_is_better).astype(bool)
    low, high = table["low"].astype(float), table["high"].astype(float)
    columns = ["workload", "variant", "points", "median_ratio", "low", "high"]
    verdict = verdicts(low, high, more_is_better, table["margin"].astype(float))
    return table[columns].assign(verdict=verdict.astype(str))


def _of_medians(table: pd.DataFrame) -> Iterator[str]:
    for row in table.to_dict("records"):
        if row["verdict"] != row["verdict_first"]:
            what = f"{row['variant']}, {row['workload']}: the median ratio says"
            yield _sentence(what, row["verdict"], row["verdict_first"])


def _of_claims(frame: pd.DataFrame, campaign: CampaignInfo) -> Iterator[str]:
    figures = papers.figures_of(campaign)
    first = first_attempts(frame) if figures else frame
    for figure in figures:
        of_first = {claim.text: claim.verdict for claim in figure.claims(first, campaign)}
        for claim in figure.claims(frame, campaign):
            other = of_first.get(claim.text, "cannot tell")
            if claim.verdict != other:
                yield _sentence(f"{figure.number}, {claim.text}:", claim.verdict, other)


def _sentence(what: str, of_all: str, of_first: str) -> str:
    one, other = (WORDS.get(verdict, verdict) for verdict in (of_all, of_first))
    return f"{what} {one} of all trials, and {other} of first attempts."
