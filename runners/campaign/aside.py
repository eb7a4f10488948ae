"""Moves a database aside whose campaigns this fecbench cannot go on with: `make demo` begins anew then.

python -m fecbench.runners.campaign.aside DESIGN DATABASE
"""

import os
import sys
from collections.abc import Iterable
from itertools import count
from pathlib import Path

from fecbench import designs
from fecbench.results.store.database import Database
from fecbench.runners.campaign import crosscheck
from fecbench.runners.campaign.campaign import stored_campaign
from fecbench.runners.campaign.request import Request, request
from fecbench.runners.implementations.finding import ours
from fecbench.runners.refusal import Refusal
from fecbench.runners.tasks.task import VIRTUAL


def move_aside(requests: Iterable[Request], path: Path) -> str:
    """Rename the file if one of its campaigns was run otherwise. Return its new name and the reason in a
    line."""
    if not path.exists():
        return ""
    try:
        with Database.open(str(path)) as database:
            for request_of_campaign in requests:
                stored_campaign(request_of_campaign, database)
    except Refusal as refusal:
        free = (path.with_stem(f"{path.stem}-{number}") for number in count(1))
        aside = next(name for name in free if not name.exists())
        path.rename(aside)
        return f"{path} is {aside} now, and the campaign begins anew: {refusal}"
    return ""


def main() -> None:
    path, database = map(Path, sys.argv[1:])
    try:
        design = designs.load(path)
        requests = [request(design, ours(), backend=VIRTUAL)]
        if os.geteuid() == 0:  # nobody else emulates the sample
            emulated = request(design, ours(), beside_virtual=True)
            requests.append(crosscheck.emulated(requests[0], emulated, crosscheck.USUAL_SHARE))
    except Refusal as refusal:
        print(f"fecbench: {refusal}", file=sys.stderr)
        sys.exit(2)
    if line := move_aside(requests, database):
        print(line)


if __name__ == "__main__":
    main()
