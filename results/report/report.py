"""The report of a campaign: its figures as PNG, SVG and PDF, and one HTML page that needs nothing else.

The same database gives the same files, byte for byte. A campaign that lacks what a figure needs gets a
sentence in its place. A folder that cannot be written is refused, and none is written in part.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from fecbench.errors import BadInput
from fecbench.results.figures.saving import SUFFIXES, Folder
from fecbench.results.gate.answer import Answer
from fecbench.results.report.collecting import document_of
from fecbench.results.report.document import Document
from fecbench.results.report.drawings import draw
from fecbench.results.report.evidence import gather
from fecbench.results.report.exploring import explorer
from fecbench.results.report.page import page
from fecbench.results.report.rerun_pair import RerunPair
from fecbench.results.store.database import Database
from fecbench.results.store.records import CampaignInfo
from fecbench.whole_files import filling, write_text

PAGE = "report.html"


@dataclass(frozen=True)
class ReportPaths:
    html: Path
    pngs: list[Path]
    svgs: list[Path]
    pdfs: list[Path]
    document: Document
    """The content of the page."""


def report(
    database: Database,
    campaign: CampaignInfo,
    folder: str | Path,
    metric: str = "",
    *,
    first_attempts: bool = False,
    gate: Answer | None = None,
    pairs: Sequence[RerunPair] = (),
) -> ReportPaths:
    """Write the report of a campaign into a folder, which is made when it is absent.

    `metric`: what is compared, by default what each workload does. `first_attempts` compares without the
    groups that needed a second try (`analysis.attempts`). `gate`: the answer of a campaign of two builds,
    where it is known already; `pairs`: its worst pairs, run again. Raises DatabaseError when the campaign
    cannot be read, and BadInput when the folder cannot be written.
    """
    try:
        with filling(Path(folder)) as unfinished:
            saved = Folder(unfinished)
            evidence = gather(database, campaign, metric, first_attempts, gate)
            document = document_of(evidence)
            html = page(document, draw(saved, evidence, pairs), explorer(evidence))
            write_text(unfinished / PAGE, html)
        for name in saved.undrawn:  # of an earlier report
            (Path(folder) / name).unlink(missing_ok=True)
    except OSError as error:
        raise BadInput(f"{folder}: the report cannot be written here: {error.strerror}") from error
    pngs, svgs, pdfs = (
        [Path(folder) / file.name for file in saved.with_suffix(suffix)] for suffix in SUFFIXES
    )
    return ReportPaths(Path(folder) / PAGE, pngs, svgs, pdfs, document)
