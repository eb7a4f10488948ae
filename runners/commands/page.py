"""`fecbench page`: makes the pages that the workload `page` loads. Needs no root."""

from pathlib import Path
from typing import Annotated

import typer

from runners.refusal import Refusal
from runners.workloads import har, photo_site
from runners.workloads.page_graph import Page

page = typer.Typer(no_args_is_help=True, help="Make a web page's graph for the workload page.")

Output = Annotated[
    Path, typer.Option(help="The file to write: pages/NAME.json beside the designs that load it.")
]


@page.command("from-har")
def from_har(
    recorded: Annotated[Path, typer.Argument(metavar="FILE.har", help="One page load, saved by a browser.")],
    output: Output,
) -> None:
    """Make a page of what a browser recorded."""
    _write(har.page_from(recorded), output)


@page.command()
def make(
    output: Output,
    seed: Annotated[int, typer.Option(min=0, max=2**64 - 1)] = 2021,
    size_bytes: Annotated[
        int, typer.Option(help="Of all objects.", min=photo_site.SMALLEST_BYTES, max=photo_site.LARGEST_BYTES)
    ] = 1_900_000,
) -> None:
    """Make a photo site's front page from a seed."""
    command = f"fecbench page make --seed {seed} --size-bytes {size_bytes}"
    _write(photo_site.make(seed, size_bytes, command), output)


def _write(made: Page, output: Path) -> None:
    if output.suffix != ".json":
        raise Refusal(f"--output {output}: must end with .json")
    try:
        output.write_text(made.text())
    except OSError as error:
        raise Refusal(f"--output {output}: cannot be written: {error.strerror}") from error
    print(
        f"{output}: {len(made.objects)} objects of {made.size_bytes} bytes from {len(made.origins)} origins,"
        f" {made.depth} deep"
    )
