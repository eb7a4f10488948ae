"""`fecbench figure`: one figure of a campaign, as a paper wants it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fecbench.hints import nearest
from fecbench.runners.commands.console import arguments, completion
from fecbench.runners.commands.console.campaign_documents import print_document
from fecbench.runners.commands.console.choice import comparing, one_campaign, open_database
from fecbench.runners.commands.console.destination import check_file, writing
from fecbench.runners.commands.console.terminal import note, say
from fecbench.runners.refusal import Refusal

if TYPE_CHECKING:
    from fecbench.results.report.drawings import Named
    from fecbench.results.store.database import Database
    from fecbench.results.store.records import CampaignInfo

_INCHES = {"in": 1.0, "cm": 1 / 2.54, "mm": 1 / 25.4, "pt": 1 / 72.27}
_END = re.compile(r"\.\s+(?=\D)")
"""The end of a sentence. That of "Fig. 6" is none."""
_WIDTH = re.compile(r"(\d+(?:\.\d+)?)\s*(in|cm|mm|pt)")
_LEAST, _MOST = 1.5, 20.0  # inches


def figure(
    name: Annotated[
        str,
        typer.Argument(
            metavar="[NAME]",
            help="The figure: ratio, bars, points, map and so on. Without a name, those of the campaign are"
            " listed.",
        ),
    ] = "",
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE.pdf",
            help="The file: PDF, SVG or PNG, as its name ends. Its caption is written beside it.",
        ),
    ] = None,
    db: arguments.Database = arguments.DATABASE,
    campaign: arguments.Campaign = "",
    width: Annotated[
        str,
        typer.Option(metavar="3.33in", help="Its width, in in, cm, mm or pt; by default that of the style."),
    ] = "",
    style: Annotated[
        str,
        typer.Option(
            metavar="paper|acm|ieee|FILE.mplstyle", help="Letters and lines: ours, or a file of Matplotlib's."
        ),
    ] = "paper",
    arms: Annotated[
        list[str] | None,
        typer.Option(
            metavar="LABEL",
            help="Only this variant, beside what it is compared with; repeatable.",
            autocompletion=completion.variants,
        ),
    ] = None,
    workloads: Annotated[
        list[str] | None, typer.Option(metavar="LABEL", help="Only this workload; repeatable.")
    ] = None,
    title: Annotated[bool, typer.Option("--title/--no-title", help="The question above the panels.")] = True,
    metric: arguments.Metric = "",
    margin: arguments.Margin = None,
    statistic: arguments.Statistic = None,
    as_json: arguments.Json = False,
) -> None:
    """Draw one figure of a campaign for a paper: in a column's width, with letters that are embedded.

    PDF has TrueType letters, and text stays text in SVG. The caption is FILE.caption.txt.
    """
    inches = _inches(width)
    if name and output is None:
        raise Refusal(f"figure {name}: give --output FILE.pdf")
    if output is not None:
        if not name:
            raise Refusal(f"--output {output}: give the figure's name, too; without it, names are listed")
        check_file("--output", output, arguments.DRAWN)
    with open_database(db) as database:
        info = comparing(database, one_campaign(database, campaign), metric, margin, statistic)
        source = _Source(database, info, tuple(arms or ()), tuple(workloads or ()))
        if output is None:
            _list(source.figures(explained=True), as_json)
            return
        drawing = source.figure(name)
        caption = _draw(drawing, output, style, inches, title)
    if as_json:
        print_document({"figure": drawing.name, "file": str(output), "caption": caption})
    else:
        say(f"figure {output}")
        say(f"caption {output.with_suffix('.caption.txt')}")


@dataclass(frozen=True)
class _Source:
    """The campaign and the trials of the figures."""

    database: Database
    campaign: CampaignInfo
    arms: tuple[str, ...]
    workloads: tuple[str, ...]

    def figures(self, *, explained: bool) -> Mapping[str, Named]:
        from fecbench.results.report.drawings import named
        from fecbench.results.report.evidence import gather

        return named(
            gather(
                self.database,
                self.campaign,
                arms=self.arms,
                workloads=self.workloads,
                explained=explained,
            )
        )

    def figure(self, name: str) -> Named:
        """Return the figure of that name, or the only one whose name begins with it.

        Explanations take longest, and few figures need them, so they are made last.
        """
        for explained in (False, True):
            figures = self.figures(explained=explained)
            if name in figures:
                return figures[name]
            longer = [other for other in figures if other.startswith(f"{name}-")]
            if len(longer) == 1:
                return figures[longer[0]]
            if longer:
                raise Refusal(f"figure {name}: there are {len(longer)}: choose one of {', '.join(longer)}")
        raise Refusal(f"figure {name}: campaign {self.campaign.name!r} has none; {nearest(name, figures)}")


def _inches(width: str) -> float | None:
    if not width:
        return None
    match = _WIDTH.fullmatch(width.strip())
    inches = float(match[1]) * _INCHES[match[2]] if match else 0.0
    if not _LEAST <= inches <= _MOST:
        raise Refusal(
            f"--width {width}: must be a number with its unit, {_LEAST:g}in to {_MOST:g}in: 3.33in, 8.5cm,"
            " 85mm or 240pt"
        )
    return inches


def _list(figures: Mapping[str, Named], as_json: bool) -> None:
    if as_json:
        print_document([{"figure": figure.name, "caption": figure.caption} for figure in figures.values()])
        return
    for figure in figures.values():
        say(f"{figure.name}: {_END.split(figure.caption)[0].rstrip('.')}")


def _draw(drawing: Named, output: Path, style: str, inches: float | None, titled: bool) -> str:
    """Draw a figure into a file: its caption."""
    from fecbench.results.figures import NothingToDraw
    from fecbench.results.figures.paper import caption_of, page_of, with_known_letters, write
    from fecbench.results.figures.style import on_page

    page, absent = with_known_letters(page_of(style, inches, titled=titled))
    if absent:
        note(f"--style {style}: {absent}")
    with on_page(page):
        try:
            figure = drawing.draw()
        except NothingToDraw as nothing:
            raise Refusal(f"figure {drawing.name}: {nothing}") from None
        caption = caption_of(page, drawing.caption)
        with writing("--output", output):
            write(figure, output, caption)
    return caption
