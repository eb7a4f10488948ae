"""`python -m fecbench.results.advice DATABASE…` writes the record of the campaigns in the databases.

A campaign that they lack, or lack with one of the controllers, keeps the rows that the record has of it.
"""

import sys
from contextlib import ExitStack

import pandas as pd

from fecbench.errors import BadInput, Failed, status_of
from fecbench.quantities import counted
from fecbench.results.advice.record import RECORD
from fecbench.results.advice.strongest_ratios import beside, campaigns_in, recorded
from fecbench.results.reading import Results


def main(paths: list[str]) -> None:
    """Write it, and say how many of its rows each campaign has given."""
    if not paths:
        raise BadInput("DATABASE…: must be one or more databases of the campaigns never-harms…")
    with ExitStack() as stack:
        databases = [stack.enter_context(Results(path)) for path in paths]
        record = beside(recorded(campaigns_in(databases)), pd.read_parquet(RECORD))
    record.to_parquet(RECORD, index=False, compression="zstd")
    print(f"{RECORD}: {counted(len(record), 'row')}")
    for (campaign, size), rows in record.groupby(["campaign", "size_bytes"], sort=False):
        pairs = rows["pairs"]
        print(
            f"  {campaign}, {size} bytes: {counted(len(rows), 'row')}, of {pairs.min()} to"
            f" {pairs.max()} pairs"
        )


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except (BadInput, Failed) as error:
        print(error, file=sys.stderr)
        sys.exit(status_of(error))
