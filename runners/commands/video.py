"""`fecbench video`: makes and shows the ladders that the workload `video` plays. Needs no root."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fecbench.runners.commands.console import arguments
from fecbench.runners.commands.console.destination import check_file, writing
from fecbench.runners.commands.console.terminal import note, say
from fecbench.runners.commands.console.terminal_tables import print_table, table_of
from fecbench.whole_files import write_text

if TYPE_CHECKING:
    from fecbench.runners.workloads.video.ladder import Video

video = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    help="Make a video's ladder for the workload video: videos/NAME.json beside the designs that play it.",
)


@video.command()
def make(
    output: arguments.OutputFile,
    seed: Annotated[int, typer.Option(min=0, max=2**64 - 1)] = 2021,
    segment_s: Annotated[float, typer.Option(help="Length of a segment.", min=0.5, max=30.0)] = 2.0,
    duration_s: Annotated[float, typer.Option(help="Of the film.", min=1.0, max=3600.0)] = 300.0,
) -> None:
    """Make a film of nine levels, 235 kbps to 4.3 Mbps, from a seed."""
    from fecbench.runners.workloads.video import making

    command = f"fecbench video make --seed {seed} --segment-s {segment_s:g} --duration-s {duration_s:g}"
    _write(making.make(seed, segment_s, duration_s, command), output)


@video.command("from-mpd")
def from_mpd(
    presentation: Annotated[
        Path, typer.Argument(metavar="FILE.mpd|FOLDER", help="A DASH presentation, with its segments beside.")
    ],
    output: arguments.OutputFile,
) -> None:
    """Make a ladder of a DASH presentation's sizes. Nothing is fetched."""
    from fecbench.runners.workloads.video import mpd

    name = "".join(letter for letter in presentation.name if letter.isprintable())[:60] or "-"
    _write(mpd.video_from(presentation, f"fecbench video from-mpd {name}", note), output)


@video.command()
def show(
    ladder: Annotated[Path, typer.Argument(metavar="FILE.json", help="A ladder.")],
    output: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Draw its segments there, as PNG, SVG or PDF.")
    ] = None,
) -> None:
    """Show the levels of a ladder: their rates, and how far segments are from them."""
    from fecbench.runners.workloads.video.ladder import load

    loaded = load(ladder)
    if output is not None:
        from fecbench.results.figures import video as drawing
        from fecbench.results.figures.saving import SUFFIXES, save

        check_file("--output", output, list(SUFFIXES))
        with writing("--output", output):
            levels = [level.model_dump() for level in loaded.levels]
            save(drawing.segments(levels, loaded.segment_s), output)
    rows = []
    for number, level in enumerate(loaded.levels):
        rates = sorted(8e-3 * size / loaded.segment_s for size in level.sizes)
        spread = [f"{rate:.0f}" for rate in (rates[0], sum(rates) / len(rates), rates[-1])]
        rows.append((number, level.resolution, f"{level.fps:g}", f"{level.kbps:g}", *spread))
    say(f"{loaded.title}: {loaded.segments} segments of {loaded.segment_s:g} s")
    headings = ("level", "picture", "fps", "kbps", "least", "mean", "most")
    print_table(table_of(headings, rows, right=headings))


def _write(video: Video, output: Path) -> None:
    check_file("--output", output, [".json"])
    with writing("--output", output):
        write_text(output, video.text())
    lowest, highest = video.levels[0], video.levels[-1]
    say(
        f"{output}: {video.segments} segments of {video.segment_s:g} s at {len(video.levels)} levels,"
        f" {lowest.kbps:g} kbps ({lowest.resolution}) to {highest.kbps:g} kbps ({highest.resolution})"
    )
