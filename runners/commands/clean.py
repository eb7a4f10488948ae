"""`fecbench clean`: removes what a killed harness left, and nothing else."""

import json
from typing import Annotated

import typer

from runners.engines import scratch


def clean(
    as_json: Annotated[bool, typer.Option("--json", help="Print what was removed as JSON.")] = False,
) -> None:
    """Remove the temporary folders of harnesses that were killed.

    There is nothing else to remove: processes, namespaces, TAPs and droppers end with the harness that made
    them. Folders of a harness that runs are left alone.
    """
    removed = [str(path) for path in scratch.remove_abandoned()]
    if as_json:
        print(json.dumps({"removed": removed}))
    else:
        print("\n".join(f"removed {path}" for path in removed) or "nothing to remove")
