"""Moves a database aside whose campaign this fecbench cannot go on with: `make demo` begins anew then.

python -m runners.campaign.aside DESIGN DATABASE
"""

import sys
from itertools import count
from pathlib import Path

import designs
from results.store.database import Database
from runners.campaign.campaign import stored_campaign
from runners.campaign.request import Request, request
from runners.implementations.finding import ours
from runners.refusal import Refusal


def move_aside(wanted: Request, path: Path) -> str:
    """Rename the file when the campaign in it was run otherwise, and say where it is now, and why."""
    if not path.exists():
        return ""
    try:
        with Database.open(str(path)) as database:
            stored_campaign(wanted, database)
    except Refusal as refusal:
        free = (path.with_stem(f"{path.stem}-{number}") for number in count(1))
        aside = next(name for name in free if not name.exists())
        path.rename(aside)
        return f"{path} is {aside} now, and the campaign begins anew: {refusal}"
    return ""


if __name__ == "__main__":
    design, database = map(Path, sys.argv[1:])
    if line := move_aside(request(designs.load(design), ours()), database):
        print(line)
