"""Hostile bytes for everything that reads files and lines of others: they are taken, or refused in a line.

    python -m tests.fuzz [TARGET …] [--runs N]      (make fuzz)

Each target is fuzzed in a process of its own (`one`). Its corpus is kept in out/fuzz/TARGET. Bytes that break
the law, or take more than 10 s or 2 GiB, are left there as a file `crash-…`, `timeout-…` or `oom-…`, beside
what was said of them in out/fuzz/TARGET.log; the status is 1 then.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from bench.arguments import from_one
from tests.fuzz.targets import TARGETS

OUT = Path(__file__).resolve().parents[2] / "out" / "fuzz"
MEMORY = Path("/dev/shm")
"""Folder in which files are cheapest."""


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument(
        "targets", metavar="TARGET", nargs="*", help=f"of {', '.join(TARGETS)}; by default all"
    )
    parser.add_argument("--runs", type=from_one, default=100_000, help="executions of each")
    options = parser.parse_args()
    if unknown := set(options.targets) - TARGETS.keys():
        parser.error(f"{min(unknown)}: must be one of {', '.join(TARGETS)}")
    broken = [name for name in options.targets or TARGETS if not holds(name, options.runs)]
    return 1 if broken else 0


def holds(name: str, runs: int) -> bool:
    folder, log, started = OUT / name, OUT / f"{name}.log", time.monotonic()
    folder.mkdir(parents=True, exist_ok=True)
    words = [sys.executable, "-m", "tests.fuzz.one", name, str(runs), str(folder)]
    # What fuzzes ends without cleaning up.
    with (
        tempfile.TemporaryDirectory(dir=MEMORY if MEMORY.is_dir() else None) as files,
        log.open("w") as output,
    ):
        environment = {**os.environ, "TMPDIR": files}
        result = subprocess.run(words, stdout=output, stderr=output, cwd=OUT.parents[1], env=environment)
    outcome = "holds" if result.returncode == 0 else f"BROKEN, see {log}"
    print(f"{name}: {outcome} ({runs} executions asked, {time.monotonic() - started:.0f} s)", flush=True)
    return result.returncode == 0


if __name__ == "__main__":
    sys.exit(main())
