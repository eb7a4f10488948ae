"""A thousand short trials in one campaign: nothing of harness and workers may grow.

    python -m bench.soak [--jobs N]

Prints how much memory, how many descriptors, processes, network namespaces and temporary files there are
while the campaign runs, and ends with 1 if any of them grew. Takes minutes; needs root.
"""

import argparse
import os
import sqlite3
import statistics
import subprocess
import sys
import tempfile
from contextlib import closing
from dataclasses import dataclass, fields
from pathlib import Path

from rich.console import Console
from rich.table import Table

from runners.implementations import REPOSITORY

DESIGN = REPOSITORY / "bench" / "soak.toml"
SAMPLE_EVERY_S = 2.0
SETTLED_AFTER_TRIALS = 100  # imports, caches and the pools of the allocator have their size by then
MEMORY_MAY_GROW_MIB = 4.0


@dataclass(frozen=True)
class Sample:
    """The state of a running campaign."""

    trials: int
    harness_mib: float
    worker_mib: float
    harness_descriptors: int
    worker_descriptors: int
    processes: int
    namespaces: int
    temporary_files: int


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--jobs", default="1", help="trials at the same time")
    jobs = parser.parse_args().jobs
    with tempfile.TemporaryDirectory() as folder:
        temporary, database = Path(folder) / "temporary", Path(folder) / "soak.sqlite"
        temporary.mkdir()
        said = Path(folder) / "said"
        harness = subprocess.Popen(
            [
                Path(sys.executable).parent / "fecbench",
                "run",
                "--no-calibrate",
                DESIGN,
                "--db",
                database,
                "--jobs",
                jobs,
            ],
            stdout=subprocess.DEVNULL,
            stderr=said.open("w"),
            env={**os.environ, "TMPDIR": str(temporary)},
        )
        samples = watch(harness, database, temporary)
        if harness.returncode not in (0, 1) or not states(database):
            print(said.read_text(), file=sys.stderr)
            return 1
        left = [path.name for path in temporary.iterdir()]
        print_samples(samples)
        done = states(database)
    print("states:", ", ".join(f"{state} {count}" for state, count in sorted(done.items())))
    grown = growths(samples)
    for line in [*grown, *(f"left behind: {name}" for name in left)]:
        print(line)
    if not grown:
        print("nothing grew")
    return 1 if grown or left else 0


def watch(harness: subprocess.Popen[bytes], database: Path, temporary: Path) -> list[Sample]:
    """Samples until the campaign ends."""
    samples: list[Sample] = []
    while True:
        try:
            harness.wait(SAMPLE_EVERY_S)
            return samples
        except subprocess.TimeoutExpired:
            if sample := sampled(harness.pid, database, temporary):
                samples.append(sample)


def sampled(harness: int, database: Path, temporary: Path) -> Sample | None:
    """The present state; None between two trials or while a process ends."""
    try:
        children = children_of(harness)
        workers = [child for child in children if b"runners.worker" in cmdline(child)]
        everything = [harness, *descendants_of(harness)]
        if not workers:
            return None
        return Sample(
            trials=sum(states(database).values()),
            harness_mib=anonymous_mib(harness),
            worker_mib=max(map(anonymous_mib, workers)),
            harness_descriptors=descriptors(harness),
            worker_descriptors=max(map(descriptors, workers)),
            processes=len(everything),
            namespaces=len({Path(f"/proc/{each}/ns/net").readlink() for each in everything}),
            temporary_files=sum(1 for _ in temporary.rglob("*")),
        )
    except (FileNotFoundError, ProcessLookupError, sqlite3.OperationalError):
        return None  # a process has ended meanwhile, or there are no tables yet


def children_of(process: int) -> list[int]:
    return [int(each) for each in Path(f"/proc/{process}/task/{process}/children").read_text().split()]


def descendants_of(process: int) -> list[int]:
    children = children_of(process)
    return [*children, *(each for child in children for each in descendants_of(child))]


def cmdline(process: int) -> bytes:
    return Path(f"/proc/{process}/cmdline").read_bytes()


def anonymous_mib(process: int) -> float:
    """The memory of the process that is of no file, in MiB, be it shared with a fork or not."""
    lines = Path(f"/proc/{process}/smaps_rollup").read_text().splitlines()
    kib = [int(line.split()[1]) for line in lines if line.startswith("Anonymous:")]
    return sum(kib) / 1024


def descriptors(process: int) -> int:
    return sum(1 for _ in Path(f"/proc/{process}/fd").iterdir())


def states(database: Path) -> dict[str, int]:
    """How many trials have ended in each state."""
    if not database.exists():
        return {}
    with closing(sqlite3.connect(f"file:{database}?mode=ro", uri=True)) as connection:
        count = "SELECT state, count(*) FROM trials WHERE NOT superseded GROUP BY state"
        return dict(connection.execute(count).fetchall())


def growths(samples: list[Sample]) -> list[str]:
    """What is more in the last quarter than in the first after the beginning has settled, by medians."""
    settled = [sample for sample in samples if sample.trials >= SETTLED_AFTER_TRIALS]
    quarter = len(settled) // 4
    if not quarter:
        return [f"only {len(settled)} samples after {SETTLED_AFTER_TRIALS} trials: too few to tell growth"]
    lines = []
    for field in fields(Sample)[1:]:
        first, last = (
            statistics.median(getattr(sample, field.name) for sample in part)
            for part in (settled[:quarter], settled[-quarter:])
        )
        if last - first > (MEMORY_MAY_GROW_MIB if field.name.endswith("_mib") else 0):
            lines.append(f"{field.name} grew from {first:g} to {last:g}")
    return lines


def print_samples(samples: list[Sample]) -> None:
    """About twenty of them."""
    table = Table(title=f"one campaign, sampled every {SAMPLE_EVERY_S:g} s", title_justify="left")
    for field in fields(Sample):
        table.add_column(field.name.replace("_", " "), justify="right")
    for sample in samples[:: max(1, len(samples) // 20)]:
        values = (getattr(sample, field.name) for field in fields(Sample))
        table.add_row(*(f"{value:.1f}" if isinstance(value, float) else str(value) for value in values))
    Console().print(table)


if __name__ == "__main__":
    sys.exit(main())
