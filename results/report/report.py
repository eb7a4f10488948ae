"""The report of a campaign: its figures, and one HTML page that needs nothing else.

The same database gives the same files, byte for byte. A campaign that lacks what a figure needs gets a
sentence in its place. A folder that cannot be written is refused, and none is written in part.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from fecbench.errors import BadInput
from fecbench.results.figures.saving import SUFFIXES, Drawing, Folder
from fecbench.results.gate.build_answer import Answer
from fecbench.results.report.collecting import document_of, document_with_rules
from fecbench.results.report.document import Document
from fecbench.results.report.drawings import Drawings, draw, named
from fecbench.results.report.evidence import gather, with_explanations
from fecbench.results.report.exploring import explorer
from fecbench.results.report.page import page
from fecbench.results.report.rerun_pair import RerunPair
from fecbench.results.store.database import Database
from fecbench.results.store.records import CampaignInfo
from fecbench.whole_files import filling, write_text

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PAGE = "report.html"


Tell = Callable[[int, int, str], None]
_UNFINISHED = (
    "The rules, the interactive charts and the figures of this page are being made: load it again in a while."
)


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
    vectors: bool = False,
    tell: Tell = lambda *_: None,
) -> ReportPaths:
    """Write the report of a campaign into a folder, which is made when it is absent.

    Where there is no report, the page is written with the answer alone first, and whole later. `metric`: what
    is compared, by default what each workload does. `first_attempts` compares without the groups that needed
    a second try (`analysis.attempts`). `gate`: the answer of a campaign of two builds, where it is known
    already; `pairs`: its worst pairs, run again. A figure is a PNG; with `vectors`, an SVG and a PDF, too.
    `tell` is told how many figures of how many are drawn, and what is made now. Raises DatabaseError when the
    campaign cannot be read, and BadInput when the folder cannot be written.
    """
    forms = SUFFIXES if vectors else SUFFIXES[:1]
    try:
        tell(0, 0, "the answer")
        evidence = gather(database, campaign, metric, first_attempts, gate, explained=False)
        document = document_of(evidence)
        with _first_page(Path(folder), document):
            tell(0, 0, "where it helps")
            evidence = with_explanations(evidence)
            document = document_with_rules(document, evidence)
            with filling(Path(folder)) as unfinished:
                figures = len(named(evidence, on_request=False)) + len(pairs)
                saved = _Counting(unfinished, forms, figures, tell)
                drawings = draw(saved, evidence, pairs)
                write_text(unfinished / PAGE, page(document, drawings, explorer(evidence)))
        on_request = (f"{name}{suffix}" for name in named(evidence) for suffix in SUFFIXES)
        of_now = {file.name for file in saved.files}
        for name in {*saved.undrawn, *on_request} - of_now:  # of an earlier report
            (Path(folder) / name).unlink(missing_ok=True)
    except OSError as error:
        raise BadInput(f"{folder}: the report cannot be written here: {error.strerror}") from error
    pngs, svgs, pdfs = (
        [Path(folder) / file.name for file in saved.with_suffix(suffix)] for suffix in SUFFIXES
    )
    return ReportPaths(Path(folder) / PAGE, pngs, svgs, pdfs, document)


@contextmanager
def _first_page(folder: Path, document: Document) -> Iterator[None]:
    """Write the page with what is known before a rule is sought or a figure is drawn.

    An earlier report stays until the new one is whole. After an error, the folder is as it was.
    """
    if (folder / PAGE).exists():
        yield
        return
    absent = [place for place in (folder, *folder.parents) if not place.exists()]
    _write(folder, document)
    try:
        yield
    except BaseException:
        (folder / PAGE).unlink(missing_ok=True)
        with suppress(OSError):
            for place in absent:
                place.rmdir()
        raise


def _write(folder: Path, document: Document) -> None:
    absent = Drawing(sentence="It is being drawn.")
    drawings = Drawings(absent, [absent], [], [], [absent] * len(document.reproduced))
    with filling(folder) as unfinished:
        write_text(unfinished / PAGE, page(document, drawings, unfinished=_UNFINISHED))


class _Counting(Folder):
    """A folder that tells of each figure that is drawn into it."""

    def __init__(self, path: Path, forms: Sequence[str], figures: int, tell: Tell) -> None:
        super().__init__(path, forms)
        self._figures, self._tell, self._count = figures, tell, 0

    def draw(self, name: str, caption: str, draw: Callable[[], Figure]) -> Drawing:
        self._tell(self._count, self._figures, f"figure {name}")
        drawing = super().draw(name, caption, draw)
        self._count += 1
        return drawing
