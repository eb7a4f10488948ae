"""A worker where something starts Dask's: python -m fecbench.runners.cluster.as_dask ADDRESS [OPTION …]

dask-jobqueue and Dask's Helm chart start workers with Dask's own arguments. It hands on what a
worker of fecbench knows: the address, `--nthreads` as `--jobs`, `--certificates`, `--implementations`.
"""

import argparse
import os
import sys
from collections.abc import Sequence

_COMMAND = "from fecbench.runners.commands.command_line import main; main()"


def worker_arguments(of_dask: Sequence[str]) -> list[str]:
    """Return the arguments of `fecbench worker`."""
    parser = argparse.ArgumentParser(prog="python -m fecbench.runners.cluster.as_dask", allow_abbrev=False)
    parser.add_argument("address")
    parser.add_argument("--nthreads", type=float, default=0)
    parser.add_argument("--certificates")
    parser.add_argument("--implementations", action="append", default=[])
    options, _ = parser.parse_known_args(of_dask)
    address = options.address if "://" in options.address else f"tls://{options.address}"
    arguments = [
        "worker",
        address,
        "--jobs",
        str(max(1, int(options.nthreads))) if options.nthreads else "auto",
    ]
    if options.certificates:
        arguments += ["--certificates", options.certificates]
    for folder in options.implementations:
        arguments += ["--implementations", folder]
    return arguments


if __name__ == "__main__":
    os.execv(sys.executable, [sys.executable, "-c", _COMMAND, *worker_arguments(sys.argv[1:])])
