"""The option by which a command is given folders of implementations."""

from pathlib import Path
from typing import Annotated

import typer

from runners.implementations.finding import OPTION, VARIABLE

ImplementationFolders = Annotated[
    list[Path] | None,
    typer.Option(
        OPTION,
        metavar="DIR",
        help="A folder of implementations beside quic-impls/; may be given several times."
        f" Those of the environment variable {VARIABLE}, separated by colons, are searched, too.",
    ),
]
