"""`fecbench page`: makes the pages that the workload `page` loads. Needs no root."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fecbench.quantities import counted
from fecbench.runners.commands.console import arguments
from fecbench.runners.commands.console.destination import check_file, writing
from fecbench.runners.commands.console.terminal import note, say
from fecbench.runners.refusal import Refusal
from fecbench.whole_files import write_text

if TYPE_CHECKING:
    from fecbench.runners.workloads.page.graph import Page

page = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    help="Make a web page's graph for the workload page: pages/NAME.json beside the designs that load it.",
)


@page.command("from-har")
def from_har(
    recorded: Annotated[Path, typer.Argument(metavar="FILE.har", help="One page load, saved by a browser.")],
    output: arguments.OutputFile,
    page_id: Annotated[
        str | None,
        typer.Option("--page", metavar="ID", help="Which page to take, where there are several."),
    ] = None,
) -> None:
    """Make a page of what a browser recorded: a HAR of Chrome, Firefox or WebPageTest."""
    from fecbench.runners.workloads.page import har

    _write(har.page_from(recorded, page_id, note), output)


@page.command()
def make(
    output: arguments.OutputFile,
    seed: Annotated[int, typer.Option(min=0, max=2**64 - 1)] = 2021,
    size_bytes: Annotated[
        int, typer.Option(help="Of all objects: from 100,000 to 1,000,000,000.")
    ] = 1_900_000,
) -> None:
    """Make a photo site's front page from a seed."""
    from fecbench.runners.workloads.page import photo_site

    smallest, largest = photo_site.SMALLEST_BYTES, photo_site.LARGEST_BYTES
    if not smallest <= size_bytes <= largest:
        raise Refusal(f"--size-bytes {size_bytes}: must be from {smallest} to {largest}")
    command = f"fecbench page make --seed {seed} --size-bytes {size_bytes}"
    _write(photo_site.make(seed, size_bytes, command), output)


def _write(page: Page, output: Path) -> None:
    check_file("--output", output, [".json"])
    with writing("--output", output):
        write_text(output, page.text())
    say(
        f"{output}: {counted(len(page.objects), 'object')} of {page.size_bytes} bytes from"
        f" {counted(len(page.origins), 'origin')},"
        f" {page.depth} deep"
    )
