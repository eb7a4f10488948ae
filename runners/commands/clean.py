"""`fecbench clean`: removes what a killed harness left, and nothing else."""

from __future__ import annotations

from fecbench.runners import scratch
from fecbench.runners.commands.console import arguments
from fecbench.runners.commands.console.campaign_documents import print_document
from fecbench.runners.commands.console.terminal import say


def clean(
    as_json: arguments.Json = False,
) -> None:
    """Remove the temporary folders and the empty control groups of harnesses that were killed.

    There is nothing else to remove: processes, namespaces, TAPs and droppers end with the harness that made
    them. Folders of a harness that runs are left alone.
    """
    from fecbench.runners.trial import cgroup

    removed = [str(path) for path in (*scratch.remove_abandoned(), *cgroup.remove_abandoned())]
    if as_json:
        print_document({"removed": removed}, indent=None)
    else:
        say("\n".join(f"removed {path}" for path in removed) or "nothing to remove")
