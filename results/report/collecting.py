"""The document of a report: what is read and computed of a campaign. Nothing is drawn here."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice, starmap
from typing import Any

import pandas as pd

from fecbench.results import papers
from fecbench.results.analysis import (
    agreement,
    agreement_in_words,
    attempts,
    blocks,
    comparison,
    deciding,
    disturbances,
    equality,
    exposure,
    hosts,
    interoperability,
    late_requests,
    repair,
    starts,
    timers,
    unseen,
)
from fecbench.results.analysis.equality import NothingToCompare
from fecbench.results.analysis.pairing import Pairing
from fecbench.results.analysis.summary import median_column
from fecbench.results.metrics import of_workloads
from fecbench.results.report import repeating, second_tries
from fecbench.results.report.answer_sentences import answers, lead, with_rules
from fecbench.results.report.document import Document
from fecbench.results.report.evidence import Evidence, gather
from fecbench.results.report.finding_sentences import findings, headline
from fecbench.results.report.maps import maps
from fecbench.results.report.medians import medians_of
from fecbench.results.report.sections.answers import Answer, VerdictMap
from fecbench.results.report.sections.builds import Gate
from fecbench.results.report.sections.campaign import Campaign, Starts
from fecbench.results.report.sections.crosscheck import Crosscheck
from fecbench.results.report.sections.findings import (
    Claim,
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
    SecondTry,
    Trial,
    Unpaired,
)
from fecbench.results.report.trust import trust
from fecbench.results.store.database import Database
from fecbench.results.store.records import STATES, CampaignInfo, TrialKey

_MOST_TRIALS = 1000  # that are listed one by one: a document with more is too large to send


def collect(
    database: Database, campaign: CampaignInfo, metric: str = "", first_attempts: bool = False
) -> Document:
    """Return what the report of a campaign says (`evidence.gather`)."""
    return document_of(gather(database, campaign, metric, first_attempts))


def document_with_rules(document: Document, evidence: Evidence) -> Document:
    """Return the same document with what it says of the networks where variants help, of evidence that has
    explanations."""
    answers_with_rules = with_rules(document.answers, evidence.explained)
    return document.model_copy(
        update={
            "answers": answers_with_rules,
            "maps": _in_order(maps(evidence), answers_with_rules),
            "explained": list(map(Explained.of, evidence.explained)),
        }
    )


def document_of(evidence: Evidence) -> Document:
    """Return what the report of a campaign that was read says."""
    database, campaign, run, frame = evidence.database, evidence.campaign, evidence.run, evidence.frame
    ratios = pd.concat([part.ratios for part in evidence.parts])
    table = findings(frame, campaign, ratios, evidence.pairings)
    exposed = exposure.exposure(frame, campaign)
    disturbed = disturbances.by_variant(run, campaign)
    agreement_of_sample = agreement.of_campaign(database, campaign) if campaign.engine == "virtual" else None
    filters = repeating.filters_of(run, campaign)
    notes = [
        *blocks.sentences(database, campaign),
        *exposure.sentences(exposed),
        *timers.sentences(campaign),
        *deciding.sentences(campaign),
        *unseen.sentences(evidence.pairings, campaign),
        *repair.sentences(database, campaign),
        *late_requests.sentences(database, campaign),
    ]
    states = _states(run, campaign)
    rerun = [Attempts(**row) for row in _rows(attempts.by_variant(database, campaign, run))]
    crosscheck = None if agreement_of_sample is None else Crosscheck.of(agreement_of_sample)
    crosscheck_sentences = (
        agreement_in_words.sentences(agreement_of_sample) if campaign.engine == "virtual" else []
    )
    arms = list(_findings(table, campaign))
    answered = with_rules(answers(table, campaign), evidence.explained)
    return Document(
        campaign=Campaign.of(campaign),
        gate=None if evidence.gate is None else Gate.of(evidence.gate),
        lead=" ".join(filter(None, (blocks.lead(database, campaign), lead(campaign)))),
        answers=answered,
        maps=_in_order(maps(evidence), answered),
        trust=list(trust(evidence, states, rerun, crosscheck, crosscheck_sentences, arms)),
        notes=notes,
        headline=[*headline(frame, campaign, table, run, evidence.pairings), *notes],
        first_attempts=evidence.first_attempts,
        metrics=[Metric.of(part.metric) for part in evidence.parts],
        comparisons=[Comparison(**row) for row in comparison.document(table[table["compared_with"] != ""])],
        findings=arms,
        decided=bool(len(ratios) and ratios["low"].notna().any()),
        states=states,
        outages=[Outage(**row) for row in _rows(exposed)],
        attempts=rerun,
        second_tries=_second_tries(
            second_tries.compare(run, campaign, None if evidence.first_attempts else table)
        ),
        disturbances=[Disturbance(**row) for row in _rows(disturbed)],
        disturbance_warnings=disturbances.warnings(disturbed, campaign),
        calibrations=campaign.provenance.get("calibration", []),
        crosscheck=crosscheck,
        crosscheck_sentences=crosscheck_sentences,
        lateness_unknown=_lateness_unknown(frame),
        yardsticks=_yardsticks(database, campaign),
        medians=list(map(Medians.of, medians_of(frame, campaign, table))),
        explained=list(map(Explained.of, evidence.explained)),
        reproduced=list(_reproduced(frame, campaign)),
        interoperability=interoperability.of_campaign(database, campaign),
        not_ok=int((run["state"] != "ok").sum()),
        doubtful=_doubtful(database, run),
        repeated=int((run["attempt"] - 1).sum()),
        replaced=_replaced(database, campaign, run),
        unpaired=list(_unpaired(evidence.pairings)),
        starts=Starts.of(
            starts.starts_of(database, campaign, evidence.by_start), hosts.told_of(database, campaign)
        ),
        provenance=_small(campaign.provenance),
        repeat=repeating.commands(
            campaign,
            filters or [],
            *(
                (0, ())
                if agreement_of_sample is None
                else (agreement_of_sample.share, agreement_of_sample.arms)
            ),
        ),
        doubts=repeating.doubts(run, campaign, filters),
    )


def _in_order(of_all: Iterable[VerdictMap], answered: Sequence[Answer]) -> list[VerdictMap]:
    """Return the maps in the order of the answers."""
    order = [(answer.metric, answer.variant) for answer in answered]
    return sorted(
        (one for one in of_all if (one.metric, one.variant) in order),
        key=lambda one: order.index((one.metric, one.variant)),
    )


def _rows(table: pd.DataFrame) -> list[dict[str, Any]]:
    return [{str(name): value for name, value in row.items()} for row in table.to_dict("records")]


def _findings(table: pd.DataFrame, campaign: CampaignInfo) -> Iterator[Finding]:
    compared, column = of_workloads(campaign), median_column(campaign)
    for row in _rows(table.drop(columns=["metric", "statistic"]).rename(columns={column: "median"})):
        yield Finding(metric=compared[row["workload"]], **row)


def _states(run: pd.DataFrame, campaign: CampaignInfo) -> dict[str, dict[str, int]]:
    planned = campaign.planned_pairs
    table: dict[str, dict[str, int]] = {}
    for variant in (variant["label"] for variant in campaign.variants):
        states = run.loc[run["variant"] == variant, "state"]
        table[variant] = {state: int((states == state).sum()) for state in STATES} | {
            "not run": planned - len(states)
        }
    return table


def _second_tries(compared: second_tries.Comparison | None) -> SecondTries | None:
    if compared is None:
        return None
    return SecondTries(
        groups=compared.groups,
        left_out=compared.left_out,
        rows=[SecondTry(**row) for row in _rows(compared.table)],
        differences=compared.differences,
    )


def _lateness_unknown(frame: pd.DataFrame) -> int:
    late = [name for name in frame.columns if name.endswith(".late")]
    return int(frame.loc[frame["state"] == "ok", late].isna().any(axis=1).sum())


def _yardsticks(database: Database, campaign: CampaignInfo) -> dict[str, list[str]]:
    sentences = {}
    for other in database.campaigns():
        if other.kind == "against-itself" and other.id != campaign.id:
            with contextlib.suppress(NothingToCompare):  # it has not run far enough
                sentences[other.name] = equality.sentences(equality.of_itself(database, other))
    return sentences


def _reproduced(frame: pd.DataFrame, campaign: CampaignInfo) -> Iterator[Reproduced]:
    for figure in papers.figures_of(campaign):
        yield Reproduced(
            number=figure.number,
            claims=[
                Claim(
                    text=claim.text,
                    paper=claim.paper,
                    measured=claim.measured,
                    holds=claim.holds,
                    verdict=claim.verdict,
                    size=claim.size,
                    ours=claim.ours,
                )
                for claim in figure.claims(frame, campaign)
            ],
            differences=figure.differences(frame, campaign),
        )


def _doubtful(database: Database, run: pd.DataFrame) -> list[Trial]:
    """Return the trials that are not ok, in the order in which they ended."""
    ids = run.loc[run["state"] != "ok", "id"]
    return list(map(Trial.of, database.trials_with(sorted(ids)[:_MOST_TRIALS])))


def _replaced(database: Database, campaign: CampaignInfo, run: pd.DataFrame) -> list[Trial]:
    again = run.loc[run["attempt"] > 1, ["variant", "workload", "point", "repetition"]]
    keys = starmap(TrialKey, again.astype(object).itertuples(index=False, name=None))
    runs = (attempt for key in keys for attempt in database.attempts(campaign.id, key)[:-1])
    return list(map(Trial.of, islice(runs, _MOST_TRIALS)))


def _unpaired(pairings: Mapping[str, Pairing]) -> Iterator[Unpaired]:
    for variant, pairing in pairings.items():
        for row in _rows(pairing.unpaired):
            yield Unpaired(variant=variant, **row)


def _small(provenance: Mapping[str, Any]) -> dict[str, Any]:
    """Provenance without what the document has elsewhere, of web pages and traces the hash alone, and of
    implementations all but the text of their declarations."""
    files = {
        kind: {name: {"sha256": file["sha256"]} for name, file in provenance[kind].items()}
        for kind in ("pages", "traces")
        if kind in provenance
    }
    implementations = {
        name: {key: value for key, value in implementation.items() if key != "declaration"}
        for name, implementation in provenance.get("implementations", {}).items()
    }
    elsewhere = ("calibration", "implementations")
    rest = {name: value for name, value in provenance.items() if name not in elsewhere}
    return rest | files | {"implementations": implementations}
