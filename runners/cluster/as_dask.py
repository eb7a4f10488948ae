"""A worker where something starts Dask's: python -m fecbench.runners.cluster.as_dask ADDRESS [OPTION …]

dask-jobqueue and Dask's Helm chart start workers with Dask's own arguments. What means something to a worker
of fecbench is handed on: the address, `--nthreads` as `--jobs`, `--certificates`, `--implementations`.
"""

import argparse
import os
import sys
from collections.abc import Sequence

_COMMAND = "from fecbench.runners.commands.command_line import main; main()"


def worker_arguments(given: Sequence[str]) -> list[str]:
    """Those of `fecbench worker`."""
    parser = argparse.ArgumentParser(prog="python -m fecbench.runners.cluster.as_dask", allow_abbrev=False)
    parser.add_argument("address")
    parser.add_argument("--nthreads", type=float, default=0)
    parser.add_argument("--certificates")
    parser.add_argument("--implementations", action="append", default=[])
    asked, _ = parser.parse_known_args(given)
    address = asked.address if "://" in asked.address else f"tls://{asked.address}"
    arguments = ["worker", address, "--jobs", str(max(1, int(asked.nthreads))) if asked.nthreads else "auto"]
    if asked.certificates:
        arguments += ["--certificates", asked.certificates]
    for folder in asked.implementations:
        arguments += ["--implementations", folder]
    return arguments


if __name__ == "__main__":
    os.execv(sys.executable, [sys.executable, "-c", _COMMAND, *worker_arguments(sys.argv[1:])])
