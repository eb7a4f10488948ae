"""Hostile bytes for everything that reads files and lines of others: they are taken, or refused in a line.

    python -m tests.fuzz [TARGET …] [--runs N]      (make fuzz)

Each target is fuzzed in a process of its own by Atheris, which follows what the bytes reach. Its corpus is
kept in out/fuzz/TARGET. Bytes that break the law, or take more than 10 s or 2 GiB, are left there as a file
`crash-…`, `timeout-…` or `oom-…`, beside what was said of them in out/fuzz/TARGET.log; the status is 1 then.
"""

import argparse
import contextlib
import subprocess
import sys
import time
from pathlib import Path

import atheris

with atheris.instrument_imports(include=["fecbench", "dpkt"]):
    from tests.fuzz.targets import REFUSALS, TARGETS

OUT = Path(__file__).resolve().parents[2] / "out" / "fuzz"
LARGEST_BYTES = 4096
LONGEST_S = 10
LARGEST_MIB = 2048


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument(
        "targets", metavar="TARGET", nargs="*", help=f"of {', '.join(TARGETS)}; by default all"
    )
    parser.add_argument("--runs", type=int, default=100_000, help="executions of each")
    parser.add_argument("--here", action="store_true", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if unknown := set(asked.targets) - TARGETS.keys():
        parser.error(f"{min(unknown)}: must be one of {', '.join(TARGETS)}")
    if asked.here:
        fuzz(asked.targets[0], asked.runs)
    OUT.mkdir(parents=True, exist_ok=True)
    broken = [name for name in asked.targets or TARGETS if not holds(name, asked.runs)]
    return 1 if broken else 0


def holds(name: str, runs: int) -> bool:
    log, started = OUT / f"{name}.log", time.monotonic()
    words = [sys.executable, "-m", "tests.fuzz", name, "--runs", str(runs), "--here"]
    with log.open("w") as said:
        ended = subprocess.run(words, stdout=said, stderr=said, cwd=OUT.parents[1])
    outcome = "holds" if ended.returncode == 0 else f"BROKEN, see {log}"
    print(f"{name}: {outcome} ({runs} executions asked, {time.monotonic() - started:.0f} s)", flush=True)
    return ended.returncode == 0


def fuzz(name: str, runs: int) -> None:
    """Ends the process."""
    target, folder = TARGETS[name], OUT / name
    folder.mkdir(parents=True, exist_ok=True)
    for number, seed in enumerate(target.seeds()):
        (folder / f"seed-{number}").write_bytes(seed)

    def read(data: bytes) -> None:
        with contextlib.suppress(*REFUSALS):
            target.read(data)

    limits = [f"-max_len={LARGEST_BYTES}", f"-timeout={LONGEST_S}", f"-rss_limit_mb={LARGEST_MIB}"]
    places = [f"-artifact_prefix={folder}/", str(folder)]
    atheris.Setup([sys.argv[0], f"-runs={runs}", "-verbosity=0", *limits, *places], read)
    atheris.Fuzz()


if __name__ == "__main__":
    sys.exit(main())
