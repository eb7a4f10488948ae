"""`fecbench doctor`: what this machine needs to run trials, what it lacks, and the command that mends it."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

from fecbench.runners.commands.console import arguments
from fecbench.runners.commands.console.campaign_documents import print_document
from fecbench.runners.commands.console.choice import implementations_in
from fecbench.runners.commands.console.terminal import say

if TYPE_CHECKING:
    from fecbench.runners.machine import Need


def doctor(
    folders: arguments.ImplementationFolders = None,
    as_json: arguments.Json = False,
) -> int:
    """Say what this machine has and lacks; 1 when a trial could not run."""
    from fecbench.runners.machine import needs

    all_needs = list(needs(implementations_in(folders)))
    able = all(need.good for need in all_needs if need.required)
    if as_json:
        print_document({"able": able, "needs": [asdict(need) for need in all_needs]})
    else:
        for need in all_needs:
            say(line_of(need))
        say("trials can run" if able else "trials cannot run: see what is MISSING above")
    return 0 if able else 1


def line_of(need: Need) -> str:
    """Return a line that says that a need is met, or what is missing and how to mend it."""
    if need.good:
        return f"good     {need.name}: {need.found}"
    return f"{'MISSING' if need.required else 'absent '}  {need.name}: {need.found}; mend: {need.mend}"
