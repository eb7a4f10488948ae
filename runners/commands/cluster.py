"""`fecbench cluster`: what a cluster needs besides workers."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fecbench.runners.commands.console import arguments
from fecbench.runners.commands.console.terminal import note, say

cluster = typer.Typer(
    add_completion=False, no_args_is_help=True, help="Make a cluster's certificates, and run its scheduler."
)


@cluster.command()
def certificates(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="A new folder, to be copied to every host.")],
) -> None:
    """Make certificates by which all hosts of a cluster know each other: who has the folder belongs to it."""
    from fecbench.runners import authority

    end = authority.write(folder)
    say(f"{folder}: serves until {end:%Y-%m-%d}; copy it to every host, and let nobody else read it")


@cluster.command()
def scheduler(
    scheduler: Annotated[str, typer.Argument(metavar="ADDRESS", help="Where it listens: tls://HOST:PORT.")],
    certificates: arguments.Certificates = None,
    insecure: arguments.Insecure = False,
) -> None:
    """Run the scheduler of a cluster until it is ended: Dask's, without what measures and moves by itself."""
    from fecbench.runners.cluster import address
    from fecbench.runners.cluster.dask_side import serve

    serve(address.place(scheduler, certificates, insecure), note)
